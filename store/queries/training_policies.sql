-- The models that sampled the trajectories behind each row of a training set.
select distinct x.training_row_id, t.model_id
from training_row_trajectory x join trajectory t using (trajectory_id)
where x.training_set_id = $training_set_id and t.model_id is not null
