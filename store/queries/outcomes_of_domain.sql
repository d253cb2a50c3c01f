-- Held-out problems of a domain, round by round: answers judged and right ones.
select o.round, o.problem_id, o.n, o.correct
from problem_outcome o join problem p using (problem_id)
where o.run = $run and o.purpose = 'eval' and o.n > 0 and p.domain = $domain
order by o.round, o.problem_id
