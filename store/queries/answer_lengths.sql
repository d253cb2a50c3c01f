-- Held-out answers of a run by round and length: `tokens` is the least of a doubling (16 for 16 to 31).
with judged as (
    select s.round, v.trajectory_id, arg_max(v.status, v.attempt) as status
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run = $run and s.kind = 'verdict' and s.step = 'evaluate'
    group by all
)
select j.round, (2 ** floor(log2(len(t.token_ids))))::bigint as tokens, count(*) as answers,
       count(*) filter (j.status = 'correct') as correct
from judged j
join trajectory t using (trajectory_id)
semi join step_output held on held.run = $run and held.round = j.round
    and held.step = 'evaluate' and held.kind = 'problem' and held.id = t.problem_id
where j.status <> 'unjudged' and len(t.token_ids) > 0
group by all order by all
