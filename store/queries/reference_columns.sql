-- The columns that a table macro answers with.
select column_name, lower(column_type) as data_type from (describe from {macro}({arguments}))
