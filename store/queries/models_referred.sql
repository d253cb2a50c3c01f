-- Models that a run's updates name as reference, or whose optimizer state they carried on.
select distinct s.run_id, unnest([u.reference_model_id, carried.model_id]) as model_id
from step_output s
join training_update u on u.update_id = s.id
left join training_update carried on carried.update_id = u.optimizer_from
where s.kind = 'training_update'
