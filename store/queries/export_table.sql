-- The rows of {table} that a run used.
select {table}.* from {table} semi join export_used used on used.id = {table}.{key}
order by {order}
