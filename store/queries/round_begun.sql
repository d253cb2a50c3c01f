-- Whether a round has begun, and what was noted of it then.
select count(*) > 0 as begun, max(detail) as detail
from (
    select detail from event where run_id = $run_id and round = $round and kind = 'round_begun'
    union all
    select null from step_run
    where run_id = $run_id and round = $round and not starts_with(step, 'reverify')
)
