-- Share of each origin in each round's training set.
select round, origin, sum(share) as share, sum(rows)::bigint as rows
from mix_by_round where run = $run
group by all order by round, origin
