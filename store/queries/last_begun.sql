-- The newest round of a run that has a committed step; none where the run has none.
select max(round) as round from step_run
where run_id = $run_id and not starts_with(step, 'reverify')
