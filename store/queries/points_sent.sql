-- The refreshes and rounds (refresh NULL) of a run that went to a tracker.
select round, refresh from event
where run_id = $run_id and kind = 'tracked' and (detail ->> 'tracker') = $tracker
