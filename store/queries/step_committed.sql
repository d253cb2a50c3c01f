-- The key of a step that this run has committed.
select step_key from step_run
where run_id = $run_id and round = $round and refresh = $refresh and step = $step
