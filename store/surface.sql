-- SPDX-License-Identifier: Apache-2.0
-- The surface users build on: scalar macros, views, table macros. Made anew by every migration.
--
-- A view's filter on `run` reaches the rows of that run alone, so a question about one run costs
-- what the run holds, whatever else the store does.

-- ── macros ──────────────────────────────────────────────────────────────────────────────────

create or replace macro mint(kind, parts) as
    sha256(kind || '|' || array_to_string(
        list_transform(parts, lambda part: coalesce(part::varchar, '-')), '|'))[1:32]::uuid;
comment on macro mint is 'The id of a thing of a kind (its letter) from its parts, as stages/ids.py mints it';

create or replace macro hash_tokens(token_ids) as sha256(array_to_string(token_ids, ','));
comment on macro hash_tokens is 'SHA-256 of token ids, as stages/ids.py writes them';

create or replace macro pass_at_k(n, c, k) as
    case when n < k then null
         when n - c < k then 1.0
         else 1.0 - coalesce(
             list_product(list_transform(range(n - c + 1, n + 1), lambda i: 1.0 - k / i)), 1.0)
    end;
comment on macro pass_at_k is 'Unbiased pass@k from n samples of which c are right; NULL if n < k';

create or replace macro wilson_low(c, n) as
    case when n > 0 then greatest(0.0,
        ((c + 1.9207294103470618) - 1.959963984540054
            * sqrt(c * (n - c) / n::double + 0.9603647051735309)) / (n + 3.8414588206941236))
    end;
comment on macro wilson_low is 'Lower end of the 95 % Wilson interval for c right out of n';

create or replace macro wilson_high(c, n) as
    case when n > 0 then least(1.0,
        ((c + 1.9207294103470618) + 1.959963984540054
            * sqrt(c * (n - c) / n::double + 0.9603647051735309)) / (n + 3.8414588206941236))
    end;
comment on macro wilson_high is 'Upper end of the 95 % Wilson interval for c right out of n';

-- ── views: the surface users build on ───────────────────────────────────────────────────────

create or replace view trajectory_fate as
with used as (
    select run, id as trajectory_id, round from step_output where kind = 'trajectory' and first
), judged as (
    select s.run, s.round, v.trajectory_id, arg_max(v, v.attempt) as verdict
    from step_output s join verdict v on v.verdict_id = s.id
    where s.kind = 'verdict' and not starts_with(s.step, 'reverify') group by all
), decided as (
    select s.run, d.trajectory_id,
           arg_min(d.kept, 2 * s.round + (s.step <> 'mix')::integer)
               filter (d.source <> 'earlier') as kept,
           arg_min(d.why, 2 * s.round + (s.step <> 'mix')::integer)
               filter (d.source <> 'earlier') as why
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

create or replace view lineage_edge as
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

create or replace view model_ancestry as
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

create or replace view mix_by_round as
with used as (
    select run, id as trajectory_id, round as origin_round
    from step_output where kind = 'trajectory' and first
), mixed as (
    select s.run, s.round, s.refresh, used.origin_round, t.origin,
           count(distinct r.training_row_id) as rows, sum(r.tokens)::bigint as tokens,
           sum(r.policy_age) as ages, count(r.policy_age) as aged
    from step_output s
    join training_row r on r.training_set_id = s.id
    join training_row_trajectory x
        on x.training_set_id = r.training_set_id and x.training_row_id = r.training_row_id
        and x.role <> 'rejected'
    join trajectory t using (trajectory_id)
    join used on used.run = s.run and used.trajectory_id = t.trajectory_id
    where s.kind = 'training_set' and s.step = 'mix'
    group by all
), summed as (  -- a row that two refreshes trained on counts in both sets
    select run, round, origin_round, origin, sum(rows)::bigint as rows,
           sum(tokens)::bigint as tokens, sum(ages) / nullif(sum(aged), 0) as policy_age
    from mixed group by all
)
select run, round, origin_round, origin, rows, tokens,
       rows / sum(rows) over (partition by run, round) as share, policy_age
from summed;
comment on view mix_by_round is
    'One row per (run, round, origin_round, origin): what each training set was mixed from';
comment on column mix_by_round.run is 'Name of the run';
comment on column mix_by_round.round is 'Round that trained on it';
comment on column mix_by_round.origin_round is 'Round that sampled the rows';
comment on column mix_by_round.origin is 'self, rationalized, seed, human, teacher or outside';
comment on column mix_by_round.rows is 'Training rows';
comment on column mix_by_round.tokens is 'Tokens that carry loss';
comment on column mix_by_round.share is 'Share of the set''s rows';
comment on column mix_by_round.policy_age is 'Mean count of updates between the policy that sampled them and the one they train';

create or replace view problem_outcome as
with judged as (
    select s.run, s.round, t.purpose, t.problem_id, t.trajectory_id,
           arg_max(v.status, v.attempt) as status
    from step_output s
    join verdict v on v.verdict_id = s.id
    join trajectory t on t.trajectory_id = v.trajectory_id
    where s.kind = 'verdict' and not starts_with(s.step, 'reverify')
      and t.purpose in ('train', 'eval')
    group by all
)
select run, round, purpose, problem_id,
       count(*) filter (status <> 'unjudged') as n,
       count(*) filter (status = 'correct') as correct,
       count(*) filter (status = 'unjudged') as unjudged
from judged group by all;
comment on view problem_outcome is
    'One row per (run, round, purpose, problem): answers without a hint, and the right ones';
comment on column problem_outcome.run is 'Name of the run';
comment on column problem_outcome.round is 'The round; 0 is the base';
comment on column problem_outcome.purpose is 'train or eval';
comment on column problem_outcome.problem_id is 'The problem';
comment on column problem_outcome.n is 'Answers judged';
comment on column problem_outcome.correct is 'Right answers among them';
comment on column problem_outcome.unjudged is 'Answers that could not be judged';

create or replace view problem_journey as
with counted as (
    select run, problem_id, round, sum(n + unjudged)::bigint as n, sum(correct)::bigint as correct
    from problem_outcome group by all
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

create or replace view pass_rate_histogram as
with binned as (
    select run, round, purpose,
           case when correct = 0 then 0 when correct = n then 11 else 1 + correct * 10 // n end as bin
    from problem_outcome where n > 0
), summed as (
    select run, round, purpose, bin, count(*) as problems from binned group by all
)
select run, round, purpose, bin,
       case when bin = 0 then 0.0 when bin = 11 then 1.0 else (bin - 1) / 10 end as low,
       case when bin = 0 then 0.0 when bin = 11 then 1.0 else bin / 10 end as high,
       problems, problems / sum(problems) over (partition by run, round, purpose) as share
from summed;
comment on view pass_rate_histogram is
    'One row per (run, round, purpose, bin) that holds a problem: how many problems have which pass rate';
comment on column pass_rate_histogram.run is 'Name of the run';
comment on column pass_rate_histogram.round is 'The round; 0 is the base';
comment on column pass_rate_histogram.purpose is 'train or eval, hinted answers left out';
comment on column pass_rate_histogram.bin is '0 never solved, 1 to 10 tenths between, 11 always solved';
comment on column pass_rate_histogram.low is 'Least pass rate of the bin';
comment on column pass_rate_histogram.high is 'Pass rate that the bin stays below; 0 and 1 for bins 0 and 11';
comment on column pass_rate_histogram.problems is 'Problems in the bin';
comment on column pass_rate_histogram.share is 'Their share of the problems that were judged';

create or replace view difficulty_coverage as
select c.run, c.round, c.purpose, p.domain, p.difficulty, count(*) as problems,
       sum(c.n)::bigint as n, sum(c.correct)::bigint as correct,
       avg(c.correct / c.n) as pass_rate,
       count(*) filter (c.correct between 1 and c.n - 1) as mixed,
       count(*) filter (c.correct = 0) as never
from problem_outcome c join problem p using (problem_id) where c.n > 0 group by all;
comment on view difficulty_coverage is
    'One row per (run, round, purpose, domain, difficulty): what was asked there, and how it went';
comment on column difficulty_coverage.run is 'Name of the run';
comment on column difficulty_coverage.round is 'The round; 0 is the base';
comment on column difficulty_coverage.purpose is 'train or eval, hinted answers left out';
comment on column difficulty_coverage.domain is 'Domain of the problems, NULL where they have none';
comment on column difficulty_coverage.difficulty is 'Difficulty on the scale of the task, NULL where there is none';
comment on column difficulty_coverage.problems is 'Problems answered';
comment on column difficulty_coverage.n is 'Answers judged';
comment on column difficulty_coverage.correct is 'Right answers among them';
comment on column difficulty_coverage.pass_rate is 'Mean pass rate over problems';
comment on column difficulty_coverage.mixed is 'Problems with right and wrong answers';
comment on column difficulty_coverage.never is 'Problems without a right answer';

create or replace view round_summary as
with rounds as (
    select run, round, sum(wall_s) as wall_s
    from step_run where not starts_with(step, 'reverify') group by all
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
    select s.run, s.round, arg_max(u.model_id, s.refresh) as model_id
    from step_output s join training_update u on u.update_id = s.id
    where s.kind = 'training_update' group by all
), decided as (
    select s.run, s.round,
           count(*) filter (d.kept and d.source = 'round' and s.step = 'mix') as kept,
           count(*) filter (d.kept and d.source = 'rationalized' and s.step = 'mix')
               as rationalized,
           count(*) filter (d.why = 'hint_leak' and s.step = 'rationalize') as hint_leaks
    from step_run s join decision d using (step_key) where d.source <> 'earlier' group by all
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
      and t.model_id is not null
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

create or replace view round_monitors as
with placed as (  -- a refresh's own steps: what makes a model, not what measures it
    select run_id, run, round, refresh, split_part(step, '-', 1) as step, step_key, wall_s, work_s
    from step_run
    where split_part(step, '-', 1)
          in ('generate', 'verify', 'rationalize', 'mix', 'score', 'update', 'watch')
), timed as (
    select p.*, p.work_s * coalesce((r.manifest ->> '$.accelerators')::integer, 0) as gpu_s
    from placed p join run r using (run_id)
), summed as (
    select run, round, refresh, coalesce(step, 'all') as slice,
           sum(wall_s) as wall_s, sum(work_s) as work_s, sum(gpu_s) as gpu_s
    from timed group by grouping sets ((run, round, refresh), (run, round, refresh, step))
)
select p.run, p.round, p.refresh, m.name, m.slice, m.value
from placed p join monitor m using (step_key)
where p.step = 'watch'
union all
select run, round, refresh, 'wall_s', slice, wall_s from summed
union all
select run, round, refresh, 'work_s', slice, work_s from summed
union all
select run, round, refresh, 'gpu_s', slice, gpu_s from summed;
comment on view round_monitors is
    'One row per (run, round, refresh, name, slice): what a refresh''s answers look like, and what its steps took';
comment on column round_monitors.run is 'Name of the run';
comment on column round_monitors.round is 'The round';
comment on column round_monitors.refresh is 'Refresh within the round, from 0';
comment on column round_monitors.name is
    'length, reasoning_length, answer_length (tokens), entropy, kl_base_k1 … (nats a token), sampler_gap, sampler_gap_max (the same), all_right, all_wrong, mixed, equal_rewards, reward_at_top, effective, truncated, repetition (shares), groups, groups_kept, advantage_variance, reward_mean, reward_std_between, reward_std_within, held_out, reward_gap, answers, tokens; wall_s, work_s, gpu_s (seconds)';
comment on column round_monitors.slice is
    'all; correct or wrong answers; of seconds the step, work that another run did left out';
comment on column round_monitors.value is
    'The value; gpu_s is seconds of work times the accelerators that the run began with';

create or replace view training_curve as
select s.run, s.round, s.refresh, m.step, m.name, m.value
from step_output s join training_metric m on m.update_id = s.id
where s.kind = 'training_update';
comment on view training_curve is
    'One row per (run, round, refresh, step, name): what the trainer measured on an optimizer step';
comment on column training_curve.run is 'Name of the run';
comment on column training_curve.round is 'The round';
comment on column training_curve.refresh is 'Refresh within the round, from 0';
comment on column training_curve.step is 'Optimizer step of the refresh''s update, from 1';
comment on column training_curve.name is
    'As the trainer names it: loss, grad_norm, entropy, rewards/margins, logps/chosen …';
comment on column training_curve.value is 'The value';

create or replace view run_timing as
with trained as (
    select s.run, sum(u.steps_done)::bigint as steps
    from step_output s join training_update u on u.update_id = s.id
    where s.kind = 'training_update' group by all
), sampled as (
    select s.run, count(distinct t.model_id) as policies
    from step_output s join trajectory t on t.trajectory_id = s.id
    where s.kind = 'trajectory' and s.first and t.purpose = 'train' and t.model_id is not null
    group by all
)
select run, steps, coalesce(policies, 0) as policies,
       case when policies > 1 then steps / policies end as s
from trained left join sampled using (run);
comment on view run_timing is
    'One row per run that trained: how often the policy that samples was refreshed';
comment on column run_timing.run is 'Name of the run';
comment on column run_timing.steps is 'Optimizer steps of all its updates';
comment on column run_timing.policies is 'Policies that sampled answers to train on';
comment on column run_timing.s is
    'Mean optimizer steps between refreshes: 1 is online; NULL is offline, one policy sampled everything';

-- ── table macros: questions about one model, one run, one thing ─────────────────────────────

create or replace macro trained_by(a_model) as table
select s.run, s.round, s.refresh, t.origin, t.trajectory_id, t.problem_id,
       t.model_id as policy_id, x.role, v.visits, r.tokens, u.training_set_id, u.update_id
from training_update u
join training_visit v on v.update_id = u.update_id and v.visits > 0
join training_row r
    on r.training_set_id = u.training_set_id and r.training_row_id = v.training_row_id
join training_row_trajectory x
    on x.training_set_id = r.training_set_id and x.training_row_id = r.training_row_id
join trajectory t on t.trajectory_id = x.trajectory_id
left join step_output s on s.kind = 'trajectory' and s.id = t.trajectory_id and not s.reused
where u.model_id = a_model::uuid;
comment on macro table trained_by is
    'Which trajectories trained a model: visited by its optimizer, with the run, round and refresh that sampled them';

create or replace macro ancestors(a_model) as table
with recursive walk (ancestor_id, depth) using key (ancestor_id) as (
    select a_model::uuid, 0
    union
    select p.parent_id, w.depth + 1
    from walk w
    join model_parent p on p.model_id = w.ancestor_id
    left join recurring.walk known on known.ancestor_id = p.parent_id
    where known.ancestor_id is null
), reached as (
    select p.parent_id as ancestor_id, list_sort(list(distinct p.relation)) as relations
    from walk w join model_parent p on p.model_id = w.ancestor_id group by all
), made as (
    select id, any_value(run) as run, any_value(round) as round
    from step_output where kind = 'model' and not reused group by all
), trained as (
    select u.model_id as trained_id, any_value(u.training_set_id) as training_set_id,
           any_value(d.rows) as rows
    from training_update u join training_set d on d.training_set_id = u.training_set_id
    group by all
)
select w.ancestor_id, w.depth, reached.relations, made.run, made.round, m.origin,
       trained.training_set_id, trained.rows, m.path
from walk w
join reached on reached.ancestor_id = w.ancestor_id
join model m on m.model_id = w.ancestor_id
left join made on made.id = w.ancestor_id
left join trained on trained.trained_id = w.ancestor_id
where w.depth > 0;
comment on macro table ancestors is
    'Every model that a model rests on, to the base, across runs and forks, with the data that trained it';

create or replace macro descendants(a_thing) as table
with recursive asked as materialized (
    select t.trajectory_id from trajectory t where t.trajectory_id = a_thing::uuid
    union all
    select t.trajectory_id from trajectory t where t.problem_id = a_thing::uuid
    union all
    select t.trajectory_id from trajectory t where t.prompt_id = a_thing::uuid
    union all
    select distinct v.trajectory_id
    from verdict v
    semi join step_output j  -- where judged anew, nothing was decided by it
        on j.kind = 'verdict' and j.id = v.verdict_id and not starts_with(j.step, 'reverify')
    where v.verifier_id = a_thing::uuid
), chain as materialized (  -- children of children: few, and none in most stores
    select p.trajectory_id, p.parent_id from trajectory_parent p
    where p.parent_id in (select c.trajectory_id from trajectory_parent c)
), reached (trajectory_id) as (
    (select trajectory_id from asked
     union all
     select p.trajectory_id from trajectory_parent p
     where p.parent_id in (select trajectory_id from asked))
    union
    select c.trajectory_id from reached d join chain c on c.parent_id = d.trajectory_id
), direct as materialized (  -- through a list, so that the planner holds it for few: it builds on it
    select unnest(list(trajectory_id)) as trajectory_id from reached
), visited as materialized (
    select u.update_id, x.training_row_id
    from training_row_trajectory x
    join training_update u on u.training_set_id = x.training_set_id
    where x.trajectory_id in (select trajectory_id from direct)
), taught as (
    select u.model_id from training_update u
    where u.training_set_id = a_thing::uuid or u.update_id = a_thing::uuid
       or u.update_id in (
           select v.update_id from training_visit v
           where v.visits > 0
             and (v.update_id, v.training_row_id) in (
                 select (w.update_id, w.training_row_id) from visited w))
), later (later_id, depth) using key (later_id) as (
    (select m.model_id, 0 from model m where m.model_id = a_thing::uuid
     union select model_id, 1 from taught)
    union
    select p.model_id, w.depth + 1
    from later w
    join model_parent p on p.parent_id = w.later_id
    left join recurring.later known on known.later_id = p.model_id
    where known.later_id is null
), sampled as materialized (
    select t.trajectory_id from trajectory t
    where t.model_id in (select later_id from later)
), followed (trajectory_id) as (
    (select trajectory_id from direct
     union
     select trajectory_id from sampled
     union
     select p.trajectory_id from trajectory_parent p
     where p.parent_id in (select trajectory_id from sampled))
    union
    select c.trajectory_id from followed d join chain c on c.parent_id = d.trajectory_id
), touched as materialized (
    select unnest(list(trajectory_id)) as trajectory_id from followed
), few as materialized (
    select 'training_set' as kind, x.training_set_id as found_id, null::integer as depth
    from training_row_trajectory x
    where x.trajectory_id in (select trajectory_id from touched) group by all
    union all
    select 'training_update', u.update_id, min(w.depth)
    from later w join training_update u on u.model_id = w.later_id
    where w.depth > 0 group by all
    union all
    select 'model', later_id, depth from later
    union all
    select 'evaluation', e.evaluation_id, min(w.depth)
    from evaluation e left join later w on w.later_id = e.model_id
    where e.verifier_id = a_thing::uuid or w.later_id is not null group by all
)
select s.kind, s.id, s.run, s.round, null::integer as depth
from step_output s
where s.kind = 'trajectory' and not s.reused and s.id <> a_thing::uuid
  and s.id in (select trajectory_id from touched)
union all
select s.kind, s.id, s.run, s.round, f.depth
from step_output s join few f on f.kind = s.kind and f.found_id = s.id
where s.kind <> 'trajectory' and s.kind <> 'verdict' and not s.reused and s.id <> a_thing::uuid;
comment on macro table descendants is
    'Everything downstream of a trajectory, problem, prompt, verifier, training set, update or model, with the run and round that made it: what it tainted if it was wrong; depth counts updates between it and a model';

create or replace macro fate_of(a_trajectory) as table
select * from trajectory_fate f where f.trajectory_id = a_trajectory::uuid;
comment on macro table fate_of is 'The fate of a trajectory in every run that used it';

create or replace macro journey(a_problem) as table
select * from problem_journey j where j.problem_id = a_problem::uuid;
comment on macro table journey is 'How every run fared on a problem, round by round';

create or replace macro mix_of(a_set) as table
select s.run, s.round, t.origin, r.source, count(distinct r.training_row_id) as rows,
       sum(r.tokens)::bigint as tokens
from training_row r
join training_row_trajectory x
    on x.training_set_id = r.training_set_id and x.training_row_id = r.training_row_id
    and x.role <> 'rejected'
join trajectory t on t.trajectory_id = x.trajectory_id
left join step_output s on s.kind = 'trajectory' and s.id = t.trajectory_id and not s.reused
where r.training_set_id = a_set::uuid
group by all;
comment on macro table mix_of is
    'What a training set was mixed from: run and round that sampled, origin, declared source';

create or replace macro rationalized_in_use(a_run, a_round) as table
select s.run, s.round, t.trajectory_id, t.problem_id, used.round as made_in_round,
       coalesce(v.visits, 0) as visits
from step_output s
join training_row_trajectory x on x.training_set_id = s.id
join trajectory t on t.trajectory_id = x.trajectory_id and t.origin = 'rationalized'
join step_output used
    on used.kind = 'trajectory' and used.first and used.run = s.run and used.id = t.trajectory_id
left join step_output made
    on made.kind = 'training_update' and made.run = s.run and made.round = s.round
    and made.refresh = s.refresh
left join training_visit v on v.update_id = made.id and v.training_row_id = x.training_row_id
where s.kind = 'training_set' and s.run = a_run and used.run = a_run
  and s.round = a_round;
comment on macro table rationalized_in_use is
    'Rationalized rows that a run''s round still trained on, and the round that made them';

create or replace macro mix_moves(a_run) as table
with moved as (
    select m.round, m.origin, sum(m.rows)::bigint as rows, sum(m.tokens)::bigint as tokens,
           sum(m.share) as share
    from mix_by_round m where m.run = a_run group by all
), grid as (  -- an origin that a round has none of is a row too
    select round, origin
    from (select distinct round from moved) cross join (select distinct origin from moved)
), filled as (
    select round, origin, coalesce(m.rows, 0) as rows, coalesce(m.tokens, 0) as tokens,
           coalesce(m.share, 0.0) as share
    from grid left join moved m using (round, origin)
)
select *, share - lag(share) over (partition by origin order by round) as change from filled;
comment on macro table mix_moves is
    'How a run''s mix by origin moved: rows, tokens and share of each training set, change of share';

create or replace macro problem_moves(a_run) as table
select j.round, count(*) filter (j.state = 'new') as new, count(*) filter (j.state = 'kept') as kept,
       count(*) filter (j.state = 'lost') as lost, count(*) filter (j.state = 'never') as never
from problem_journey j where j.run = a_run group by all;
comment on macro table problem_moves is
    'Problems of a run by round: solved for the first time, solved again, lost, not solved yet';

create or replace macro rejudged(a_run, a_verifier) as table
with own as (
    select s.round, v.trajectory_id, arg_max(v, v.attempt) as verdict
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run = a_run and s.kind = 'verdict' and s.first and not starts_with(s.step, 'reverify')
    group by all
), anew as (
    select v.trajectory_id, arg_max(v, v.attempt) as verdict
    from step_output s join verdict v on v.verdict_id = s.id
    where s.run = a_run and s.kind = 'verdict' and starts_with(s.step, 'reverify')
      and v.verifier_id = a_verifier::uuid
    group by all
)
select a_run as run, own.round, t.trajectory_id, t.problem_id, t.purpose, t.origin,
       own.verdict.status as was, anew.verdict.status as now,
       own.verdict.status <> anew.verdict.status as flipped,
       own.verdict.reason as was_reason, anew.verdict.reason as now_reason,
       own.verdict.extracted as was_extracted, anew.verdict.extracted as now_extracted
from anew
join own on own.trajectory_id = anew.trajectory_id
join trajectory t on t.trajectory_id = anew.trajectory_id;
comment on macro table rejudged is
    'A run''s trajectories under its own verdict and under another verifier that judged them anew';
