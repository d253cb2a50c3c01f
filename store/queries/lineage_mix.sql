-- How a run's mix by origin moved.
select * from mix_moves($run) order by round, origin
