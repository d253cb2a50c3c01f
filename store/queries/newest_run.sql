-- The run that was worked on last.
select run.name from run left join event using (run_id)
where $run is null or run.name = $run
group by run.name
order by max(event.rowid) desc nulls last limit 1
