-- One question for each object of the surface, shown on docs/sql.md and run by its test. A name in
-- the first line of each is the object it shows.

-- trajectory_fate: why were round 1's own answers left out?
select why, count(*) as answers
from trajectory_fate
where run = 'one' and round = 1 and not kept
group by all order by all;

-- lineage_edge: what came straight from a model?
select dst_kind, relation, count(*) as things
from lineage_edge
where run = 'one' and src_kind = 'model'
group by all order by all;

-- model_ancestry: how many models does each model rest on?
select model_id, count(*) as ancestors, max(depth) as updates
from model_ancestry
group by all order by all;

-- mix_by_round: how much of each training set is older than its round?
select run, round, sum(share) filter (origin_round < round) as older
from mix_by_round
group by all order by all;

-- problem_outcome: which problems does the base solve sometimes?
select run, problem_id, n, correct
from problem_outcome
where round = 0 and correct between 1 and n - 1
order by all;

-- pass_rate_histogram: how many problems can still teach something, round by round?
select run, round, sum(problems) filter (bin between 1 and 10) as mixed, sum(problems) as problems
from pass_rate_histogram
where purpose = 'train'
group by all order by all;

-- difficulty_coverage: where does the base stand?
select run, domain, difficulty, problems, round(pass_rate, 2) as pass_rate, never
from difficulty_coverage
where round = 0
order by all;

-- problem_journey: which problems were lost?
select run, problem_id, round
from problem_journey
where state = 'lost'
order by all;

-- round_summary: did the last round help?
select run, round, pass_at_1, low, high
from round_summary
where run = 'one'
order by round;

-- round_monitors: did answers grow longer, and how much of each refresh was sampling?
select run, round, refresh, name, slice, value
from round_monitors
where name = 'length' or (name = 'work_s' and slice = 'generate')
order by all;

-- training_curve: did the chosen answers grow less likely while it trained?
select run, round, refresh, arg_min(value, step) as began, arg_max(value, step) as ended
from training_curve
where name = 'logps/chosen'
group by all order by all;

-- run_timing: how far off policy did a run sample?
select run, steps, policies, coalesce(s::varchar, 'offline') as s
from run_timing
order by run;

-- trained_by: which rounds' trajectories trained the newest model?
select run, round, origin, count(*) as trajectories, sum(visits) as visits
from trained_by((select arg_max(model_id, round) from round_summary where run = 'one'))
group by all order by all;

-- ancestors: what does it rest on, and which run made that?
select ancestor_id, depth, relations, run, round
from ancestors((select arg_max(model_id, round) from round_summary where run = 'one'))
order by depth, ancestor_id;

-- descendants: which models would a wrong verdict of this verifier have tainted?
select id, run, round
from descendants((select verifier_id from verifier where name = 'exact'))
where kind = 'model'
order by all;

-- fate_of: what became of the first trajectory that trained?
select run, round, status, kept, why
from fate_of((select min(trajectory_id) from trajectory_fate where len(trained_models) > 0))
order by all;

-- journey: how did every run fare on a problem?
select run, round, n, correct, state
from journey((select min(problem_id) from problem_journey where state = 'lost'))
order by all;

-- mix_of: where do a training set's rows come from?
select run, round, origin, source, rows
from mix_of((select min(training_set_id) from training_set))
order by all;

-- rationalized_in_use: which rationalized rows did round 1 train on?
select made_in_round, count(*) as rows
from rationalized_in_use('one', 1)
group by all order by all;

-- mix_moves: how did the share of each origin move?
select round, origin, share, change
from mix_moves('one')
order by all;

-- problem_moves: how many problems were new, kept and lost in each round?
select *
from problem_moves('one')
order by round;

-- rejudged: whose verdict would another verifier turn? (after `starloop verify one --with …`)
select round, was, now, count(*) as answers
from rejudged('one', (select min(verifier_id) from verifier))
where flipped
group by all order by all;
