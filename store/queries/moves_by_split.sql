-- Problems of a run that were new, kept, lost or never solved, by round: the held-out ones, and those
-- asked for training.
select j.round, p.split <> 'train' as held_out,
       count(*) filter (j.state = 'new') as new, count(*) filter (j.state = 'kept') as kept,
       count(*) filter (j.state = 'lost') as lost, count(*) filter (j.state = 'never') as never
from problem_journey j
join problem p using (problem_id)
left join problem_outcome o
    on o.run = $run and o.purpose = 'train' and o.round = j.round and o.problem_id = j.problem_id
where j.run = $run and (p.split <> 'train' or o.problem_id is not null)
group by all order by all
