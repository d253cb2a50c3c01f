-- The refreshes of a run that were watched, and the rounds that have been through evaluate.
select round, refresh, step from step_run
where run_id = $run_id and step in ('watch', 'evaluate')
