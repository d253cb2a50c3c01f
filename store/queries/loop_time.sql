-- A run's loop, from its first step to its last commit, and the seconds of it that went into
-- sampling, verifying and training. Steps taken over from another run count with what they took.
select epoch(max(started_at + to_milliseconds((wall_s * 1000)::bigint)) - min(started_at)) as loop_s,
       sum(wall_s) as steps_s, sum(work_s) as work_s
from step_run join run using (run_id)
where run.name = $run and not starts_with(step, 'reverify')
