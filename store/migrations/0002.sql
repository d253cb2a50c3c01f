-- Steps and their outputs name their run; outputs say whether the run had used them before;
-- decisions say for which source a candidate stood; what a model rests on is a table.
create temp table old_step_run as from step_run;
create temp table old_step_output as from step_output;
drop table step_run;
drop table step_output;

create table step_run (
    run_id uuid not null,
    run varchar not null,
    round integer not null,
    refresh integer not null,
    step varchar not null,
    step_key uuid not null,
    reused boolean not null,
    started_at timestamptz not null,
    wall_s double not null,
    work_s double not null,
    primary key (run_id, round, refresh, step)
);
insert into step_run by name
select o.*, run.name as run from old_step_run o join run using (run_id)
order by o.started_at, o.round, o.refresh;

create table step_output (
    run_id uuid not null,
    run varchar not null,
    round integer not null,
    refresh integer not null,
    step varchar not null,
    kind varchar not null,
    id uuid not null,
    reused boolean not null,
    first boolean not null
);
insert into step_output by name
select o.*, run.name as run,
       row_number() over (
           partition by o.run_id, o.kind, o.id order by o.round, o.refresh, s.started_at) = 1 as first
from old_step_output o
join run using (run_id)
join old_step_run s using (run_id, round, refresh, step)
order by s.started_at, o.round, o.refresh, o.step, o.kind;

create table model_parent (
    model_id uuid not null,
    parent_id uuid not null,
    relation varchar not null check (relation in ('init', 'reference', 'policy')),
    update_id uuid not null
);
insert into model_parent by name
with recursive behind (update_id, model_id, trajectory_id) as (
    select u.update_id, u.model_id, x.trajectory_id
    from training_update u
    join training_visit v on v.update_id = u.update_id and v.visits > 0
    join training_row_trajectory x
        on x.training_set_id = u.training_set_id and x.training_row_id = v.training_row_id
    union
    select b.update_id, b.model_id, p.parent_id
    from behind b join trajectory_parent p on p.trajectory_id = b.trajectory_id
)
select model_id, init_model_id as parent_id, 'init' as relation, update_id from training_update
union all
select model_id, reference_model_id, 'reference', update_id
from training_update where reference_model_id is not null
union all
select distinct b.model_id, t.model_id, 'policy', b.update_id
from behind b join trajectory t on t.trajectory_id = b.trajectory_id
where t.model_id is not null;

create temp table old_decision as from decision;
drop table decision;
create table decision (
    step_key uuid not null,
    trajectory_id uuid not null,
    source varchar not null,
    kept boolean not null,
    why varchar not null
);
insert into decision by name
with decided_in as (
    select step_key, arg_min(run_id, started_at) as run_id, arg_min(round, started_at) as round
    from step_run group by all
)
select o.*, case when t.purpose = 'seed' then 'seed'
                 when u.round < s.round then 'earlier'
                 when t.purpose = 'rationalize' then 'rationalized'
                 else 'round' end as source
from old_decision o
join decided_in s using (step_key)
join trajectory t using (trajectory_id)
join step_output u
    on u.run_id = s.run_id and u.kind = 'trajectory' and u.first and u.id = o.trajectory_id;
drop table old_decision;

drop table old_step_run;
drop table old_step_output;
