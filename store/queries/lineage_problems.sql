-- Problems of a run that were new, kept or lost in each round.
select * from problem_moves($run) order by round
