-- A run by its name, with the name of the run it was forked from.
select run.*, source.name as forked_from_name
from run left join run source on source.run_id = run.forked_from
where run.name = $name
