-- Where the rows of a run's training sets came from, by round of the set, round that sampled them and
-- origin: how many rows, and how many of them the optimizer visited.
with used as (
    select id as trajectory_id, round as origin_round
    from step_output where run = $run and kind = 'trajectory' and first
), sets as (
    select s.round, s.refresh, s.id as training_set_id, u.id as update_id
    from step_output s
    left join step_output u on u.run = s.run and u.round = s.round and u.refresh = s.refresh
        and u.kind = 'training_update'
    where s.run = $run and s.kind = 'training_set' and s.step = 'mix'
)
select sets.round, used.origin_round, t.origin,
       count(distinct (sets.refresh, x.training_row_id)) as rows,
       count(distinct (sets.refresh, x.training_row_id)) filter (v.visits > 0) as visited
from sets
join training_row_trajectory x
    on x.training_set_id = sets.training_set_id and x.role <> 'rejected'
join trajectory t on t.trajectory_id = x.trajectory_id
join used on used.trajectory_id = x.trajectory_id
left join training_visit v
    on v.update_id = sets.update_id and v.training_row_id = x.training_row_id
group by all order by all
