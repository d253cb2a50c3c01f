-- Take over the outputs of a step that another round or run has committed under the same key.
insert into step_output (run_id, run, round, refresh, step, kind, id, reused, first)
select run.run_id, run.name, $round, $refresh, $step, kind, id, true, mine.id is null
from step_output source
join run on run.run_id = $run_id
left join (select distinct kind, id from step_output where run_id = $run_id) mine using (kind, id)
where source.run_id = $from_run and source.round = $from_round
  and source.refresh = $from_refresh and source.step = $from_step
