-- One trajectory behind each row of a training set (equal contents are one row).
select r.training_row_id, min(r.trajectory_id) as trajectory_id
from training_row_trajectory r
where r.training_set_id = $training_set_id
group by all
