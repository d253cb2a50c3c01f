-- A run's alarms, and those that held or ended it, as they were written.
select round, refresh, kind, message, detail
from event
where run_id = $run_id and kind in ('alarm', 'held', 'stopped') and detail is not null
order by event.rowid
