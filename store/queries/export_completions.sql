-- The rows of a round's training sets that have one completion, in training order. Equal
-- contents are one row: `trajectory_ids` has all of them, the first to be used first.
with sets as (
    select distinct refresh, id from step_output
    where run = $run and round = $round and kind = 'training_set'
), used as (
    select id, round from step_output where run = $run and kind = 'trajectory' and first
), behind as (
    select x.training_set_id, x.training_row_id,
           list(x.trajectory_id order by used.round, x.trajectory_id) as trajectory_ids,
           min(used.round) as origin_round,
           arg_min(x.reward, (used.round, x.trajectory_id)) as reward,
           arg_min(x.advantage, (used.round, x.trajectory_id)) as advantage
    from training_row_trajectory x
    join sets on sets.id = x.training_set_id
    left join used on used.id = x.trajectory_id
    where x.role = 'completion'
    group by all
)
select r.training_row_id, r.training_set_id, sets.refresh, r.position, r.kind, r.source, r.weight,
       r.tokens, p.problem_id, p.question, p.answer, r.prompt_id, q.text as prompt,
       q.token_ids as prompt_token_ids, t.completion, t.token_ids, t.logprobs, t.loss_mask,
       b.trajectory_ids, t.origin, b.origin_round, t.model_id as policy_id, b.reward, b.advantage
from sets
join training_row r on r.training_set_id = sets.id
join behind b on b.training_set_id = r.training_set_id and b.training_row_id = r.training_row_id
join trajectory t on t.trajectory_id = b.trajectory_ids[1]
join prompt q on q.prompt_id = r.prompt_id
join problem p on p.problem_id = q.problem_id
order by sets.refresh, r.position
