-- Pass@1 of each slice of each round's evaluation.
select s.round, m.slice, m.value, m.low, m.high
from step_output s
join run using (run_id)
join evaluation e on e.evaluation_id = s.id
join metric m on m.evaluation_id = e.evaluation_id
where run.name = $run and s.kind = 'evaluation' and m.name = 'pass_at_1' and m.slice <> 'all'
order by s.round, m.slice
