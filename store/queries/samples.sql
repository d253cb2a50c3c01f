-- Trajectories of a run with their fate, held-out ones or the others, that pass the filters (NULL:
-- any): some of each (round, origin, why) that there is, in turn; of held-out ones of each verdict.
with numbered as (
    select *, row_number() over (
        partition by round, origin, why, if($held_out, status, null)
        order by hash(trajectory_id)) as turn
    from trajectory_fate
    where run = $run and (purpose = 'eval') = $held_out
      and coalesce(round = $round::integer, $round is null)
      and ($verdict::varchar is null or status = $verdict)
      and ($origin::varchar is null or origin = $origin)
      and ($problem::uuid is null or problem_id = $problem)
)
select n.*, p.question, p.answer
from numbered n join problem p using (problem_id)
order by turn, round desc, why, origin, status
limit $count
