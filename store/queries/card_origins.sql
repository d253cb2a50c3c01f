-- Of a model and all that it rests on: the trajectories that trained them, by origin.
with line as (
    select $model_id::uuid as model_id union select ancestor_id from ancestors($model_id)
), trained as (
    select t.origin, t.trajectory_id, v.visits
    from training_update u
    semi join line using (model_id)
    join training_visit v on v.update_id = u.update_id and v.visits > 0
    join training_row_trajectory x
        on x.training_set_id = u.training_set_id and x.training_row_id = v.training_row_id
        and x.role <> 'rejected'
    join trajectory t on t.trajectory_id = x.trajectory_id
), summed as (
    select origin, count(distinct trajectory_id) as trajectories, sum(visits)::bigint as visits
    from trained group by all
)
select *, visits / sum(visits) over () as share from summed order by visits desc, origin
