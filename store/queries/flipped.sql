-- Trajectories whose verdict another verifier turned, those that trained a model first.
select r.*, p.question, p.answer, t.completion, len(coalesce(f.trained_models, [])) as trained
from rejudged($run, $verifier_id) r
join problem p on p.problem_id = r.problem_id
join trajectory t on t.trajectory_id = r.trajectory_id
left join trajectory_fate f on f.run = $run and f.trajectory_id = r.trajectory_id
where r.flipped
order by trained desc, r.round, r.trajectory_id
limit $count
