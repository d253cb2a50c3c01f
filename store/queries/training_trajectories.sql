-- The trajectories behind each row of a training set, by role (of equal contents one).
select r.training_row_id, r.role, min(r.trajectory_id) as trajectory_id,
       arg_min(r.reward, r.trajectory_id) as reward,
       arg_min(r.advantage, r.trajectory_id) as advantage,
       arg_min(s.temperature, r.trajectory_id) as temperature
from training_row_trajectory r
left join trajectory t on t.trajectory_id = r.trajectory_id
left join sampling s on s.sampling_id = t.sampling_id
where r.training_set_id = $training_set_id
group by all
