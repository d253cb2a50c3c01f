-- What a run's round was measured on: the task's held-out problems, answers to each, the verifier.
select e.task, e.split, e.n, e.problems, v.name as verifier, v.version
from step_output s
join evaluation e on e.evaluation_id = s.id
join verifier v using (verifier_id)
where s.run = $run and s.round = $round and s.kind = 'evaluation' and s.step = 'evaluate'
