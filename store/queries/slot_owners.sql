-- The runs that use a slot.
select distinct run_id from step_output where kind = 'trajectory' and id = $trajectory_id
