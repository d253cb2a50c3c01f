-- Which of the wanted slots are filled.
select trajectory_id from trajectory semi join wanted on wanted.id = trajectory.trajectory_id
