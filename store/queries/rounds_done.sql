-- Rounds of a run that have trained or been measured: refreshes that were updated, and whether
-- the round was measured.
select round, count(*) filter (step = 'update') as updates,
       count(*) filter (step = 'evaluate') > 0 as measured
from step_run where run_id = $run_id and step in ('update', 'evaluate')
group by all order by round
