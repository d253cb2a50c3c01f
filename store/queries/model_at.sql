-- The model that a run's round ended with, or its last one.
select s.round, s.refresh, u.model_id
from step_output s join training_update u on u.update_id = s.id
where s.run = $run and s.kind = 'training_update' and ($round is null or s.round = $round)
union all
select s.round, s.refresh, s.id
from step_output s
where s.run = $run and s.kind = 'model' and s.step = 'setup' and $round = 0
order by round desc, refresh desc limit 1
