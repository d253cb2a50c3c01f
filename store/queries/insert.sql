-- Append the rows of `incoming` whose key is not in {table} yet; return the keys that were new.
insert into {table} by name
select incoming.* from incoming anti join {table} using ({key})
returning {key}
