-- All models with their folders, and whether their checkpoint was freed.
select m.*, exists (
    from event e where e.kind = 'freed' and e.detail ->> 'model' = m.model_id::varchar
) as freed
from model m order by m.model_id
