-- Record a run before its first step.
insert into run
    (run_id, name, recipe, config, identity, manifest, forked_from, forked_at_round, created_at)
values
    ($run_id, $name, $recipe, $config, $identity, $manifest, $forked_from, $forked_at_round, now())
