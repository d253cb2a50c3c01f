-- The models that a run's rounds had or made.
select distinct round, id as model_id from step_output
where run = $run and kind = 'model'
order by all
