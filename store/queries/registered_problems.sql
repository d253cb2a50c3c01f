-- Problems of all splits that a run has admitted or decided to leave out.
select id from step_output where run_id = $run_id and step = 'admit' and kind = 'problem'
