-- Pass@1 of each question of the held-out set in a run's evaluations, for paired comparison.
select s.round, p.problem_id, p.difficulty, avg((v.status = 'correct')::integer) as value
from step_output s
join verdict v on v.verdict_id = s.id
join trajectory t using (trajectory_id)
join problem p using (problem_id)
join run on run.run_id = s.run_id
semi join step_output held on held.run_id = s.run_id and held.round = s.round
    and held.step = 'evaluate' and held.kind = 'problem' and held.id = p.problem_id
where run.name = $run and s.step = 'evaluate' and s.kind = 'verdict'
  and v.status <> 'unjudged'
group by all
