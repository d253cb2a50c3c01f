-- Every trajectory that trained a model.
select run, round, refresh, origin, trajectory_id, problem_id, policy_id, role, visits, tokens
from trained_by($model_id) order by round, refresh, run, origin, trajectory_id
