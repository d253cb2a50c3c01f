-- SPDX-License-Identifier: Apache-2.0
-- The store's tables. Macros and views, the surface users build on, are in surface.sql.
--
-- Fact tables are append-only. What was computed (artefact tables, keyed by content ids) stays
-- apart from when it ran and who used it (run, step_run, step_output, event). Large tables carry
-- no index; their key is held by the insert (store/queries/insert.sql) and named in the comment.

-- ── who and when ────────────────────────────────────────────────────────────────────────────

create table store_info (
    version integer not null,
    created_by varchar not null
);
comment on table store_info is 'One row: which schema this file has';
comment on column store_info.version is 'Number of the schema';
comment on column store_info.created_by is 'starloop version that created the file';

create table run (
    run_id uuid primary key,
    name varchar not null,
    recipe varchar not null,
    config varchar not null,
    identity varchar not null,
    manifest varchar not null,
    forked_from uuid,
    forked_at_round integer,
    created_at timestamptz not null
);
comment on table run is 'A run: one recipe with one identity config';
comment on column run.run_id is 'Id of the run, from its name';
comment on column run.name is 'Name, unique in this store';
comment on column run.recipe is 'Recipe: star, rejection, dpo, grpo; import for rows from files';
comment on column run.config is 'Resolved config as JSON, as the run began';
comment on column run.identity is 'The identity fields alone as canonical JSON: what may not change';
comment on column run.manifest is 'JSON: versions, git commit, host, accelerators';
comment on column run.forked_from is 'Run that this one was forked from';
comment on column run.forked_at_round is 'Last round taken over from that run';
comment on column run.created_at is 'When the run began';

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
comment on table step_run is 'A committed step: it is never done again';
comment on column step_run.run_id is 'The run';
comment on column step_run.run is
    'Its name, repeated here so that a question about one run reads that run''s rows alone';
comment on column step_run.round is 'Round, from 1; 0 is the base';
comment on column step_run.refresh is 'Refresh of the policy within the round, from 0';
comment on column step_run.step is 'setup, admit, generate, verify, rationalize, mix, score, update, watch, hand_over, evaluate; import; reverify …: judged anew';
comment on column step_run.step_key is 'What the step computes: stage, version, inputs, identity config';
comment on column step_run.reused is 'True where another run had committed the same key';
comment on column step_run.started_at is 'When the step began (the last try)';
comment on column step_run.wall_s is 'Seconds from begin to commit, of the last try';
comment on column step_run.work_s is 'Seconds of those inside the sampler, verifier or updater';

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
comment on table step_output is
    'Which run used which artefact where; key: run_id, round, refresh, step, kind, id';
comment on column step_output.run_id is 'The run';
comment on column step_output.run is 'Its name, repeated here as in step_run';
comment on column step_output.round is 'Round of the step';
comment on column step_output.refresh is 'Refresh of the step';
comment on column step_output.step is 'Step that made or found the artefact';
comment on column step_output.kind is 'Table of the artefact: trajectory, verdict, training_set, model …; reference: a model that losses compare with';
comment on column step_output.id is 'Id of the artefact';
comment on column step_output.reused is 'True where it was in the store already';
comment on column step_output.first is 'True where this run had not used it in an earlier step';

create table event (
    run_id uuid,
    round integer,
    refresh integer,
    happened_at timestamptz not null,
    kind varchar not null,
    message varchar not null,
    detail varchar
);
comment on table event is 'What happened to a run: begun, forked, gone on, config changed, split opened, freed, reset of reference and optimizer, alarm, held or stopped by one, done';
comment on column event.run_id is 'The run, NULL for the store itself';
comment on column event.round is 'Round at the time';
comment on column event.refresh is 'Refresh at the time';
comment on column event.happened_at is 'When';
comment on column event.kind is 'Word for the kind of event';
comment on column event.message is 'One sentence for a person';
comment on column event.detail is 'JSON with the particulars';

-- ── what was computed ───────────────────────────────────────────────────────────────────────

create table model (
    model_id uuid primary key,
    origin varchar not null check (origin in ('outside', 'update')),
    architecture varchar not null,
    parameters bigint,
    base_model_id uuid,
    path varchar not null
);
comment on table model is 'A policy or reference, by content';
comment on column model.model_id is 'Hash of weights, tokenizer, chat template and config';
comment on column model.origin is 'outside: came from elsewhere; update: made by a training_update';
comment on column model.architecture is 'Architecture named in its config';
comment on column model.parameters is 'Number of parameters, where known';
comment on column model.base_model_id is 'Base of an adapter (LoRA), else NULL';
comment on column model.path is 'Folder, relative to the store''s folder where it lies below it';

create table problem (
    problem_id uuid primary key,
    task varchar not null,
    split varchar not null,
    question varchar not null,
    answer varchar not null,
    domain varchar,
    difficulty double,
    template varchar,
    parent_problem_id uuid,
    made_in_round integer
);
comment on table problem is 'A question with its reference answer';
comment on column problem.problem_id is 'Hash of task, question and answer';
comment on column problem.task is 'Task that gave it';
comment on column problem.split is 'train, dev or test; held-out splits share no problem with train';
comment on column problem.question is 'The question as text';
comment on column problem.answer is 'The reference answer';
comment on column problem.domain is 'Subject area within the task';
comment on column problem.difficulty is 'On the task''s own scale; addition: digits of each operand';
comment on column problem.template is 'Template that generated it, where one did';
comment on column problem.parent_problem_id is 'Problem it was varied from';
comment on column problem.made_in_round is 'Round that wrote it, for problems made by a run';

create table prompt_set (
    prompt_set_id uuid primary key,
    name varchar not null,
    plain varchar not null,
    hint varchar,
    config varchar
);
comment on table prompt_set is 'Templates that turn a problem into a prompt';
comment on column prompt_set.prompt_set_id is 'Hash of name and templates';
comment on column prompt_set.name is 'Name of the file under configs/prompts';
comment on column prompt_set.plain is 'Template without a hint';
comment on column prompt_set.hint is 'Template with the answer as a hint';
comment on column prompt_set.config is 'System prompt, worked examples and the like as JSON, NULL where there is none';

create table prompt (
    prompt_id uuid primary key,
    problem_id uuid not null,
    prompt_set_id uuid not null,
    hinted boolean not null,
    token_ids integer[] not null,
    text varchar not null,
    shots bigint,
    messages varchar
);
comment on table prompt is 'A problem as a policy reads it';
comment on column prompt.prompt_id is 'Hash of problem, prompt set, hint and token ids';
comment on column prompt.problem_id is 'The problem';
comment on column prompt.prompt_set_id is 'The templates';
comment on column prompt.hinted is 'True where the answer stands in the prompt; such prompts never train';
comment on column prompt.token_ids is 'Token ids, chat template applied';
comment on column prompt.text is 'The same as text';
comment on column prompt.shots is 'Worked examples before the question, NULL for none';
comment on column prompt.messages is 'The chat it was written from, JSON list of [role, text]; NULL for plain text';

create table sampling (
    sampling_id uuid primary key,
    temperature double not null,
    top_p double not null,
    top_k integer not null,
    max_tokens integer not null,
    config varchar not null
);
comment on table sampling is 'Sampling parameters';
comment on column sampling.sampling_id is 'Hash of config';
comment on column sampling.temperature is 'Temperature; 0 is greedy';
comment on column sampling.top_p is 'Nucleus; 1 cuts nothing';
comment on column sampling.top_k is 'Top-k; 0 cuts nothing';
comment on column sampling.max_tokens is 'Most completion tokens';
comment on column sampling.config is 'All parameters as canonical JSON';

create table trajectory (
    trajectory_id uuid not null,
    content_id uuid not null,
    problem_id uuid not null,
    prompt_id uuid not null,
    model_id uuid,
    sampling_id uuid,
    purpose varchar not null check (purpose in ('train', 'rationalize', 'eval', 'seed')),
    origin varchar not null
        check (origin in ('self', 'rationalized', 'seed', 'human', 'teacher', 'outside')),
    seed bigint,
    slot integer not null,
    completion varchar not null using compression zstd,
    token_ids integer[] not null,
    logprobs float[],
    finish_reason varchar not null check (finish_reason in ('stop', 'length')),
    engine varchar,
    engine_version varchar,
    dtype varchar,
    weight_version varchar,
    group_id uuid,
    loss_mask boolean[],
    from_text boolean
);
comment on table trajectory is 'One filled slot: a completion of a prompt; key: trajectory_id';
comment on column trajectory.trajectory_id is 'The slot: problem, prompt, policy, sampling, purpose, seed, number';
comment on column trajectory.content_id is 'Hash of prompt and completion token ids';
comment on column trajectory.problem_id is 'The problem';
comment on column trajectory.prompt_id is 'The prompt it was sampled from (hinted for rationalized rows)';
comment on column trajectory.model_id is 'The policy, NULL where none sampled it';
comment on column trajectory.sampling_id is 'Sampling parameters, NULL where no policy sampled it';
comment on column trajectory.purpose is 'train, rationalize, eval or seed';
comment on column trajectory.origin is 'self, rationalized, seed, human, teacher or outside';
comment on column trajectory.seed is 'Seed of this slot';
comment on column trajectory.slot is 'Number of the slot among those of its prompt';
comment on column trajectory.completion is 'Completion as text, end token aside';
comment on column trajectory.token_ids is 'Completion token ids as sampled, end token included';
comment on column trajectory.logprobs is 'One log-probability (nats) per token under the distribution sampled from';
comment on column trajectory.finish_reason is 'stop: the end token came; length: cut off, never trained on';
comment on column trajectory.engine is 'Sampler that filled the slot';
comment on column trajectory.engine_version is 'Version of that engine';
comment on column trajectory.dtype is 'Number format of the weights while sampling';
comment on column trajectory.weight_version is 'Weight version the engine reported';
comment on column trajectory.group_id is 'Group of trajectories judged against each other';
comment on column trajectory.loss_mask is 'True for tokens that carry loss; NULL means all of them';
comment on column trajectory.from_text is 'True where the engine gave text alone and the ids are read from it';

create table trajectory_parent (
    trajectory_id uuid not null,
    parent_id uuid not null,
    relation varchar not null check (relation in ('hint', 'revision', 'turn'))
);
comment on table trajectory_parent is 'A trajectory that another one came from; key: all columns';
comment on column trajectory_parent.trajectory_id is 'The later trajectory';
comment on column trajectory_parent.parent_id is 'The earlier trajectory';
comment on column trajectory_parent.relation is 'hint: the failed try it rationalizes; revision; turn';

create table trajectory_logprob (
    trajectory_id uuid not null,
    prompt_id uuid not null,
    model_id uuid not null,
    logprob double not null
);
comment on table trajectory_logprob is 'A trajectory scored under a model; key: trajectory_id, prompt_id, model_id';
comment on column trajectory_logprob.trajectory_id is 'The trajectory';
comment on column trajectory_logprob.prompt_id is 'The prompt it was scored after: the one it is trained on';
comment on column trajectory_logprob.model_id is 'The model that scored it';
comment on column trajectory_logprob.logprob is 'Summed log-probability of the completion, nats';

create table verifier (
    verifier_id uuid primary key,
    name varchar not null,
    version varchar not null,
    config varchar not null
);
comment on table verifier is 'A checker of completions';
comment on column verifier.verifier_id is 'Hash of name, version and config';
comment on column verifier.name is 'Name of the plug-in';
comment on column verifier.version is 'Its version, raised when its judgements change';
comment on column verifier.config is 'Its config as canonical JSON';

create table verdict (
    verdict_id uuid not null,
    trajectory_id uuid not null,
    verifier_id uuid not null,
    attempt integer not null,
    status varchar not null check (status in ('correct', 'wrong', 'unjudged')),
    score double,
    extracted varchar,
    reason varchar not null,
    trust varchar not null,
    isolation varchar not null
);
comment on table verdict is 'A judgement of a trajectory; a trajectory may have many; key: verdict_id';
comment on column verdict.verdict_id is 'Hash of trajectory, content, verifier and attempt';
comment on column verdict.trajectory_id is 'The trajectory judged';
comment on column verdict.verifier_id is 'The verifier';
comment on column verdict.attempt is 'Number of the try, from 0; more than 0 after failures on our side';
comment on column verdict.status is 'correct; wrong: the model''s doing; unjudged: our side failed';
comment on column verdict.score is 'Reward, NULL where unjudged; in a control arm that of the arm';
comment on column verdict.extracted is 'The answer found in the completion';
comment on column verdict.reason is 'Reason code: match, mismatch, no_answer, two_answers, truncated …';
comment on column verdict.trust is 'strong or weak: how hard the check is to fool';
comment on column verdict.isolation is 'How model text was run: none where it was only parsed';

create table verdict_component (
    verdict_id uuid not null,
    component varchar not null,
    value double not null,
    weight double not null
);
comment on table verdict_component is 'A named part of a score; key: verdict_id, component';
comment on column verdict_component.verdict_id is 'The verdict';
comment on column verdict_component.component is 'Name of the part';
comment on column verdict_component.value is 'Its value';
comment on column verdict_component.weight is 'Its weight in the sum, 1 in all and any, 0 for a mere metric';

create table decision (
    step_key uuid not null,
    trajectory_id uuid not null,
    source varchar not null,
    kept boolean not null,
    why varchar not null
);
comment on table decision is 'What a step did with a candidate; key: step_key, trajectory_id';
comment on column decision.step_key is 'The step that decided (rationalize or mix)';
comment on column decision.trajectory_id is 'The candidate';
comment on column decision.source is
    'Declared source it stood for: round, rationalized, earlier (an earlier round), seed';
comment on column decision.kept is 'True where it went on';
comment on column decision.why is 'Reason code: kept, wrong, truncated, duplicate, hint_leak, over_cap …';

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
comment on table problem_decision is 'A problem that a step left out or warned of; key: step_key, problem_id, why, place, other_id';
comment on column problem_decision.step_key is 'Key of the step that decided';
comment on column problem_decision.problem_id is 'The problem';
comment on column problem_decision.why is 'Reason: no_question, no_answer, not_a_row, duplicate, two_answers, reference_refused, contaminated, too_long';
comment on column problem_decision.place is 'File and line it was read from, empty if from none';
comment on column problem_decision.other_id is 'The problem that it repeats or overlaps, else itself';
comment on column problem_decision.kept is 'True for a warning alone';
comment on column problem_decision.rule is 'Rules of overlap that hold, NULL for other reasons';
comment on column problem_decision.share is 'Share of its 8-grams found in the other problem, NULL without such a rule';

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
comment on table hand_over is 'Sampler and trainer compared on a model; key: step_key';
comment on column hand_over.step_key is 'Key of the step that compared';
comment on column hand_over.model_id is 'The model';
comment on column hand_over.engine is 'Sampler';
comment on column hand_over.engine_version is 'Version of the sampler';
comment on column hand_over.dtype is 'Number format of the weights in the sampler';
comment on column hand_over.trainer_dtype is 'Number format of the weights in the trainer';
comment on column hand_over.prompts is 'Prompts answered';
comment on column hand_over.tokens is 'Completion tokens compared';
comment on column hand_over.mean_gap is 'Mean difference of log-probabilities, nats a token';
comment on column hand_over.max_gap is 'Largest difference, nats';
comment on column hand_over.threshold is 'Mean gap above which a run stops';

create table training_set (
    training_set_id uuid primary key,
    rows bigint not null,
    tokens bigint not null
);
comment on table training_set is 'The rows of one update, by content';
comment on column training_set.training_set_id is 'Hash of its rows in order';
comment on column training_set.rows is 'Number of rows';
comment on column training_set.tokens is 'Tokens that carry loss, one pass';

create table training_row (
    training_set_id uuid not null,
    training_row_id uuid not null,
    position integer not null,
    kind varchar not null check (kind in ('sft', 'pair', 'rollout')),
    prompt_id uuid not null,
    weight double not null,
    source varchar not null,
    tokens integer not null,
    policy_age integer
);
comment on table training_row is 'A row of a training set; key: training_set_id, training_row_id';
comment on column training_row.training_set_id is 'The set';
comment on column training_row.training_row_id is 'Hash of kind, training prompt, contents and weight';
comment on column training_row.position is 'Place in the set, from 0';
comment on column training_row.kind is 'sft, pair or rollout';
comment on column training_row.prompt_id is 'Prompt trained on, never a hinted one';
comment on column training_row.weight is 'Weight in the loss; of a rollout its advantage, else its reward';
comment on column training_row.source is 'Declared source of the mix: round, earlier, rationalized, seed; import';
comment on column training_row.tokens is 'Tokens that carry loss';
comment on column training_row.policy_age is 'Updates between the policy that sampled it and the one it trains; NULL where none of the run did';

create table training_row_trajectory (
    training_set_id uuid not null,
    training_row_id uuid not null,
    trajectory_id uuid not null,
    role varchar not null check (role in ('completion', 'chosen', 'rejected')),
    reward double,
    advantage double
);
comment on table training_row_trajectory is
    'The trajectories behind a training row; key: all columns but reward and advantage';
comment on column training_row_trajectory.training_set_id is 'The set';
comment on column training_row_trajectory.training_row_id is 'The row';
comment on column training_row_trajectory.trajectory_id is 'The trajectory';
comment on column training_row_trajectory.role is 'completion, chosen or rejected';
comment on column training_row_trajectory.reward is 'Reward it was given';
comment on column training_row_trajectory.advantage is 'Advantage, for rollouts';

create table training_update (
    update_id uuid primary key,
    init_model_id uuid not null,
    reference_model_id uuid,
    training_set_id uuid not null,
    optimizer_from uuid,
    updater varchar not null,
    config varchar not null,
    seed bigint not null,
    steps_planned integer not null,
    steps_done integer not null,
    model_id uuid not null,
    loss double
);
comment on table training_update is 'One update of a policy';
comment on column training_update.update_id is
    'Hash of start, reference, set, config, seed, steps and the model that came out';
comment on column training_update.init_model_id is 'Model the update started from';
comment on column training_update.reference_model_id is 'Reference model, for losses that have one';
comment on column training_update.training_set_id is 'Its data';
comment on column training_update.optimizer_from is 'Update whose optimizer state was carried on';
comment on column training_update.updater is 'Plug-in that trained';
comment on column training_update.config is 'Its config as canonical JSON';
comment on column training_update.seed is 'Seed of data order and dropout';
comment on column training_update.steps_planned is 'Optimizer steps planned';
comment on column training_update.steps_done is 'Optimizer steps done';
comment on column training_update.model_id is 'The model that came out';
comment on column training_update.loss is 'Mean training loss over the last tenth of the steps';

create table model_parent (
    model_id uuid not null,
    parent_id uuid not null,
    relation varchar not null check (relation in ('init', 'reference', 'policy')),
    update_id uuid not null
);
comment on table model_parent is
    'What an update''s model rests on directly; key: update_id, parent_id, relation';
comment on column model_parent.model_id is 'The model that came out';
comment on column model_parent.parent_id is 'The model it rests on';
comment on column model_parent.relation is
    'init: the start; reference; policy: sampled a trajectory that the optimizer visited';
comment on column model_parent.update_id is 'The update between them';

create table training_visit (
    update_id uuid not null,
    training_row_id uuid not null,
    visits integer not null
);
comment on table training_visit is 'How often an update visited a row; key: update_id, training_row_id';
comment on column training_visit.update_id is 'The update';
comment on column training_visit.training_row_id is 'The row';
comment on column training_visit.visits is 'Times the optimizer saw it; 0 means it did not train the model';

create table training_metric (
    update_id uuid not null,
    step integer not null,
    name varchar not null,
    value double not null
);
comment on table training_metric is 'What the trainer measured on an optimizer step; key: update_id, step, name';
comment on column training_metric.update_id is 'The update';
comment on column training_metric.step is 'Optimizer step of it, from 1';
comment on column training_metric.name is 'As the trainer names it: loss, grad_norm, entropy, rewards/margins, logps/chosen …';
comment on column training_metric.value is 'The value, a mean over the step''s rows where it is of rows';

create table monitor (
    step_key uuid not null,
    name varchar not null,
    slice varchar not null,
    value double not null
);
comment on table monitor is 'What a refresh''s answers look like; key: step_key, name, slice';
comment on column monitor.step_key is 'The step that measured';
comment on column monitor.name is 'length, entropy, truncated, repetition, mixed, reward_mean, kl_reference_k3 …';
comment on column monitor.slice is 'all, or a part: correct, wrong';
comment on column monitor.value is 'The value';

create table evaluation (
    evaluation_id uuid primary key,
    model_id uuid not null,
    task varchar not null,
    split varchar not null,
    sampling_id uuid not null,
    verifier_id uuid not null,
    n integer not null,
    problems integer not null
);
comment on table evaluation is 'A model measured on a set of problems';
comment on column evaluation.evaluation_id is 'Hash of model, problems, sampling, verifier, n, k and seed';
comment on column evaluation.model_id is 'The model';
comment on column evaluation.task is 'The task';
comment on column evaluation.split is 'dev or test';
comment on column evaluation.sampling_id is 'Sampling parameters';
comment on column evaluation.verifier_id is 'The verifier';
comment on column evaluation.n is 'Samples per problem';
comment on column evaluation.problems is 'Number of problems';

create table metric (
    evaluation_id uuid not null,
    name varchar not null,
    slice varchar not null,
    k integer,
    value double,
    low double,
    high double,
    bound double,
    problems integer not null,
    samples integer not null,
    primary key (evaluation_id, name, slice)
);
comment on table metric is 'One number of an evaluation';
comment on column metric.evaluation_id is 'The evaluation';
comment on column metric.name is 'pass_at_1, pass_at_k, maj_at_k, truncated, no_answer, length';
comment on column metric.slice is 'all, or a part such as difficulty=3';
comment on column metric.k is 'k of pass@k and maj@k';
comment on column metric.value is 'The value, unjudged samples left out';
comment on column metric.low is 'Lower end of the 95 % interval over problems';
comment on column metric.high is 'Upper end of the 95 % interval over problems';
comment on column metric.bound is 'The value with unjudged samples counted as wrong';
comment on column metric.problems is 'Problems behind the value';
comment on column metric.samples is 'Samples behind the value';
