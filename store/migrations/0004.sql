-- Trajectories are scored after the prompt they are trained on; updates keep what each step
-- measured, refreshes what their answers look like; training rows know how old their policy is.
drop table trajectory_logprob;  -- nothing has written to it
create table trajectory_logprob (
    trajectory_id uuid not null,
    prompt_id uuid not null,
    model_id uuid not null,
    logprob double not null
);

alter table training_row add column policy_age integer;

create table training_metric (
    update_id uuid not null,
    step integer not null,
    name varchar not null,
    value double not null
);

create table monitor (
    step_key uuid not null,
    name varchar not null,
    slice varchar not null,
    value double not null
);
