-- The fate of a trajectory in every run that used it.
select run, round, problem_id, purpose, origin, hinted, prompt, completion, status, reason, kept, why,
       training_sets, trained_models
from fate_of($trajectory_id) order by run
