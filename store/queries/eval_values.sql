-- Pass@1 of each held-out question of an evaluation, for paired comparison.
select p.problem_id, p.difficulty, avg((v.status = 'correct')::integer) as value
from step_output s
join verdict v on v.verdict_id = s.id
join trajectory t using (trajectory_id)
join problem p using (problem_id)
join run on run.run_id = s.run_id
where run.name = $run and s.round = $round and s.step = 'evaluate' and s.kind = 'verdict'
  and v.status <> 'unjudged' and p.split = 'dev'
group by all
