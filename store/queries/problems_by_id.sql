-- The wanted problems, in the order asked for.
select problem.* from wanted join problem on problem.problem_id = wanted.id
order by wanted.position
