-- Rounds of a run whose last step is committed: evaluate where the round is measured, else update.
select round from step_run
where run_id = $run_id
  and step = case when round % $every = 0 then 'evaluate' else 'update' end
order by round
