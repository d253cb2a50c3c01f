-- The trajectories of a step.
select trajectory.* from step_output join trajectory on trajectory.trajectory_id = step_output.id
where run_id = $run_id and round = $round and refresh = $refresh and step = $step
  and kind = 'trajectory'
order by trajectory_id
