-- Train problems that a run has sampled, or found too long to ask.
select t.problem_id
from step_output s join trajectory t on t.trajectory_id = s.id
where s.run_id = $run_id and starts_with(s.step, 'generate') and s.kind = 'trajectory'
union
select d.problem_id
from step_run s join problem_decision d using (step_key)
where s.run_id = $run_id and starts_with(s.step, 'generate') and not d.kept
