-- How many connections to the open file this process has.
select count as connections from duckdb_connection_count()
