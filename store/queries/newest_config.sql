-- The config that a run was last worked on with; rows are in the order they were written, clocks
-- may be set back.
select coalesce(
    (select detail from event
     where run_id = $run_id and kind = 'config_changed' order by event.rowid desc limit 1),
    config) as config
from run where run_id = $run_id
