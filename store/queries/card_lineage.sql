-- Of a model and all that it rests on: models, updates, optimizer steps, training sets, the
-- trajectories that trained them and their problems, and what their policies sampled in this store.
with line as (
    select $model_id::uuid as model_id union select ancestor_id from ancestors($model_id)
), made as (
    select u.* from training_update u semi join line using (model_id)
), trained as (
    select distinct x.trajectory_id
    from made
    join training_visit v on v.update_id = made.update_id and v.visits > 0
    join training_row_trajectory x
        on x.training_set_id = made.training_set_id and x.training_row_id = v.training_row_id
)
select (select count(*) from line) - 1 as ancestors,
       (select count(*) from made) as updates,
       (select sum(steps_done)::bigint from made) as steps,
       (select count(distinct training_set_id) from made) as training_sets,
       (select count(*) from trained) as trained,
       (select count(distinct t.problem_id) from trained join trajectory t using (trajectory_id))
           as problems,
       (select count(*) from trajectory t semi join line using (model_id)) as sampled
