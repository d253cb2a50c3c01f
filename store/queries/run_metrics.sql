-- Every number of a run's evaluations, by round, name and slice.
select s.round, m.name, m.slice, m.k, m.value, m.low, m.high, m.problems
from step_output s join metric m on m.evaluation_id = s.id
where s.run = $run and s.kind = 'evaluation' and s.step = 'evaluate' and m.value is not null
order by s.round, m.name, m.slice
