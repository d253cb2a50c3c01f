-- The times that a run measured problems of the test split, up to a round.
select round, message from event join run using (run_id)
where run.name = $run and kind = 'split_opened' and round <= $round
order by event.rowid
