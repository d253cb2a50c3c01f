-- What trained a model, by the run, round and refresh that sampled it, origin and policy.
select run, round, refresh, origin, policy_id, count(*) as trajectories, sum(visits)::bigint as visits,
       sum(visits * tokens)::bigint as tokens
from trained_by($model_id)
group by all order by round, refresh, run, origin
