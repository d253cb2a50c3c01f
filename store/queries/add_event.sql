-- Append what happened.
insert into event (run_id, round, refresh, happened_at, kind, message, detail)
values ($run_id, $round, $refresh, now(), $kind, $message, $detail)
