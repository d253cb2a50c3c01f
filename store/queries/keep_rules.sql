-- Every run that trains, with what its newest config says of retention, in the order they began.
with newest as (
    select run.*, coalesce(changed, config)::json as now
    from run left join (
        select run_id, arg_max(detail, event.rowid) as changed
        from event where kind = 'config_changed' group by all
    ) using (run_id)
)
select run_id, name, forked_at_round,
       coalesce(now ->> 'keep', 'all') as keep,
       coalesce((now ->> 'rounds')::integer, 0) as target,
       coalesce((now -> 'evaluate' ->> 'every')::integer, 1) as every,
       now -> 'policy' ->> 'path' as base_path
from newest
where recipe != 'import'
order by created_at, name
