-- Mean seconds of a run's engine starts, and of its refreshes that sampled, with the start in them.
select
    (select avg((detail ->> '$.seconds')::double) from event
     where run_id = $run_id and kind = 'engine_started') as start_s,
    (select avg(wall_s) from (
        select sum(wall_s) as wall_s from step_run
        where run_id = $run_id and round > 0
            and step in ('generate', 'verify', 'rationalize', 'mix', 'score', 'update', 'watch')
        group by round, refresh having bool_or(step = 'generate' and not reused)
    )) as refresh_s
