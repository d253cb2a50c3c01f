-- The config that a run was last worked on with.
select coalesce(
    (select detail from event
     where run_id = $run_id and kind = 'config_changed' order by happened_at desc limit 1),
    config) as config
from run where run_id = $run_id
