-- Texts that an earlier one equals, or has the template of: each with the first such one.
with first as (
    select key, min(position) as other from candidate_key group by key having count(*) > 1
)
select position, other, $by as rule, 1.0::double as share
from candidate_key join first using (key)
where position <> other order by position;
