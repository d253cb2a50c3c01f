-- Of each held-out problem that a run's round measured: answers that were judged, and the right
-- ones. Problems of extra slices are not among them.
with judged as (
    select t.problem_id, t.trajectory_id, arg_max(v.status, v.attempt) as status
    from step_output s
    join verdict v on v.verdict_id = s.id
    join trajectory t on t.trajectory_id = v.trajectory_id
    semi join (from step_output where run_id = $run_id and round = $round and step = 'evaluate'
               and kind = 'problem') h on h.id = t.problem_id
    where s.run_id = $run_id and s.round = $round and s.kind = 'verdict' and s.step = 'evaluate'
    group by all
)
select problem_id, count(*) filter (status <> 'unjudged') as n,
       count(*) filter (status = 'correct') as correct
from judged group by all order by problem_id
