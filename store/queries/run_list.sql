-- All runs with the last round that was trained, the target, and the last event of the run.
with trained as (
    select run_id, max(round) as rounds from step_run where step = 'update' group by all
), happened as (
    select run_id, arg_max(kind, happened_at) as last_event, max(happened_at) as last_at,
           arg_max(detail, happened_at) filter (kind = 'config_changed') as changed
    from event where kind in ('begun', 'gone_on', 'config_changed', 'cut', 'done') group by all
)
select run.name, run.recipe, coalesce(rounds, 0) as rounds,
       (coalesce(changed, run.config)::json ->> 'rounds')::integer as target, last_event, last_at
from run left join trained using (run_id) left join happened using (run_id)
order by run.created_at, run.name
