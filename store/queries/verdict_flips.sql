-- How many of a run's verdicts another verifier keeps or turns, by round and purpose.
select round, purpose, was, now, count(*) as n
from rejudged($run, $verifier_id) group by all order by all
