-- How many trajectories the store holds.
select count(*) as trajectories from trajectory
