-- Rationalized rows that a run's round trained on, by the round that made them.
select made_in_round, count(*) as rows, count(*) filter (visits > 0) as trained,
       sum(visits)::bigint as visits, count(distinct problem_id) as problems
from rationalized_in_use($run, $round) group by all order by made_in_round
