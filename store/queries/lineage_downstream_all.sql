-- Everything downstream of a thing.
select kind, id, run, round, depth from descendants($thing) order by round, run, kind, id
