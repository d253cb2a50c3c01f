-- When a model's checkpoint was freed, the newest first.
select happened_at from event
where kind = 'freed' and (detail ->> 'model') = $model
order by event.rowid desc limit 1
