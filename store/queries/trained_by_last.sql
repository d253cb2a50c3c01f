-- Which rounds' trajectories trained a run's last checkpoint, with visits by its optimizer.
with last as (
    select arg_max(s.id, s.round) as update_id
    from step_output s join run using (run_id)
    where run.name = $run and s.kind = 'training_update'
), used as (
    select s.id as trajectory_id, min(s.round) as round
    from step_output s join run using (run_id)
    where run.name = $run and s.kind = 'trajectory' group by all
)
select u.model_id, used.round as origin_round, t.origin, t.model_id as policy_id,
       count(*) as trajectories, sum(v.visits)::bigint as visits,
       sum(v.visits * r.tokens)::bigint as tokens
from last
join training_update u on u.update_id = last.update_id
join training_visit v on v.update_id = u.update_id and v.visits > 0
join training_row r
    on r.training_set_id = u.training_set_id and r.training_row_id = v.training_row_id
join training_row_trajectory x
    on x.training_set_id = r.training_set_id and x.training_row_id = r.training_row_id
join trajectory t using (trajectory_id)
join used using (trajectory_id)
group by all
order by origin_round, origin
