-- The one row that says which schema the file has.
insert into store_info values ($version, $made_by)
