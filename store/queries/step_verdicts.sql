-- The verdicts of a step, in all its turns.
select verdict.* from step_output join verdict on verdict.verdict_id = step_output.id
where run_id = $run_id and round = $round and refresh = $refresh
  and (step = $step or starts_with(step, $step || '-'))
  and kind = 'verdict'
order by trajectory_id, attempt
