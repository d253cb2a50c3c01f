-- Record a run before its first step.
insert into run (run_id, name, recipe, config, identity, manifest, created_at)
values ($run_id, $name, $recipe, $config, $identity, $manifest, now())
