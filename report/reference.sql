-- SPDX-License-Identifier: Apache-2.0
-- One question for each view and macro, in the order in which docs/sql.md shows them. A block is the
-- object's name, the question, and its SQL; `star` stands for a run.

-- trajectory_fate
-- What became of the answers of round 1?
select origin, status, reason, kept, why, count(*) as n
from trajectory_fate where run = 'star' and round = 1 group by all order by n desc, why, status, reason

-- round_summary
-- How did held-out accuracy and the training data move?
select round, pass_at_1, low, high, kept, rationalized, hint_leaks, tokens
from round_summary where run = 'star' order by round

-- mix_by_round
-- What was each training set mixed from?
select round, origin_round, origin, rows, share
from mix_by_round where run = 'star' order by all

-- problem_journey
-- Which problems were solved once and lost again?
select p.question, j.round, j.n, j.correct
from problem_journey j join problem p using (problem_id)
where j.run = 'star' and j.state = 'lost' order by all

-- model_ancestry
-- What does the model of round 2 rest on?
select a.ancestor_id, a.depth
from model_ancestry a join round_summary s using (model_id)
where s.run = 'star' and s.round = 2 order by depth

-- lineage_edge
-- How many edges of each kind does a round have?
select round, src_kind, relation, dst_kind, count(*) as edges
from lineage_edge where run = 'star' group by all order by all

-- trained_by
-- Which rounds' trajectories trained the model of round 2?
select run, round, origin, count(distinct trajectory_id) as trajectories, sum(visits) as visits
from trained_by((select model_id from round_summary where run = 'star' and round = 2))
group by all order by all

-- ancestors
-- Which models does the model of round 2 rest on, and what trained those?
select depth, ancestor_id, relations, run, round, training_set_id, rows
from ancestors((select model_id from round_summary where run = 'star' and round = 2))
order by depth

-- descendants
-- What would be tainted if the verifier were wrong?
select run, round, kind, count(*) as n
from descendants((select verifier_id from verifier where name = 'exact' limit 1))
group by all order by all

-- fate_of
-- What happened to one trajectory, in every run?
select run, round, status, kept, why, trained_models
from fate_of((select trajectory_id from trajectory_fate where run = 'star' and kept limit 1))

-- journey
-- How did every run fare on one problem?
select run, round, n, correct, state
from journey((select problem_id from problem_journey where run = 'star' order by all limit 1))
order by run, round

-- mix_of
-- What was the training set of round 2 mixed from?
select round, origin, source, rows, tokens
from mix_of((
    select id from step_output where run = 'star' and round = 2 and kind = 'training_set'
)) order by all

-- mix_moves
-- How did the share of each origin move?
select round, origin, share, change from mix_moves('star') order by all

-- problem_moves
-- How many problems were new, kept and lost in each round?
from problem_moves('star') order by round

-- rationalized_in_use
-- How many rationalized rows does round 1 train on, by the round that made them?
select made_in_round, count(*) as rows, sum(visits) as visits
from rationalized_in_use('star', 1) group by all order by all

-- rejudged
-- Which verdicts turned under another verifier (`starloop verify`)?
select was, now, count(*) as n
from rejudged('star', (
    select any_value(v.verifier_id) from step_output s join verdict v on v.verdict_id = s.id
    where starts_with(s.step, 'reverify')
))
group by all order by all

-- pass_at_k
-- What is pass@2 of each held-out problem?
select problem_id, round, pass_at_k(n, correct, 2) as pass_at_2
from problem_journey where run = 'star' and n >= 2 order by round, problem_id

-- wilson_low
-- How sure is a round's share of right answers?
select round, wilson_low(sum(correct), sum(n)) as low, sum(correct) / sum(n) as share
from problem_journey where run = 'star' group by round order by round

-- wilson_high
-- And its upper end?
select round, wilson_high(sum(correct), sum(n)) as high
from problem_journey where run = 'star' group by round order by round

-- mint
-- Is a run's id made of its name?
select name, run_id = mint('r', [sha256(name)]) as made_of_its_name from run order by name

-- hash_tokens
-- Which completions are the same tokens?
select hash_tokens(token_ids) as tokens, count(*) as n
from trajectory group by all having n > 1 order by n desc, tokens limit 5
