-- Models that the newest update of each run names as reference, or carried the optimizer of.
with newest as (
    select s.run_id, arg_max(s.id, (s.round, s.refresh)) as update_id
    from step_output s where s.kind = 'training_update' group by all
)
select n.run_id, unnest([u.reference_model_id, carried.model_id]) as model_id
from newest n
join training_update u using (update_id)
left join training_update carried on carried.update_id = u.optimizer_from
