-- Things of the store, or those of a kind, whose id lies in a range: what the beginning of an id
-- may mean.
select kind, id from (
    select 'model' as kind, model_id as id from model
    union all select 'trajectory', trajectory_id from trajectory
    union all select 'problem', problem_id from problem
    union all select 'prompt', prompt_id from prompt
    union all select 'verifier', verifier_id from verifier
    union all select 'training_set', training_set_id from training_set
    union all select 'training_update', update_id from training_update
    union all select 'evaluation', evaluation_id from evaluation
)
where id between $low::uuid and $high::uuid and ($kind is null or kind = $kind)
order by kind, id limit 6
