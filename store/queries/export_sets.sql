-- The training sets of a run's rounds, and whether their rows are pairs.
select distinct s.round, s.refresh, s.id as training_set_id, r.kind = 'pair' as pairs
from step_output s join training_row r on r.training_set_id = s.id
where s.run = $run and s.kind = 'training_set'
order by all
