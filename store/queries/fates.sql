-- A run's trajectories counted by round, purpose, origin, verdict and decision.
select round, purpose, origin, coalesce(status, 'not judged') as status,
       coalesce(reason, '') as reason, kept, why, count(*) as trajectories
from trajectory_fate
where run = $run
group by all order by all
