-- The wanted trajectories, in the order asked for.
select trajectory.* from wanted join trajectory on trajectory.trajectory_id = wanted.id
order by wanted.position
