-- SPDX-License-Identifier: Apache-2.0
-- The whole store: tables, macros, views. The only DDL.
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
comment on column run.recipe is 'Recipe: star, rejection';
comment on column run.config is 'Resolved config as JSON, as the run began';
comment on column run.identity is 'The identity fields alone as canonical JSON: what may not change';
comment on column run.manifest is 'JSON: versions, git commit, host, devices';
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
comment on column step_run.step is 'setup, generate, verify, rationalize, mix, update, evaluate';
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
comment on column step_output.kind is 'Table of the artefact: trajectory, verdict, training_set, model …';
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
comment on table event is 'What happened to a run: begun, gone on, config changed, split opened, failed, done';
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
    hint varchar
);
comment on table prompt_set is 'Templates that turn a problem into a prompt';
comment on column prompt_set.prompt_set_id is 'Hash of name and templates';
comment on column prompt_set.name is 'Name of the file under configs/prompts';
comment on column prompt_set.plain is 'Template without a hint';
comment on column prompt_set.hint is 'Template with the answer as a hint';

create table prompt (
    prompt_id uuid primary key,
    problem_id uuid not null,
    prompt_set_id uuid not null,
    hinted boolean not null,
    token_ids integer[] not null,
    text varchar not null
);
comment on table prompt is 'A problem as a policy reads it';
comment on column prompt.prompt_id is 'Hash of problem, prompt set, hint and token ids';
comment on column prompt.problem_id is 'The problem';
comment on column prompt.prompt_set_id is 'The templates';
comment on column prompt.hinted is 'True where the answer stands in the prompt; such prompts never train';
comment on column prompt.token_ids is 'Token ids, chat template applied';
comment on column prompt.text is 'The same as text';

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
    loss_mask boolean[]
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
    model_id uuid not null,
    logprob double not null
);
comment on table trajectory_logprob is 'A trajectory scored under a model; key: trajectory_id, model_id';
comment on column trajectory_logprob.trajectory_id is 'The trajectory';
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
comment on column verdict.score is 'Reward, NULL where unjudged';
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
comment on column verdict_component.weight is 'Its weight in the score; 0 for a mere metric';

create table decision (
    step_key uuid not null,
    trajectory_id uuid not null,
    kept boolean not null,
    why varchar not null
);
comment on table decision is 'What a step did with a candidate; key: step_key, trajectory_id';
comment on column decision.step_key is 'The step that decided (rationalize or mix)';
comment on column decision.trajectory_id is 'The candidate';
comment on column decision.kept is 'True where it went on';
comment on column decision.why is 'Reason code: kept, wrong, truncated, duplicate, hint_leak, over_cap …';

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
    tokens integer not null
);
comment on table training_row is 'A row of a training set; key: training_set_id, training_row_id';
comment on column training_row.training_set_id is 'The set';
comment on column training_row.training_row_id is 'Hash of kind, training prompt, contents and weight';
comment on column training_row.position is 'Place in the set, from 0';
comment on column training_row.kind is 'sft, pair or rollout';
comment on column training_row.prompt_id is 'Prompt trained on, never a hinted one';
comment on column training_row.weight is 'Weight in the loss';
comment on column training_row.source is 'Declared source of the mix: round, earlier, rationalized, seed';
comment on column training_row.tokens is 'Tokens that carry loss';

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

-- ── macros ──────────────────────────────────────────────────────────────────────────────────

create macro mint(kind, parts) as
    sha256(kind || '|' || array_to_string(
        list_transform(parts, lambda part: coalesce(part::varchar, '-')), '|'))[1:32]::uuid;
comment on macro mint is 'The id of a thing of a kind (its letter) from its parts, as stages/ids.py mints it';

create macro hash_tokens(token_ids) as sha256(array_to_string(token_ids, ','));
comment on macro hash_tokens is 'SHA-256 of token ids, as stages/ids.py writes them';

create macro pass_at_k(n, c, k) as
    case when n < k then null
         when n - c < k then 1.0
         else 1.0 - coalesce(
             list_product(list_transform(range(n - c + 1, n + 1), lambda i: 1.0 - k / i)), 1.0)
    end;
comment on macro pass_at_k is 'Unbiased pass@k from n samples of which c are right; NULL if n < k';

create macro wilson_low(c, n) as
    case when n > 0 then greatest(0.0,
        ((c + 1.9207294103470618) - 1.959963984540054
            * sqrt(c * (n - c) / n::double + 0.9603647051735309)) / (n + 3.8414588206941236))
    end;
comment on macro wilson_low is 'Lower end of the 95 % Wilson interval for c right out of n';

create macro wilson_high(c, n) as
    case when n > 0 then least(1.0,
        ((c + 1.9207294103470618) + 1.959963984540054
            * sqrt(c * (n - c) / n::double + 0.9603647051735309)) / (n + 3.8414588206941236))
    end;
comment on macro wilson_high is 'Upper end of the 95 % Wilson interval for c right out of n';

-- ── views: the surface users build on ───────────────────────────────────────────────────────

create view trajectory_fate as
with used as (
    select run, id as trajectory_id, round from step_output where kind = 'trajectory' and first
), judged as (
    select s.run, s.round, v.trajectory_id, arg_max(v, v.attempt) as verdict
    from step_output s join verdict v on v.verdict_id = s.id
    where s.kind = 'verdict' and not starts_with(s.step, 'reverify') group by all
), decided as (
    select s.run, d.trajectory_id,
           arg_min(d.kept, 2 * s.round + (s.step <> 'mix')::integer) as kept,
           arg_min(d.why, 2 * s.round + (s.step <> 'mix')::integer) as why
    from step_run s join decision d using (step_key) group by all
), membership as (
    select s.run, r.trajectory_id, list(distinct r.training_set_id) as training_sets
    from step_output s join training_row_trajectory r on r.training_set_id = s.id
    where s.kind = 'training_set' group by all
), trained as (
    select s.run, r.trajectory_id, list(distinct u.model_id) as trained_models
    from step_output s
    join training_update u on u.update_id = s.id
    join training_visit w on w.update_id = u.update_id and w.visits > 0
    join training_row_trajectory r
        on r.training_set_id = u.training_set_id and r.training_row_id = w.training_row_id
    where s.kind = 'training_update' group by all
)
select t.trajectory_id, run, used.round, t.problem_id, t.purpose, t.origin, p.hinted,
       p.text as prompt, t.completion, judged.verdict.status as status,
       judged.verdict.score as score, judged.verdict.reason as reason,
       coalesce(decided.kept, false) as kept,
       case when t.purpose = 'eval' then 'evaluation' else coalesce(decided.why, 'undecided') end
           as why,
       coalesce(membership.training_sets, []) as training_sets,
       coalesce(trained.trained_models, []) as trained_models
from used
join trajectory t using (trajectory_id)
join prompt p using (prompt_id)
left join judged using (run, round, trajectory_id)
left join decided using (run, trajectory_id)
left join membership using (run, trajectory_id)
left join trained using (run, trajectory_id);
comment on view trajectory_fate is
    'One row per (run, trajectory): what it was, how it was judged, where it went';
comment on column trajectory_fate.trajectory_id is 'The trajectory';
comment on column trajectory_fate.run is 'Name of the run';
comment on column trajectory_fate.round is 'Round that sampled or first reused it';
comment on column trajectory_fate.problem_id is 'The problem';
comment on column trajectory_fate.purpose is 'train, rationalize, eval or seed';
comment on column trajectory_fate.origin is 'self, rationalized, seed, human, teacher or outside';
comment on column trajectory_fate.hinted is 'True where it was sampled with the answer as a hint';
comment on column trajectory_fate.prompt is 'Prompt text it was sampled from';
comment on column trajectory_fate.completion is 'Completion text';
comment on column trajectory_fate.status is 'Verdict of that round';
comment on column trajectory_fate.score is 'Score (reward) of that verdict';
comment on column trajectory_fate.reason is 'Reason code of that verdict';
comment on column trajectory_fate.kept is
    'True where that round took it into its training set (seed rows: the first round that chose)';
comment on column trajectory_fate.why is 'Reason code of that decision';
comment on column trajectory_fate.training_sets is 'Training sets of this run that hold it';
comment on column trajectory_fate.trained_models is 'Models of this run whose optimizer visited it';

create view lineage_edge as
select 'problem' as src_kind, t.problem_id as src_id, 'trajectory' as dst_kind, t.trajectory_id as dst_id,
       'asked' as relation, s.run, s.round
from step_output s join trajectory t on t.trajectory_id = s.id
where s.kind = 'trajectory' and s.first
union all
select 'model' as src_kind, t.model_id as src_id, 'trajectory' as dst_kind, t.trajectory_id as dst_id,
       'sampled' as relation, s.run, s.round
from step_output s join trajectory t on t.trajectory_id = s.id
where s.kind = 'trajectory' and s.first and t.model_id is not null
union all
select 'trajectory' as src_kind, p.parent_id as src_id, 'trajectory' as dst_kind, p.trajectory_id as dst_id,
       p.relation as relation, s.run, s.round
from step_output s join trajectory_parent p on p.trajectory_id = s.id
where s.kind = 'trajectory' and s.first
union all
select 'trajectory' as src_kind, v.trajectory_id as src_id, 'verdict' as dst_kind, v.verdict_id as dst_id,
       'judged' as relation, s.run, s.round
from step_output s join verdict v on v.verdict_id = s.id
where s.kind = 'verdict' and s.first
union all
select 'verifier' as src_kind, v.verifier_id as src_id, 'verdict' as dst_kind, v.verdict_id as dst_id,
       'judged_by' as relation, s.run, s.round
from step_output s join verdict v on v.verdict_id = s.id
where s.kind = 'verdict' and s.first
union all
select distinct 'trajectory' as src_kind, x.trajectory_id as src_id, 'training_set' as dst_kind, x.training_set_id as dst_id,
       x.role as relation, s.run, s.round
from step_output s join training_row_trajectory x on x.training_set_id = s.id
where s.kind = 'training_set' and s.first
union all
select 'training_set' as src_kind, u.training_set_id as src_id, 'training_update' as dst_kind, u.update_id as dst_id,
       'data' as relation, s.run, s.round
from step_output s join training_update u on u.update_id = s.id
where s.kind = 'training_update' and s.first
union all
select 'model' as src_kind, u.init_model_id as src_id, 'training_update' as dst_kind, u.update_id as dst_id,
       'init' as relation, s.run, s.round
from step_output s join training_update u on u.update_id = s.id
where s.kind = 'training_update' and s.first
union all
select 'model' as src_kind, u.reference_model_id as src_id, 'training_update' as dst_kind, u.update_id as dst_id,
       'reference' as relation, s.run, s.round
from step_output s join training_update u on u.update_id = s.id
where s.kind = 'training_update' and s.first and u.reference_model_id is not null
union all
select distinct 'trajectory', x.trajectory_id, 'training_update', u.update_id, 'trained', s.run, s.round
from step_output s
join training_update u on u.update_id = s.id
join training_visit v on v.update_id = u.update_id and v.visits > 0
join training_row_trajectory x
    on x.training_set_id = u.training_set_id and x.training_row_id = v.training_row_id
where s.kind = 'training_update' and s.first
union all
select 'training_update', u.update_id, 'model', u.model_id, 'made', s.run, s.round
from step_output s join training_update u on u.update_id = s.id
where s.kind = 'training_update' and s.first
union all
select 'model', e.model_id, 'evaluation', e.evaluation_id, 'measured', s.run, s.round
from step_output s join evaluation e on e.evaluation_id = s.id
where s.kind = 'evaluation' and s.first;
comment on view lineage_edge is 'One row per edge and run: what came from what';
comment on column lineage_edge.src_kind is 'Kind of the source: problem, model, trajectory …';
comment on column lineage_edge.src_id is 'Id of the source';
comment on column lineage_edge.dst_kind is 'Kind of what came from it';
comment on column lineage_edge.dst_id is 'Id of what came from it';
comment on column lineage_edge.relation is
    'asked, sampled, hint, judged, judged_by, completion, data, init, reference, trained, made, measured';
comment on column lineage_edge.run is 'Run that used the destination';
comment on column lineage_edge.round is 'First round of that run that did';

create view model_ancestry as
with recursive walk (model_id, ancestor_id, depth) using key (model_id, ancestor_id) as (
    select distinct model_id, parent_id, 1 from model_parent where model_id <> parent_id
    union
    select w.model_id, p.parent_id, w.depth + 1
    from walk w
    join model_parent p on p.model_id = w.ancestor_id
    left join recurring.walk known
        on known.model_id = w.model_id and known.ancestor_id = p.parent_id
    where p.parent_id <> w.model_id and known.model_id is null
)
select model_id, ancestor_id, depth from walk;
comment on view model_ancestry is
    'One row per (model, ancestor): starts, references and the policies whose trajectories trained it';
comment on column model_ancestry.model_id is 'The model';
comment on column model_ancestry.ancestor_id is 'A model it rests on';
comment on column model_ancestry.depth is 'Least number of updates between them';

create view mix_by_round as
with used as (
    select run, id as trajectory_id, round as origin_round
    from step_output where kind = 'trajectory' and first
), mixed as (
    select s.run, s.round, used.origin_round, t.origin,
           count(distinct r.training_row_id) as rows, sum(r.tokens)::bigint as tokens
    from step_output s
    join training_row r on r.training_set_id = s.id
    join training_row_trajectory x
        on x.training_set_id = r.training_set_id and x.training_row_id = r.training_row_id
        and x.role <> 'rejected'
    join trajectory t using (trajectory_id)
    join used on used.run = s.run and used.trajectory_id = t.trajectory_id
    where s.kind = 'training_set' and s.step = 'mix'
    group by all
)
select run, round, origin_round, origin, rows, tokens,
       rows / sum(rows) over (partition by run, round) as share
from mixed;
comment on view mix_by_round is
    'One row per (run, round, origin_round, origin): what each training set was mixed from';
comment on column mix_by_round.run is 'Name of the run';
comment on column mix_by_round.round is 'Round that trained on it';
comment on column mix_by_round.origin_round is 'Round that sampled the rows';
comment on column mix_by_round.origin is 'self, rationalized, seed, human, teacher or outside';
comment on column mix_by_round.rows is 'Training rows';
comment on column mix_by_round.tokens is 'Tokens that carry loss';
comment on column mix_by_round.share is 'Share of the set''s rows';

create view problem_journey as
with judged as (
    select s.run, s.round, v.trajectory_id, arg_max(v.status, v.attempt) as status
    from step_output s join verdict v on v.verdict_id = s.id
    where s.kind = 'verdict' and not starts_with(s.step, 'reverify') group by all
), counted as (
    select j.run, t.problem_id, j.round, count(*) as n,
           count(*) filter (j.status = 'correct') as correct
    from judged j join trajectory t using (trajectory_id)
    where t.purpose in ('train', 'eval') group by all
), solved as (
    select *, coalesce(max(correct) over (
        partition by run, problem_id order by round
        rows between unbounded preceding and 1 preceding), 0) > 0 as before
    from counted
)
select run, problem_id, round, n, correct,
       case when correct > 0 and before then 'kept'
            when correct > 0 then 'new'
            when before then 'lost'
            else 'never' end as state
from solved;
comment on view problem_journey is
    'One row per (run, problem, round) in which it was answered without a hint';
comment on column problem_journey.run is 'Name of the run';
comment on column problem_journey.problem_id is 'The problem';
comment on column problem_journey.round is 'The round; 0 is the base';
comment on column problem_journey.n is 'Answers judged, hinted ones left out';
comment on column problem_journey.correct is 'Right answers among them';
comment on column problem_journey.state is
    'new: solved for the first time; kept: solved before too; lost: solved before, not now; never: not solved yet';

create view round_summary as
with rounds as (
    select run, round, sum(wall_s) as wall_s from step_run group by all
), measured as (
    select s.run, s.round, any_value(e.model_id) as model_id, any_value(e.n) as n,
           max(m.value) filter (m.name = 'pass_at_1') as pass_at_1,
           max(m.low) filter (m.name = 'pass_at_1') as low,
           max(m.high) filter (m.name = 'pass_at_1') as high,
           max(m.bound) filter (m.name = 'pass_at_1') as bound,
           max(m.k) filter (m.name = 'pass_at_k') as k,
           max(m.value) filter (m.name = 'pass_at_k') as pass_at_k,
           max(m.value) filter (m.name = 'maj_at_k') as maj_at_k
    from step_output s
    join evaluation e on e.evaluation_id = s.id
    join metric m on m.evaluation_id = e.evaluation_id and m.slice = 'all'
    where s.kind = 'evaluation' and s.step = 'evaluate' group by all
), made as (
    select s.run, s.round, any_value(u.model_id) as model_id
    from step_output s join training_update u on u.update_id = s.id
    where s.kind = 'training_update' group by all
), first_use as (
    select run, id as trajectory_id, round from step_output where kind = 'trajectory' and first
), decided as (
    select s.run, s.round,
           count(*) filter (d.kept and t.origin = 'self' and s.step = 'mix') as kept,
           count(*) filter (d.kept and t.origin = 'rationalized' and s.step = 'mix')
               as rationalized,
           count(*) filter (d.why = 'hint_leak' and s.step = 'rationalize') as hint_leaks
    from step_run s
    join decision d using (step_key)
    join first_use f on f.run = s.run and f.round = s.round
        and f.trajectory_id = d.trajectory_id
    join trajectory t on t.trajectory_id = d.trajectory_id
    group by all
), judged as (
    select s.run, s.round, v.trajectory_id, arg_max(v.status, v.attempt) as status
    from step_output s join verdict v on v.verdict_id = s.id
    where s.kind = 'verdict' and not starts_with(s.step, 'reverify') group by all
), unjudged as (
    select run, round, count(*) filter (status = 'unjudged') as unjudged
    from judged group by all
), sampled as (
    select s.run, s.round, sum(len(t.token_ids))::bigint as tokens
    from step_output s join trajectory t on t.trajectory_id = s.id
    where s.kind = 'trajectory' and not s.reused and t.purpose in ('train', 'rationalize')
    group by all
)
select run, round, coalesce(measured.model_id, made.model_id) as model_id,
       pass_at_1, low, high, k, pass_at_k, maj_at_k, n,
       coalesce(kept, 0) as kept, coalesce(rationalized, 0) as rationalized,
       coalesce(hint_leaks, 0) as hint_leaks, coalesce(unjudged, 0) as unjudged,
       coalesce(tokens, 0) as tokens, wall_s, bound
from rounds
left join measured using (run, round)
left join made using (run, round)
left join decided using (run, round)
left join unjudged using (run, round)
left join sampled using (run, round);
comment on view round_summary is 'One row per (run, round); round 0 is the base';
comment on column round_summary.run is 'Name of the run';
comment on column round_summary.round is 'The round';
comment on column round_summary.model_id is 'Model measured at its end';
comment on column round_summary.pass_at_1 is 'Held-out pass@1';
comment on column round_summary.low is 'Lower end of its 95 % interval over problems';
comment on column round_summary.high is 'Upper end of its 95 % interval over problems';
comment on column round_summary.k is 'k of the next two columns';
comment on column round_summary.pass_at_k is 'Held-out pass@k, unbiased';
comment on column round_summary.maj_at_k is 'Held-out majority vote over k samples';
comment on column round_summary.n is 'Samples per held-out problem';
comment on column round_summary.kept is 'This round''s own answers that went into its training set';
comment on column round_summary.rationalized is 'This round''s rationalized rows that did';
comment on column round_summary.hint_leaks is 'Rationalized rows rejected because the hint showed';
comment on column round_summary.unjudged is 'Answers that could not be judged';
comment on column round_summary.tokens is 'Tokens sampled for training in this round, reused slots not counted';
comment on column round_summary.wall_s is 'Seconds of all its steps';
comment on column round_summary.bound is 'Held-out pass@1 with unjudged answers counted as wrong';
