-- Candidates for a refresh's training set: everything it answered, answers of earlier refreshes
-- and rounds from $since on ($wrong_too: not only right ones), and the seed rows; hinted rows that
-- failed the audit left out. `plain_prompt_id` is the problem's prompt without a hint.
with used as (
    select id as trajectory_id, min((round, refresh)) as place, any_value(step) as step
    from step_output
    where run_id = $run_id and kind = 'trajectory'
      and split_part(step, '-', 1) in ('setup', 'generate', 'rationalize')
      and (round, refresh) <= ($round, $refresh)
    group by all
), judged as (
    select v.trajectory_id, arg_max(v, v.attempt) as verdict
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run_id = $run_id and s.kind = 'verdict'
      and (s.round, s.refresh) <= ($round, $refresh) and not starts_with(s.step, 'reverify')
    group by all
), rejected as (
    select d.trajectory_id
    from step_run s join decision d using (step_key)
    where s.run_id = $run_id and s.round <= $round and s.step = 'rationalize' and not d.kept
), plain as (
    select p.trajectory_id, any_value(t.prompt_id) as prompt_id
    from trajectory_parent p join trajectory t on t.trajectory_id = p.parent_id
    where p.relation = 'hint' group by all
), placed as (
    select trajectory_id, step, place = ($round, $refresh) as now, place[1] as round from used
)
select t.*, judged.verdict.status as status, judged.verdict.score as score,
       p.temperature as temperature, p.top_p as top_p, p.top_k as top_k,
       judged.verdict.extracted as extracted,
       coalesce(plain.prompt_id, t.prompt_id) as plain_prompt_id,
       case when placed.step = 'setup' then 'seed'
            when not placed.now then 'earlier'
            when placed.step = 'rationalize' then 'rationalized'
            else 'round' end as source
from placed
join trajectory t using (trajectory_id)
join judged using (trajectory_id)
left join plain using (trajectory_id)
left join sampling p on p.sampling_id = t.sampling_id
anti join rejected using (trajectory_id)
where placed.now or placed.step = 'setup'
   or (placed.round >= $since and $earlier and ($wrong_too or judged.verdict.status = 'correct'))
order by t.trajectory_id
