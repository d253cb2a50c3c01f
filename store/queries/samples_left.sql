-- How many of a run's trajectories each filter leaves after those before it (NULL: any), and the
-- values that the filter could have had there.
with told as (
    select (purpose = 'eval') = $held_out as fits, round, status, origin, problem_id
    from trajectory_fate where run = $run
), passed as (
    select *, fits and coalesce(round = $round::integer, $round is null) as by_round,
           by_round and ($verdict::varchar is null or coalesce(status = $verdict, false))
               as by_verdict,
           by_verdict and ($origin::varchar is null or origin = $origin) as by_origin,
           by_origin and ($problem::uuid is null or problem_id = $problem) as by_problem
    from told
)
select count(*) as "run", count(*) filter (fits) as purpose, count(*) filter (by_round) as round,
       count(*) filter (by_verdict) as verdict, count(*) filter (by_origin) as origin,
       count(*) filter (by_problem) as problem,
       list_sort(list(distinct round) filter (fits)) as rounds,
       list_sort(list(distinct coalesce(status, 'not judged')) filter (by_round)) as verdicts,
       list_sort(list(distinct origin) filter (by_verdict)) as origins
from passed
