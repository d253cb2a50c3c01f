-- What an import took in and what it left out.
select detail from event join run using (run_id)
where run.name = $run and event.kind = 'imported'
