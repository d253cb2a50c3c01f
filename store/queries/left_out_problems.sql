-- Problems that a run must not use: what it left out of the problems it had read.
select distinct d.problem_id
from step_run s join problem_decision d using (step_key)
where s.run_id = $run_id and s.step = 'admit' and not d.kept
  and (d.why in ('reference_refused', 'contaminated') or d.other_id <> d.problem_id)
