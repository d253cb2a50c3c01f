-- What the hint brought: per round and difficulty, problems tried with it, answers that
-- were right, and rows kept.
select f.round, p.difficulty, count(distinct f.problem_id) as tried,
       count(*) filter (f.status = 'correct') as correct,
       count(*) filter (f.kept) as kept, count(*) filter (f.why = 'hint_leak') as leaks
from trajectory_fate f join problem p using (problem_id)
where f.run = $run and f.purpose = 'rationalize'
group by all order by f.round, p.difficulty
