-- The mean reward of each refresh of a run before one of them, oldest first.
with judged as (
    select s.round, s.refresh, v.trajectory_id, arg_max(v.score, v.attempt) as reward
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run_id = $run_id and s.kind = 'verdict' and starts_with(s.step, 'verify')
      and (s.round, s.refresh) < ($round, $refresh)
    group by all
)
select round, refresh, avg(reward) as reward from judged
where reward is not null
group by all order by all
