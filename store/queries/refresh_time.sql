-- A run's refreshes, each from its first step to its last commit: their number, and the mean
-- seconds of one that did not go into sampling, verifying and training.
with refreshes as (
    select round, refresh,
           epoch(max(started_at + to_milliseconds((wall_s * 1000)::bigint)) - min(started_at))
               - sum(work_s) as beside_s
    from step_run join run using (run_id)
    where run.name = $run and round > 0
      and split_part(step, '-', 1) in ('generate', 'verify', 'mix', 'score', 'update', 'watch')
    group by all
)
select count(*) as refreshes, avg(beside_s) as beside_s from refreshes
