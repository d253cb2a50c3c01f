-- Which of the wanted artefacts a run has used already.
select distinct kind, wanted.id
from wanted join step_output on step_output.id = wanted.id
where run_id = $run_id
