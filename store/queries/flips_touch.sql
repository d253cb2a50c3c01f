-- Training sets and models of any run that hold trajectories whose verdict was turned.
with turned as materialized (
    select trajectory_id, now from rejudged($run, $verifier_id) where flipped
)
select s.run, s.round, x.training_set_id, u.model_id, turned.now,
       count(distinct x.trajectory_id) as rows,
       count(distinct x.trajectory_id) filter (v.visits > 0) as trained
from turned
join training_row_trajectory x on x.trajectory_id = turned.trajectory_id
join step_output s on s.kind = 'training_set' and s.id = x.training_set_id and not s.reused
left join training_update u on u.training_set_id = x.training_set_id
left join training_visit v on v.update_id = u.update_id and v.training_row_id = x.training_row_id
group by all order by s.run, s.round, turned.now, u.model_id
