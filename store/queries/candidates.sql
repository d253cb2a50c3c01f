-- Candidates for a round's training set: everything this round answered, right answers of
-- earlier rounds ($accumulate), and the seed rows; hinted rows that failed the audit left out.
-- `plain_prompt_id` is the problem's prompt without a hint.
with used as (
    select id as trajectory_id, min(round) as round, any_value(step) as step
    from step_output
    where run_id = $run_id and kind = 'trajectory'
      and step in ('setup', 'generate', 'rationalize') and round <= $round
    group by all
), judged as (
    select v.trajectory_id, arg_max(v.status, v.attempt) as status, arg_max(v.score, v.attempt) as score
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run_id = $run_id and s.kind = 'verdict' and s.round <= $round
      and not starts_with(s.step, 'reverify')
    group by all
), rejected as (
    select d.trajectory_id
    from step_run s join decision d using (step_key)
    where s.run_id = $run_id and s.round <= $round and s.step = 'rationalize' and not d.kept
), plain as (
    select p.trajectory_id, any_value(t.prompt_id) as prompt_id
    from trajectory_parent p join trajectory t on t.trajectory_id = p.parent_id
    where p.relation = 'hint' group by all
)
select t.*, judged.status, judged.score,
       coalesce(plain.prompt_id, t.prompt_id) as plain_prompt_id,
       case when used.step = 'setup' then 'seed'
            when used.round < $round then 'earlier'
            when used.step = 'rationalize' then 'rationalized'
            else 'round' end as source
from used
join trajectory t using (trajectory_id)
join judged using (trajectory_id)
left join plain using (trajectory_id)
anti join rejected using (trajectory_id)
where used.round = $round or used.step = 'setup' or ($accumulate and judged.status = 'correct')
order by t.trajectory_id
