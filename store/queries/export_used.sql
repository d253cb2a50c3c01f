-- The ids of all that a run used: what its steps put out, and what those rows name.
create or replace temp table export_used as
with recursive mine as (
    select distinct kind, id from step_output where run = $run
), updates as (
    select u.* from training_update u join mine on mine.id = u.update_id
), sets as (
    select id from mine where kind = 'training_set'
    union select training_set_id from updates
), verdicts as (
    select v.* from verdict v join mine on mine.id = v.verdict_id
), evaluations as (
    select e.* from evaluation e join mine on mine.id = e.evaluation_id
), slots (id) as (
    (select id from mine where kind = 'trajectory'
     union select trajectory_id from verdicts
     union select x.trajectory_id
           from training_row_trajectory x join sets on sets.id = x.training_set_id)
    union
    select p.parent_id from slots join trajectory_parent p on p.trajectory_id = slots.id
), trajectories as (
    select t.problem_id, t.prompt_id, t.model_id, t.sampling_id
    from trajectory t join slots on slots.id = t.trajectory_id
), scored as (
    select l.prompt_id, l.model_id
    from trajectory_logprob l join slots on slots.id = l.trajectory_id
), prompts as (
    select q.* from prompt q join (
        select prompt_id from trajectories
        union select r.prompt_id from training_row r join sets on sets.id = r.training_set_id
        union select prompt_id from scored
    ) using (prompt_id)
), models as (
    select id as model_id from mine where kind = 'model'
    union select model_id from trajectories
    union select model_id from evaluations
    union select model_id from scored
    union select unnest([init_model_id, reference_model_id, model_id]) from updates
)
select id from mine
union select id from sets
union select id from slots
union select verifier_id from verdicts
union select unnest([verifier_id, sampling_id]) from evaluations
union select unnest([problem_id, sampling_id]) from trajectories
union select unnest([prompt_id, problem_id, prompt_set_id]) from prompts
union select model_id from models
union select m.base_model_id from models join model m using (model_id)
union select step_key from step_run where run = $run
union select run_id from run where name = $run
