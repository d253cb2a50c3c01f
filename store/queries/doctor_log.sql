-- The bytes of the write-ahead log that the open file goes on with: 0 where it passes the log over.
select wal_size from pragma_database_size() where database_name = current_database()
