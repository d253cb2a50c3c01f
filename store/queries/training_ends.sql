-- Where the trainer's series began and ended in each of a run's updates up to a refresh: means over
-- the first and the last tenth of the steps, one at least.
with placed as (
    select round, refresh, name, value,
           row_number() over (partition by round, refresh, name order by step) as place,
           count(*) over (partition by round, refresh, name) as steps
    from training_curve
    where run = $run and (round, refresh) <= ($round, $refresh)
)
select round, refresh, name,
       avg(value) filter (place <= greatest(1, steps // 10)) as began,
       avg(value) filter (place > steps - greatest(1, steps // 10)) as ended
from placed group by all order by round, refresh, name
