-- The log-probabilities under a model of the wanted trajectories, after the prompts sampled from.
select l.trajectory_id, l.logprob
from wanted
join trajectory t on t.trajectory_id = wanted.id
join trajectory_logprob l
    on l.trajectory_id = t.trajectory_id and l.prompt_id = t.prompt_id and l.model_id = $model_id
