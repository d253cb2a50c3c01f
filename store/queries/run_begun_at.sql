-- When a run began.
select created_at from run where run_id = $run_id
