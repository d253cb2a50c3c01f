-- A run's answers in training: tokens in all, mean length, and entropy as the mean surprise of a
-- sampled token in the last round (nats).
with used as (
    select s.round, t.token_ids, t.logprobs
    from step_output s join trajectory t on t.trajectory_id = s.id
    where s.run = $run and s.kind = 'trajectory' and starts_with(s.step, 'generate')
), newest as (select * from used where round = (select max(round) from used))
select (select sum(len(token_ids))::bigint from used) as tokens,
       avg(len(token_ids)) as length,
       -sum(list_sum(logprobs)) / sum(len(logprobs)) as entropy
from newest
