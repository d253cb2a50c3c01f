-- Tables and views with what they say of themselves and of each of their columns.
with relation as (
    select 'table' as kind, table_name as name, comment from duckdb_tables()
    where database_name = current_database() and not internal
    union all
    select 'view', view_name, comment from duckdb_views()
    where database_name = current_database() and not internal
)
select r.kind, r.name, r.comment, c.column_name, lower(c.data_type) as data_type,
       c.is_nullable and r.kind = 'table' as nullable, c.comment as says
from relation r
join duckdb_columns() c
    on c.table_name = r.name and c.database_name = current_database() and not c.internal
order by r.kind, r.name, c.column_index
