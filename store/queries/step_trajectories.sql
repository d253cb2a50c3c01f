-- The trajectories of a step, in all its turns.
select trajectory.* from step_output join trajectory on trajectory.trajectory_id = step_output.id
where run_id = $run_id and round = $round and refresh = $refresh
  and (step = $step or starts_with(step, $step || '-'))
  and kind = 'trajectory'
order by trajectory_id
