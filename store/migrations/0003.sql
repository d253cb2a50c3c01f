-- Prompts have worked examples and the chat they were written from; trajectories say whether an
-- engine gave text alone; steps say which problems they left out, and how sampler and trainer agree.
alter table prompt_set add column config varchar;
alter table prompt add column shots bigint;
alter table prompt add column messages varchar;
alter table trajectory add column from_text boolean;

create table problem_decision (
    step_key uuid not null,
    problem_id uuid not null,
    why varchar not null check (why in ('no_question', 'no_answer', 'not_a_row', 'duplicate',
        'two_answers', 'reference_refused', 'contaminated', 'too_long')),
    place varchar not null,
    other_id uuid not null,
    kept boolean not null,
    rule varchar,
    share double
);

create table hand_over (
    step_key uuid not null,
    model_id uuid not null,
    engine varchar not null,
    engine_version varchar not null,
    dtype varchar not null,
    trainer_dtype varchar not null,
    prompts bigint not null,
    tokens bigint not null,
    mean_gap double not null,
    max_gap double not null,
    threshold double not null
);
