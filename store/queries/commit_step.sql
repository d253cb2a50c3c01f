-- Mark a step as done; it is never done again.
insert into step_run
    (run_id, run, round, refresh, step, step_key, reused, started_at, wall_s, work_s)
select run_id, name, $round, $refresh, $step, $step_key, $reused,
       now() - to_milliseconds(($wall_s * 1000)::bigint), $wall_s, $work_s
from run where run_id = $run_id
