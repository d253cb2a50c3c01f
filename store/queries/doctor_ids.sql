-- Ids that are not what their row's columns make, minted again as stages/ids.py mints them; counted
-- by column, with one of them.
with content as (
    select r.training_set_id, r.training_row_id, any_value(r.position) as position,
           any_value(r.kind) as kind, any_value(r.prompt_id) as prompt_id,
           any_value(r.weight) as weight,
           sha256(string_agg(
               mint('c', [hash_tokens(p.token_ids), hash_tokens(t.token_ids)])::varchar, ','
               order by x.role)) as contents
    from training_row r
    join training_row_trajectory x using (training_set_id, training_row_id)
    join trajectory t using (trajectory_id)
    join prompt p on p.prompt_id = r.prompt_id
    group by r.training_set_id, r.training_row_id
), numbered as (
    select *, row_number() over (
        partition by training_set_id, kind, prompt_id, contents, weight order by position) - 1 as copy
    from content
), measured as (
    select e.evaluation_id, e.model_id, e.sampling_id, e.verifier_id, e.n, m.k,
           (r.config ->> '$.seed') || '.' || s.round as seed,
           sha256(string_agg(p.id::varchar, ',' order by p.id)) as problems
    from evaluation e
    join metric m on m.evaluation_id = e.evaluation_id and m.name = 'pass_at_k' and m.slice = 'all'
    join step_output s on s.kind = 'evaluation' and s.id = e.evaluation_id and not s.reused
    join run r on r.run_id = s.run_id
    join step_output p on p.kind = 'problem' and p.run_id = s.run_id and p.round = s.round
        and p.refresh = s.refresh and p.step = s.step
    group by all
), minted as (
    select 'run.run_id' as what, run_id as id, mint('r', [sha256(name)]) as found from run
    union all
    select 'problem.problem_id', problem_id,
           mint('p', [sha256(task), sha256(question), sha256(answer)]) from problem
    union all
    select 'prompt_set.prompt_set_id', prompt_set_id,
           mint('x', [sha256(name), sha256(plain), sha256(hint)]
                     || if(config is null, [], [sha256(config)]))
    from prompt_set
    union all
    select 'prompt.prompt_id', prompt_id,
           mint('q', [problem_id::varchar, prompt_set_id::varchar, hinted::integer::varchar,
                      hash_tokens(token_ids)]) from prompt
    union all
    select 'sampling.sampling_id', sampling_id, mint('s', [sha256(config)]) from sampling
    union all
    select 'trajectory.trajectory_id', trajectory_id,
           mint('t', [problem_id::varchar, prompt_id::varchar, model_id::varchar,
                      sampling_id::varchar, purpose, seed::varchar, slot::varchar])
    from trajectory where model_id is not null
    union all
    select 'trajectory.content_id', content_id,
           mint('c', [hash_tokens(p.token_ids), hash_tokens(t.token_ids)])
    from trajectory t join prompt p using (prompt_id)
    union all
    select 'verifier.verifier_id', verifier_id,
           mint('v', [sha256(name), sha256(version), sha256(config)]) from verifier
    union all
    select 'verdict.verdict_id', verdict_id,
           mint('j', [trajectory_id::varchar, content_id::varchar, verifier_id::varchar,
                      attempt::varchar])
    from verdict join trajectory using (trajectory_id)
    union all
    select 'training_row.training_row_id', training_row_id,
           mint('i', [kind, prompt_id::varchar, contents, sha256(weight::varchar), copy::varchar])
    from numbered
    union all
    select 'training_set.training_set_id', training_set_id,
           mint('y', [sha256(string_agg(training_row_id::varchar, ',' order by position))])
    from training_row group by training_set_id
    union all
    select 'training_update.update_id', update_id,
           mint('u', [init_model_id::varchar, reference_model_id::varchar, training_set_id::varchar,
                      sha256(config), seed::varchar, steps_planned::varchar, model_id::varchar])
    from training_update
    union all
    select 'evaluation.evaluation_id', evaluation_id,
           mint('e', [model_id::varchar, problems, sampling_id::varchar, verifier_id::varchar,
                      n::varchar, k::varchar, seed])
    from measured
)
-- compared in the aggregate: as a filter, DuckDB would mint each id several times
select what, count(*) filter (id <> found) as count,
       (min(id) filter (id <> found))::varchar as example
from minted group by what having count > 0 order by what
