-- How often a run's policy was refreshed.
select steps, policies, s from run_timing where run = $run
