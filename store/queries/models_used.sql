-- Models that runs' rounds began with (round 0) or trained, in order: a round's last is its own.
select s.run_id, s.run, s.round, s.refresh, m.model_id, m.origin, m.path
from step_output s join model m on m.model_id = s.id
where s.kind = 'model'
order by s.run, s.round, s.refresh
