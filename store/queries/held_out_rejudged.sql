-- Held-out pass@1 of a run's rounds under its own verdicts and under another verifier's: the mean
-- over difficulties of the mean over questions, answers that could not be judged left out.
with answered as (
    select s.round, p.problem_id, p.difficulty, count(*) as n,
           avg((r.was = 'correct')::integer) filter (r.was <> 'unjudged') as was,
           avg((r.now = 'correct')::integer) filter (r.now <> 'unjudged') as now
    from step_output s
    join rejudged($run, $verifier_id) r on r.trajectory_id = s.id
    join problem p on p.problem_id = r.problem_id
    semi join step_output held on held.run = s.run and held.round = s.round
        and held.step = 'evaluate' and held.kind = 'problem' and held.id = p.problem_id
    where s.run = $run and s.step = 'evaluate' and s.kind = 'trajectory'
    group by all
), strata as (
    select round, difficulty, avg(was) as was, avg(now) as now, count(*) as questions, sum(n) as n
    from answered group by all
)
select round, avg(was) as was, avg(now) as now, sum(questions)::bigint as questions,
       sum(n)::bigint as answers
from strata group by all order by round
