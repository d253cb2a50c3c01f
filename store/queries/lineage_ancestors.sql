-- The models that a model rests on, nearest first.
select depth, ancestor_id as model_id, array_to_string(relations, ', ') as relations, run, round,
       origin, training_set_id, rows, path
from ancestors($model_id) order by depth, run, round, model_id
