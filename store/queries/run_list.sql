-- All runs with the last round that ended.
select run.name, run.recipe, run.created_at, run.config,
       coalesce(max(step_run.round) filter (step_run.step = 'update'), 0) as rounds,
       arg_max(event.kind, event.happened_at) as last_event,
       max(event.happened_at) as last_at
from run
left join step_run using (run_id)
left join event using (run_id)
group by all order by run.created_at, run.name
