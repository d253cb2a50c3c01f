-- The advantages of a training set's rollouts, by trajectory.
select trajectory_id, advantage from training_row_trajectory
where training_set_id = $training_set_id and advantage is not null
order by training_row_id, trajectory_id
