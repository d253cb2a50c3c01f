-- Rounds of a run that are done: those that have been through evaluate, measured or not; in stores
-- of schema 3 and before, an unmeasured round of one update left no mark there.
select distinct s.round
from step_run s join run using (run_id)
where s.run_id = $run_id
  and (s.step = 'evaluate' or (s.step = 'update' and s.round % $every <> 0
                               and run.recipe not in ('dpo', 'grpo')))
order by s.round
