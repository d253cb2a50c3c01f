-- The model that a run's round ended with: its last update, or the base in round 0.
select u.model_id, s.refresh
from step_output s join training_update u on u.update_id = s.id
where s.run_id = $run_id and s.round = $round and s.kind = 'training_update'
union all
select s.id, s.refresh from step_output s
where s.run_id = $run_id and s.round = $round and s.step = 'setup' and s.kind = 'model'
order by refresh desc
limit 1
