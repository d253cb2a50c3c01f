-- How many steps and events are stored: what the readers' copy lacks shows here.
select (select count(*) from step_run) as steps, (select count(*) from event) as events
