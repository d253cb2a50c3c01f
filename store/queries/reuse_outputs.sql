-- Take over the outputs of a step that another round or run has committed under the same key.
insert into step_output
select $run_id, $round, $refresh, $step, kind, id, true
from step_output
where run_id = $from_run and round = $from_round and refresh = $from_refresh and step = $from_step
