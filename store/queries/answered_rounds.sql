-- The rounds of a run that have judged answers of one purpose.
select distinct s.round
from step_output s
join verdict v on v.verdict_id = s.id
join trajectory t on t.trajectory_id = v.trajectory_id
where s.run = $run and s.kind = 'verdict' and not starts_with(s.step, 'reverify')
  and t.purpose = $purpose
order by s.round
