-- A run by its name.
select * from run where name = $name
