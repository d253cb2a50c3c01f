-- What a run's stages took, by round: seconds, seconds inside sampler, verifier or updater, those times
-- the accelerators, and tokens: sampled, or trained on in an update.
with took as (
    select s.round, split_part(s.step, '-', 1) as stage, sum(s.wall_s) as wall_s,
           sum(s.work_s * coalesce((r.manifest ->> '$.accelerators')::integer, 0)) as gpu_s
    from step_run s join run r using (run_id)
    where s.run = $run and not starts_with(s.step, 'reverify')
    group by all
), sampled as (
    select s.round, split_part(s.step, '-', 1) as stage, sum(len(t.token_ids)) as tokens
    from step_output s join trajectory t on t.trajectory_id = s.id
    where s.run = $run and s.kind = 'trajectory' and not s.reused and t.model_id is not null
    group by all
), trained as (
    select s.round, 'update' as stage, sum(v.visits * r.tokens) as tokens
    from step_output s
    join training_update u on u.update_id = s.id
    join training_visit v on v.update_id = u.update_id
    join training_row r
        on r.training_set_id = u.training_set_id and r.training_row_id = v.training_row_id
    where s.run = $run and s.kind = 'training_update' and not s.reused
    group by all
)
select took.round, took.stage, took.wall_s, took.gpu_s,
       coalesce(sampled.tokens, trained.tokens, 0)::bigint as tokens
from took
left join sampled using (round, stage)
left join trained using (round, stage)
order by all
