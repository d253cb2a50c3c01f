-- The rows of a training set, in training order.
select * from training_row where training_set_id = $training_set_id order by position
