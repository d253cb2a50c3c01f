-- One round of a made-up run, straight into the tables: number `run`, `round`, `size` trajectories.
--
-- Of ten trajectories seven answer train problems, two are rationalized and one is held out. A
-- quarter is kept, and every later round of the run trains on all that was kept (accumulate).
-- `place` counts trajectories over the whole history; ids follow from it.
create or replace temp table made as
select place, place % 10 as share, mint('t', [place]) as trajectory_id,
       mint('j', [place]) as verdict_id,
       case when place % 10 = 9 then mint('p', [-1 - place % 500])
            else mint('p', [place % getvariable('problems')]) end as problem_id,
       place % 10 in (0, 5) or place % 20 = 7 as kept,
       place % 3 = 0 or place % 10 in (0, 5) or place % 20 = 7 as correct
from range(getvariable('begin'), getvariable('begin') + getvariable('size')) r(place);

insert into trajectory by name
select trajectory_id, mint('c', [place]) as content_id, problem_id,
       mint('q', [problem_id::varchar, (share in (7, 8))::varchar]) as prompt_id,
       getvariable('policy') as model_id, mint('s', [0]) as sampling_id,
       case when share < 7 then 'train' when share < 9 then 'rationalize' else 'eval' end as purpose,
       case when share in (7, 8) then 'rationalized' else 'self' end as origin,
       place as seed, 0 as slot,
       array_to_string(list_transform(range(getvariable('words')),
           lambda w: getvariable('vocabulary')[1 + (hash(place * 1000 + w) % 2048)::integer]), ' ')
           as completion,
       list_transform(range(getvariable('tokens')),
           lambda w: (hash(place * 1000 + w) % 2048)::integer) as token_ids,
       list_transform(range(getvariable('tokens')),
           lambda w: (-(hash(place * 1000 - w) % 100000)::bigint / 20000.0)::float) as logprobs,
       'stop' as finish_reason, 'made' as engine, '1' as engine_version, 'none' as dtype,
       'none' as weight_version
from made;

insert into trajectory_parent
select trajectory_id, mint('t', [place - share + 1]), 'hint' from made where share in (7, 8);

insert into verdict by name
select verdict_id, trajectory_id, mint('v', [0]) as verifier_id, 0 as attempt,
       if(correct, 'correct', 'wrong') as status, correct::integer as score, 'x' as extracted,
       if(correct, 'match', 'mismatch') as reason, 'strong' as trust, 'none' as isolation
from made;

create or replace temp table stood as
select place, mint('t', [place]) as trajectory_id,
       mint('i', [getvariable('number'), place]) as training_row_id, place % 10 = 7 as hinted
from range(getvariable('run_begin'), getvariable('begin') + getvariable('size')) r(place)
where place % 10 in (0, 5) or place % 20 = 7;

insert into decision
select getvariable('mix_key'), trajectory_id, if(share < 7, 'round', 'rationalized'), kept,
       if(kept, 'kept', 'wrong')
from made where share < 7 or place % 20 = 7
union all
select getvariable('hint_key'), trajectory_id, 'rationalized', kept, if(kept, 'rationalized', 'wrong')
from made where share in (7, 8)
union all
select getvariable('mix_key'), trajectory_id, 'earlier', true, 'kept'
from stood where place < getvariable('begin');

insert into training_set
select getvariable('held'), count(*), count(*) * getvariable('tokens') from stood;

insert into training_row by name
select getvariable('held') as training_set_id, training_row_id,
       row_number() over () - 1 as position, 'sft' as kind,
       mint('q', [mint('p', [place % getvariable('problems')])::varchar, 'false']) as prompt_id,
       1.0 as weight,
       if(place < getvariable('begin'), 'earlier', if(hinted, 'rationalized', 'round')) as source,
       getvariable('tokens') as tokens
from stood;

insert into training_row_trajectory
select getvariable('held'), training_row_id, trajectory_id, 'completion', 1.0, null from stood;

insert into model values
    (getvariable('model'), 'update', 'Made', 1, null, 'models/' || getvariable('number'));

insert into training_update values
    (getvariable('update'), getvariable('base'), null, getvariable('held'), null, 'sft', '{}', 0,
     100, 100, getvariable('model'), 0.1);

insert into training_visit select getvariable('update'), training_row_id, 1 from stood;

insert into model_parent
select getvariable('model'), getvariable('base'), 'init', getvariable('update')
union all
select getvariable('model'), unnest(getvariable('policies')), 'policy', getvariable('update');

insert into evaluation values
    (getvariable('measured'), getvariable('model'), 'made', 'dev', mint('s', [0]), mint('v', [0]),
     20, 500);
insert into metric
select getvariable('measured'), name, 'all', k, 0.5, 0.4, 0.6, 0.5, 500, 10000
from (values ('pass_at_1', null), ('pass_at_k', 8), ('maj_at_k', 8)) m(name, k);

insert into step_run
select getvariable('run_id'), getvariable('name'), getvariable('round'), 0, step,
       case step when 'mix' then getvariable('mix_key')
                 when 'rationalize' then getvariable('hint_key')
                 else mint('k', [getvariable('number')::varchar, step]) end,
       false, now(), 1.0, 0.9
from (values ('generate'), ('verify'), ('rationalize'), ('mix'), ('update'), ('evaluate')) s(step);

insert into step_output
select getvariable('run_id'), getvariable('name'), getvariable('round'), 0, o.step, o.kind, o.id,
       false, true
from (
    select case when share < 7 then 'generate' when share < 9 then 'rationalize' else 'evaluate' end
               as step,
           'trajectory' as kind, trajectory_id as id from made
    union all
    select case when share < 7 then 'verify' when share < 9 then 'rationalize' else 'evaluate' end,
           'verdict', verdict_id from made
    union all
    select distinct 'evaluate', 'problem', problem_id from made where share = 9
    union all
    select 'mix', 'training_set', getvariable('held')
    union all
    select 'update', 'training_update', getvariable('update')
    union all
    select 'update', 'model', getvariable('model')
    union all
    select 'evaluate', 'evaluation', getvariable('measured')
) o;
