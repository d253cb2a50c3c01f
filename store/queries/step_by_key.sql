-- Where a key was first committed, by whatever run.
select run_id, run, round, refresh, step from step_run
where step_key = $step_key
order by rowid limit 1
