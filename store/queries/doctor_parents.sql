-- Where model_parent is not what the updates and the visits of their rows say; counted by relation,
-- with one update. A model that an update made has that update.
with said as (
    select update_id, model_id, init_model_id as parent_id, 'init' as relation from training_update
    union
    select update_id, model_id, reference_model_id, 'reference' from training_update
    where reference_model_id is not null
    union
    select u.update_id, u.model_id, t.model_id, 'policy'
    from training_update u
    join training_visit v on v.update_id = u.update_id and v.visits > 0
    join training_row_trajectory x
        on x.training_set_id = u.training_set_id and x.training_row_id = v.training_row_id
    join trajectory t on t.trajectory_id = x.trajectory_id
    where t.model_id is not null
), written as (select update_id, model_id, parent_id, relation from model_parent)
select relation || ' missing' as what, count(*) as count, min(update_id)::varchar as example
from (from said except from written) group by relation
union all
select relation || ' too many', count(*), min(update_id)::varchar
from (from written except from said) group by relation
union all
select 'update missing', count(*), min(model_id)::varchar
from model anti join training_update using (model_id) where origin = 'update' having count(*) > 0
order by what
