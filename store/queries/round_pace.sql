-- What a run's round sampled to measure its model: answers, their tokens, and the seconds inside
-- sampler and verifier.
select count(*) as answers, sum(len(t.token_ids))::bigint as tokens,
       (select any_value(work_s) from step_run
        where run_id = $run_id and round = $round and step = 'evaluate' and not reused) as work_s
from step_output s join trajectory t on t.trajectory_id = s.id
where s.run_id = $run_id and s.round = $round and s.kind = 'trajectory' and s.step = 'evaluate'
