-- The rounds of a run, up to one, that began with a reset: why, and the model that they began with.
select event.round, event.happened_at, event.message, event.detail ->> '$.model' as model
from event join run using (run_id)
where run.name = $run and event.kind = 'reset' and event.round <= $round
order by event.round
