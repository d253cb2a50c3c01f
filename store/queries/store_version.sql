-- The schema version of this file.
select version from store_info
