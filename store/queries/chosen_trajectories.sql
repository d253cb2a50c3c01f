-- Up to $count trajectories of each class of a run, in turn from its rounds, their texts cut to
-- $characters at the beginning and the same at the end. One that is of several classes is one row.
with fates as materialized (
    select trajectory_id, round, origin, hinted, status, score, reason, kept, why, trained_models
    from trajectory_fate
    where run = $run and purpose in ('train', 'rationalize')
), classed as (
    select case when why = 'hint_leak' then 'leaked'
                when status = 'unjudged' then 'unjudged'
                when hinted and status = 'correct' then 'rationalized'
                when not hinted and status = 'correct' then 'right'
                when not hinted and status = 'wrong' then 'wrong' end as class,
           round, trajectory_id
    from fates
), nearest as (
    select class, round, arg_min(trajectory_id, hash(trajectory_id), $count) as ids
    from classed where class is not null group by all
), turned as (
    select class, round, unnest(ids) as trajectory_id, generate_subscripts(ids, 1) as turn
    from nearest
), numbered as (
    select class, trajectory_id,
           row_number() over (partition by class order by turn, round desc) as place
    from turned
), best as (
    select 'top reward' as class, trajectory_id
    from fates where score > (select min(score) from fates) order by score desc, hash(trajectory_id) limit $count
), chosen as (
    select trajectory_id, list(class order by class) as classes
    from (select class, trajectory_id from numbered where place <= $count
          union all select class, trajectory_id from best)
    group by all
), made as (
    select s.round, u.model_id
    from step_output s join training_update u on u.update_id = s.id
    where s.run = $run and s.kind = 'training_update'
)
select f.trajectory_id, c.classes, f.round, f.origin, f.hinted, f.status, f.score, f.reason, f.kept,
       f.why,
       (select coalesce(list(distinct made.round order by made.round), [])
        from made where list_contains(f.trained_models, made.model_id)) as trained,
       left(p.question, $characters) as question, left(p.answer, $characters) as answer,
       left(t.completion, $characters) as head,
       substring(t.completion, greatest($characters, length(t.completion) - $characters) + 1) as tail,
       length(t.completion) as characters, len(t.token_ids) as tokens
from chosen c
join fates f using (trajectory_id)
join trajectory t on t.trajectory_id = c.trajectory_id
join problem p on p.problem_id = t.problem_id
order by f.round, f.trajectory_id
