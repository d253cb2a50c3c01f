-- The models that a run had when a refresh began, oldest first: its base, then its updates'.
select s.id as model_id, s.round, s.refresh
from step_output s
where s.run_id = $run_id and s.kind = 'model' and s.step in ('setup', 'update')
  and (s.round, s.refresh) < ($round, $refresh)
order by s.round, s.refresh
