-- The model of a run's last update: parameters, and whether it is an adapter.
select m.parameters, m.base_model_id is not null as adapter
from step_output s
join training_update u on u.update_id = s.id
join model m on m.model_id = u.model_id
where s.run = $run and s.kind = 'training_update'
order by s.round desc, s.refresh desc
limit 1
