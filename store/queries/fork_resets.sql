-- A fork takes over the resets of its source up to a round.
insert into event (run_id, round, refresh, happened_at, kind, message, detail)
select $run_id, round, refresh, happened_at, kind, message, detail
from event
where run_id = $forked_from and kind = 'reset' and round <= $forked_at_round
order by round
