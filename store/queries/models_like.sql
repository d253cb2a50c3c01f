-- Models whose id begins with some text.
select model_id from model where starts_with(model_id::varchar, lower($prefix)) order by all
