-- Trajectories with their fate: some of each (round, origin, why) that the run has, in turn.
with numbered as (
    select *, row_number() over (
        partition by round, origin, why order by hash(trajectory_id)) as turn
    from trajectory_fate
    where run = $run and purpose <> 'eval'
)
select n.*, p.question, p.answer
from numbered n join problem p using (problem_id)
order by turn, round desc, why, origin
limit $count
