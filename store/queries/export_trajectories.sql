-- A run's trajectories, of one round or of all, with verdict and fate.
select f.trajectory_id, f.round, f.problem_id, p.question, p.answer, f.purpose, f.origin, f.hinted,
       f.prompt, q.token_ids as prompt_token_ids, f.completion, t.token_ids, t.logprobs,
       t.loss_mask, t.finish_reason, t.model_id, t.sampling_id, t.group_id, t.seed, t.slot,
       f.status, f.score, f.reason, f.kept, f.why, f.training_sets, f.trained_models
from trajectory_fate f
join trajectory t using (trajectory_id)
join prompt q using (prompt_id)
join problem p on p.problem_id = t.problem_id
where f.run = $run and ($round is null or f.round = $round)
order by f.round, f.trajectory_id
