-- The pairs of a round's training sets, in training order. Equal contents are one row: the lists
-- of trajectories have all of them, the first to be used first.
with sets as (
    select distinct refresh, id from step_output
    where run = $run and round = $round and kind = 'training_set'
), used as (
    select id, round from step_output where run = $run and kind = 'trajectory' and first
), behind as (
    select x.training_set_id, x.training_row_id, x.role,
           list(x.trajectory_id order by used.round, x.trajectory_id) as trajectory_ids,
           min(used.round) as origin_round
    from training_row_trajectory x
    join sets on sets.id = x.training_set_id
    left join used on used.id = x.trajectory_id
    group by all
), said as (
    select b.*, t.completion, t.token_ids, t.logprobs, t.origin, t.model_id
    from behind b join trajectory t on t.trajectory_id = b.trajectory_ids[1]
)
select r.training_row_id, r.training_set_id, sets.refresh, r.position, r.kind, r.source, r.weight,
       r.tokens, p.problem_id, p.question, p.answer, r.prompt_id, q.text as prompt,
       q.token_ids as prompt_token_ids, c.completion as chosen, x.completion as rejected,
       c.token_ids as chosen_token_ids, x.token_ids as rejected_token_ids,
       c.trajectory_ids as chosen_trajectory_ids, x.trajectory_ids as rejected_trajectory_ids,
       c.origin, c.origin_round, c.model_id as policy_id, x.origin as rejected_origin,
       x.origin_round as rejected_origin_round, x.model_id as rejected_policy_id
from sets
join training_row r on r.training_set_id = sets.id
join said c on c.training_set_id = r.training_set_id and c.training_row_id = r.training_row_id
    and c.role = 'chosen'
join said x on x.training_set_id = r.training_set_id and x.training_row_id = r.training_row_id
    and x.role = 'rejected'
join prompt q on q.prompt_id = r.prompt_id
join problem p on p.problem_id = q.problem_id
order by sets.refresh, r.position
