-- One training set: how many rows and tokens it has.
select * from training_set where training_set_id = $training_set_id
