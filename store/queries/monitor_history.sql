-- What a run's refreshes measured up to one of them, oldest first.
select round, refresh, name, slice, value
from round_monitors
where run = $run and (round, refresh) <= ($round, $refresh)
order by round, refresh, name, slice
