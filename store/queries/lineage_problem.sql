-- How every run fared on a problem.
select run, round, n, correct, state from journey($problem_id) order by run, round
