-- Every trajectory that trained a model.
select run, round, origin, trajectory_id, problem_id, policy_id, role, visits, tokens
from trained_by($model_id) order by round, run, origin, trajectory_id
