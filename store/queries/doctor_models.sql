-- All models with their folders, and whether an event says that the folder was freed.
select m.*, exists (
    from event e where e.kind = 'freed' and contains(coalesce(e.detail, '') || e.message, m.model_id::varchar)
) as freed
from model m order by m.model_id
