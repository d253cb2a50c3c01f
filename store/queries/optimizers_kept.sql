-- Updates with the model each made, and whether a run's round ended with it.
with made as (
    select s.run_id, s.round, s.refresh, s.id,
           s.refresh = max(s.refresh) over (partition by s.run_id, s.round) as ends
    from step_output s where s.kind = 'training_update'
)
select made.id as update_id, u.model_id, bool_or(made.ends) as ends
from made join training_update u on u.update_id = made.id
group by all
