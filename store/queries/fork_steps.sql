-- A fork takes over the committed steps of its source up to a round.
insert into step_run
    (run_id, run, round, refresh, step, step_key, reused, started_at, wall_s, work_s)
select fork.run_id, fork.name, s.round, s.refresh, s.step, s.step_key, true, now(), 0.0, 0.0
from step_run s join run fork on fork.run_id = $run_id
where s.run_id = $forked_from and s.round <= $forked_at_round
  and not starts_with(s.step, 'reverify')
