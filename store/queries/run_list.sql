-- All runs with the last round that was trained, the target, the last event of the run and its
-- message, whether an alarm stopped it, the rounds that began with a reset, and where a fork began.
with trained as (
    select run_id, max(round) as rounds from step_run where step = 'update' group by all
), happened as (
    select run_id, arg_max(kind, event.rowid) as last_event,
           arg_max(message, event.rowid) as last_message,
           arg_max(happened_at, event.rowid) as last_at,
           arg_max(detail, event.rowid) filter (kind = 'config_changed') as changed,
           max(event.rowid) filter (kind = 'stopped')
               > max(event.rowid) filter (kind in ('begun', 'forked', 'gone_on')) as stopped
    from event
    where kind in
        ('begun', 'forked', 'gone_on', 'config_changed', 'cut', 'done', 'imported', 'stopped')
    group by all
), anew as (
    select run_id, list(round order by round) as resets
    from event where kind = 'reset' group by all
)
select run.name, run.recipe, coalesce(rounds, 0) as rounds,
       (coalesce(changed, run.config)::json ->> 'rounds')::integer as target, last_event,
       last_message, last_at,
       coalesce(stopped, false) as stopped, resets,
       source.name as forked_from, run.forked_at_round
from run
left join run source on source.run_id = run.forked_from
left join trained on trained.run_id = run.run_id
left join happened on happened.run_id = run.run_id
left join anew on anew.run_id = run.run_id
order by run.created_at, run.name
