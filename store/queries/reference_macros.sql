-- Macros with their parameters and what they say of themselves.
select function_type as kind, function_name as name, parameters, comment
from duckdb_functions()
where database_name = current_database() and not internal
order by function_type, function_name
