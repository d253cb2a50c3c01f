-- A fork takes over what those steps made or used.
insert into step_output (run_id, run, round, refresh, step, kind, id, reused, first)
select fork.run_id, fork.name, s.round, s.refresh, s.step, s.kind, s.id, true, s.first
from step_output s join run fork on fork.run_id = $run_id
where s.run_id = $forked_from and s.round <= $forked_at_round
  and not starts_with(s.step, 'reverify')
