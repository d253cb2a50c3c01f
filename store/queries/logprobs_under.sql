-- The log-probabilities under a model of a training set's trajectories, after the row's prompt.
select distinct l.trajectory_id, l.prompt_id, l.logprob
from training_row r
join training_row_trajectory x using (training_set_id, training_row_id)
join trajectory_logprob l
    on l.trajectory_id = x.trajectory_id and l.prompt_id = r.prompt_id and l.model_id = $model_id
where r.training_set_id = $training_set_id
