-- The keys of a run's steps up to a round, in order.
select round, refresh, step, step_key from step_run
where run_id = $run_id and round <= $round
order by round, refresh, step
