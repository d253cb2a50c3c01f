-- Ids that name a row which is not there: each column that names a row of another table, with that
-- table; counted by column, with one of them.
with reference as (
              select 'run.forked_from' as what, 'run' as kind, forked_from as id from run
    union all select 'step_run.run_id', 'run', run_id from step_run
    union all select 'step_output.run_id', 'run', run_id from step_output
    union all select 'step_output.id (' || kind || ')', kind, id from step_output
    union all select 'event.run_id', 'run', run_id from event
    union all select 'model.base_model_id', 'model', base_model_id from model
    union all select 'problem.parent_problem_id', 'problem', parent_problem_id from problem
    union all select 'prompt.problem_id', 'problem', problem_id from prompt
    union all select 'prompt.prompt_set_id', 'prompt_set', prompt_set_id from prompt
    union all select 'trajectory.problem_id', 'problem', problem_id from trajectory
    union all select 'trajectory.prompt_id', 'prompt', prompt_id from trajectory
    union all select 'trajectory.model_id', 'model', model_id from trajectory
    union all select 'trajectory.sampling_id', 'sampling', sampling_id from trajectory
    union all select 'trajectory_parent.trajectory_id', 'trajectory', trajectory_id from trajectory_parent
    union all select 'trajectory_parent.parent_id', 'trajectory', parent_id from trajectory_parent
    union all select 'trajectory_logprob.trajectory_id', 'trajectory', trajectory_id from trajectory_logprob
    union all select 'trajectory_logprob.prompt_id', 'prompt', prompt_id from trajectory_logprob
    union all select 'trajectory_logprob.model_id', 'model', model_id from trajectory_logprob
    union all select 'verdict.trajectory_id', 'trajectory', trajectory_id from verdict
    union all select 'verdict.verifier_id', 'verifier', verifier_id from verdict
    union all select 'verdict_component.verdict_id', 'verdict', verdict_id from verdict_component
    union all select 'decision.step_key', 'step', step_key from decision
    union all select 'decision.trajectory_id', 'trajectory', trajectory_id from decision
    union all select 'problem_decision.step_key', 'step', step_key from problem_decision
    union all select 'problem_decision.problem_id', 'problem', problem_id from problem_decision
    union all select 'problem_decision.other_id', 'problem', other_id from problem_decision
    union all select 'hand_over.step_key', 'step', step_key from hand_over
    union all select 'hand_over.model_id', 'model', model_id from hand_over
    union all select 'training_row.training_set_id', 'training_set', training_set_id from training_row
    union all select 'training_row.prompt_id', 'prompt', prompt_id from training_row
    union all select 'training_row_trajectory.training_set_id', 'training_set', training_set_id from training_row_trajectory
    union all select 'training_row_trajectory.training_row_id', 'training_row', training_row_id from training_row_trajectory
    union all select 'training_row_trajectory.trajectory_id', 'trajectory', trajectory_id from training_row_trajectory
    union all select 'training_update.init_model_id', 'model', init_model_id from training_update
    union all select 'training_update.reference_model_id', 'model', reference_model_id from training_update
    union all select 'training_update.training_set_id', 'training_set', training_set_id from training_update
    union all select 'training_update.optimizer_from', 'training_update', optimizer_from from training_update
    union all select 'training_update.model_id', 'model', model_id from training_update
    union all select 'model_parent.model_id', 'model', model_id from model_parent
    union all select 'model_parent.parent_id', 'model', parent_id from model_parent
    union all select 'model_parent.update_id', 'training_update', update_id from model_parent
    union all select 'training_visit.update_id', 'training_update', update_id from training_visit
    union all select 'training_visit.training_row_id', 'training_row', training_row_id from training_visit
    union all select 'training_metric.update_id', 'training_update', update_id from training_metric
    union all select 'monitor.step_key', 'step', step_key from monitor
    union all select 'evaluation.model_id', 'model', model_id from evaluation
    union all select 'evaluation.sampling_id', 'sampling', sampling_id from evaluation
    union all select 'evaluation.verifier_id', 'verifier', verifier_id from evaluation
    union all select 'metric.evaluation_id', 'evaluation', evaluation_id from metric
), target as (
              select 'run' as kind, run_id as id from run
    union all select 'step', step_key from step_run
    union all select 'model', model_id from model
    union all select 'reference', model_id from model
    union all select 'problem', problem_id from problem
    union all select 'prompt_set', prompt_set_id from prompt_set
    union all select 'prompt', prompt_id from prompt
    union all select 'sampling', sampling_id from sampling
    union all select 'trajectory', trajectory_id from trajectory
    union all select 'verifier', verifier_id from verifier
    union all select 'verdict', verdict_id from verdict
    union all select 'training_set', training_set_id from training_set
    union all select 'training_row', training_row_id from training_row
    union all select 'training_update', update_id from training_update
    union all select 'evaluation', evaluation_id from evaluation
), dangling as (
    select what, kind as target, id from reference anti join target using (kind, id)
    where id is not null
    union all
    select 'step_output: its step', 'step_run', id
    from step_output anti join step_run using (run_id, round, refresh, step)
)
select what, target, count(*) as count, min(id)::varchar as example
from dangling group by what, target order by what
