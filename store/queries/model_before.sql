-- The newest model that a run's updates had made when a refresh began, with the update and its config.
select u.model_id, u.update_id, u.config, s.round, s.refresh
from step_output s join training_update u on u.update_id = s.id
where s.run_id = $run_id and s.kind = 'training_update'
  and (s.round, s.refresh) < ($round, $refresh)
order by s.round desc, s.refresh desc
limit 1
