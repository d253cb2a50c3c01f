-- Ids of one kind that a step made or found.
select id, reused from step_output
where run_id = $run_id and round = $round and refresh = $refresh and step = $step and kind = $kind
order by id
