-- The schema that a migration has brought the file to.
update store_info set version = $version
