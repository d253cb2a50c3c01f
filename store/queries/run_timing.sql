-- Optimizer steps of a run, its refreshes, and the s that it reached (NULL: offline).
select t.*, (select count(*) from step_run s where s.run = t.run and s.step = 'update') as refreshes
from run_timing t where t.run = $run
