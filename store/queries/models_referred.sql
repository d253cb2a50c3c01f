-- Models that the newest update of each run names as reference, or carried the optimizer of; and the
-- one it began with, until its refresh is watched.
with newest as (
    select s.run_id, max((s.round, s.refresh)) as place,
           arg_max(s.id, (s.round, s.refresh)) as update_id
    from step_output s where s.kind = 'training_update' group by all
)
select n.run_id, unnest([
    u.reference_model_id, carried.model_id,
    case when not exists (
        select 1 from step_run w
        where w.run_id = n.run_id and w.step = 'watch' and (w.round, w.refresh) = n.place
    ) then u.init_model_id end]) as model_id
from newest n
join training_update u using (update_id)
left join training_update carried on carried.update_id = u.optimizer_from
