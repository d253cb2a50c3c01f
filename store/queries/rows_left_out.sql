-- Where the rows stood that a run has listed as no problem.
select distinct d.place
from step_run s join problem_decision d using (step_key)
where s.run_id = $run_id and s.step = 'admit' and d.place <> ''
