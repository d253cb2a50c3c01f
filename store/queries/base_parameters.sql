-- Number of parameters of the base that runs with this policy section began with.
select m.parameters
from run
join step_output s on s.run = run.name and s.step = 'setup' and s.kind = 'model'
join model m on m.model_id = s.id
where (run.config::json -> 'policy')::varchar = $policy
limit 1
