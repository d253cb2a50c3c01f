-- A run's preference pairs by round: how many, mean tokens of chosen and rejected answers, and the
-- mean number of updates since their policy.
with sets as (
    select distinct round, refresh, id from step_output where run = $run and kind = 'training_set'
), behind as (
    select x.training_set_id, x.training_row_id,
           min(x.trajectory_id) filter (x.role = 'chosen') as chosen_id,
           min(x.trajectory_id) filter (x.role = 'rejected') as rejected_id
    from training_row_trajectory x join sets on sets.id = x.training_set_id
    group by all
)
select sets.round, count(*) as pairs, avg(len(c.token_ids)) as chosen,
       avg(len(j.token_ids)) as rejected, avg(r.policy_age) as age
from sets
join training_row r on r.training_set_id = sets.id and r.kind = 'pair'
join behind b on b.training_set_id = r.training_set_id and b.training_row_id = r.training_row_id
join trajectory c on c.trajectory_id = b.chosen_id
join trajectory j on j.trajectory_id = b.rejected_id
group by all order by all
