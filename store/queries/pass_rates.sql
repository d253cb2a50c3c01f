-- Pass rate of each train problem over a run's unhinted answers before a round.
with judged as (
    select v.trajectory_id, arg_max(v.status, v.attempt) as status
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run_id = $run_id and s.round < $round and starts_with(s.step, 'verify') and s.kind = 'verdict'
    group by all
)
select t.problem_id, avg((j.status = 'correct')::integer) as rate
from judged j join trajectory t using (trajectory_id)
group by all
