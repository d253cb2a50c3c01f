-- Held-out pass@1 of a run's rounds before one of them, with its interval, oldest first.
select s.round, s.id as evaluation_id, m.value, m.low, m.high
from step_output s join metric m on m.evaluation_id = s.id
where s.run_id = $run_id and s.round < $round and s.step = 'evaluate' and s.kind = 'evaluation'
  and m.name = 'pass_at_1' and m.slice = 'all' and m.value is not null
order by s.round
