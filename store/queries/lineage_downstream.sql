-- What is downstream of a thing, by kind and the run and round that made it.
select kind, run, round, count(*) as count,
       case when kind = 'trajectory' then '' else array_to_string(list_sort(list(id)), ', ') end as ids
from descendants($thing) group by kind, run, round order by round, run, kind
