-- A model.
select * from model where model_id = $model_id
