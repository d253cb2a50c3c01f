-- The models that sampled the trajectories behind each row of a training set, and those that
-- sampled what such a trajectory came from.
with recursive behind (training_row_id, trajectory_id) as (
    select training_row_id, trajectory_id
    from training_row_trajectory where training_set_id = $training_set_id
    union
    select b.training_row_id, p.parent_id
    from behind b join trajectory_parent p on p.trajectory_id = b.trajectory_id
)
select distinct b.training_row_id, t.model_id
from behind b join trajectory t on t.trajectory_id = b.trajectory_id
where t.model_id is not null
