-- The judged trajectories that a run's round used first.
select distinct t.*
from step_output s
join trajectory t on t.trajectory_id = s.id
semi join (
    select v.trajectory_id from step_output j join verdict v on v.verdict_id = j.id
    where j.run_id = $run_id and j.kind = 'verdict' and not starts_with(j.step, 'reverify')
) judged on judged.trajectory_id = t.trajectory_id
where s.run_id = $run_id and s.round = $round and s.kind = 'trajectory' and s.first
order by t.trajectory_id
