-- The models that a model rests on, nearest first, with the refresh that made each.
with made as (
    select id, any_value(refresh) as refresh
    from step_output where kind = 'model' and not reused group by all
)
select depth, ancestor_id as model_id, array_to_string(relations, ', ') as relations, run, round,
       refresh, origin, training_set_id, rows, path
from ancestors($model_id) left join made on made.id = ancestor_id
order by depth, run, round, refresh, model_id
