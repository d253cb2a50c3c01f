-- The answers that a run's round was judged by, of one purpose, with their last verdicts.
with judged as (
    select v.trajectory_id, arg_max(v.status, v.attempt) as status,
           arg_max(v.reason, v.attempt) as reason
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run = $run and s.round = $round and s.kind = 'verdict'
      and not starts_with(s.step, 'reverify')
    group by all
)
select t.problem_id, p.question, p.answer, t.trajectory_id, t.completion, j.status, j.reason
from judged j join trajectory t using (trajectory_id) join problem p using (problem_id)
where t.purpose = $purpose
order by t.problem_id, t.slot, t.trajectory_id
