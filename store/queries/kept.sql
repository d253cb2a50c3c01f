-- The candidates that a step kept.
select trajectory_id from decision where step_key = $step_key and kept
order by trajectory_id
