-- The round summary of one run, or of all, in order.
select * from round_summary where $run is null or run = $run order by run, round
