-- The trajectories behind each row of a training set, by role (of equal contents one).
select r.training_row_id, r.role, min(r.trajectory_id) as trajectory_id,
       arg_min(r.reward, r.trajectory_id) as reward
from training_row_trajectory r
where r.training_set_id = $training_set_id
group by all
