-- Artefacts that no run uses, counted by table, with one of them; an adapter uses its base.
with artefact as (
              select 'trajectory' as kind, trajectory_id as id from trajectory
    union all select 'verdict', verdict_id from verdict
    union all select 'training_set', training_set_id from training_set
    union all select 'training_update', update_id from training_update
    union all select 'model', model_id from model
    union all select 'evaluation', evaluation_id from evaluation
), used as (
              select kind, id from step_output
    union all select 'model', base_model_id from model
)
select kind as what, count(*) as count, min(id)::varchar as example
from artefact anti join used using (kind, id)
group by kind order by kind
