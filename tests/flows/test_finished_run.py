# SPDX-License-Identifier: Apache-2.0
"""What a finished run of configs/tiny/try.yaml leaves: consistent tables and a tidy folder.

The config: 2 rounds of 60 problems, one answer each, 20 seed rows, 30 and 36 steps of 8 rows,
8 answers to each held-out problem.
"""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from running import TRY, Ended, ask, clean_environment, contents, first_run

Command = Callable[..., Ended]


def test_a_run_can_start_in_a_folder_with_files_of_our_names(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder, ended = first_run(tmp_path_factory.getbasetemp())
    assert (ended.code, ended.err) == (0, "")
    assert (folder / "runs" / "store.duckdb").exists()


def test_the_screen_shows_a_line_for_the_base_and_each_round(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lines = first_run(tmp_path_factory.getbasetemp())[1].out.splitlines()
    assert lines[0] == "run try begins: 2 rounds"
    table = [line.split()[0] for line in lines if line.startswith(("round  ", " base", "    "))]
    assert table == ["round", "base", "1", "2"]


def test_every_trajectory_has_a_verdict(finished: Path) -> None:
    without = "select count(*) from trajectory anti join verdict using (trajectory_id)"
    assert ask(finished, without) == [(0,)]
    # 20 seed rows; 55 sums of length 1 and what the dev split adds, 8 times, after 3 rounds
    assert ask(finished, "select count(*) from trajectory where purpose = 'seed'") == [(20,)]
    assert ask(finished, "select count(*) from trajectory where purpose = 'train'") == [(120,)]


def test_every_round_asks_its_60_problems_once(finished: Path) -> None:
    found = ask(
        finished,
        "select round, count(*), count(distinct problem_id) from trajectory_fate "
        "where purpose = 'train' group by round order by round",
    )
    assert found == [(1, 60, 60), (2, 60, 60)]


def test_every_candidate_of_a_mix_has_one_decision(finished: Path) -> None:
    per_step = ask(
        finished,
        "select s.round, count(*), count(distinct d.trajectory_id) from step_run s "
        "join decision d using (step_key) where s.step = 'mix' group by s.round order by s.round",
    )
    # 60 answers, the hinted ones that passed the audit, 20 seed rows, right ones of earlier rounds
    (expected,) = ask(
        finished,
        """
        with passed as (
            select s.round, count(*) as n from step_run s join decision d using (step_key)
            where s.step = 'rationalize' and d.kept group by s.round
        ), right_before as (
            select count(*) as n from trajectory_fate
            where round = 1 and purpose = 'train' and status = 'correct'
        )
        select list(60 + 20 + passed.n + case round when 2 then right_before.n + (
                   select n from passed where round = 1) else 0 end order by round)
        from passed, right_before
        """,
    )
    assert [count for _, count, _ in per_step] == expected[0]
    assert all(count == distinct for _, count, distinct in per_step)


def test_every_kept_candidate_is_a_training_row_and_no_other(finished: Path) -> None:
    found = ask(
        finished,
        """
        select s.round, list(d.trajectory_id order by d.trajectory_id) filter (d.kept) =
               list(r.trajectory_id order by d.trajectory_id) filter (r.trajectory_id is not null)
        from step_run s
        join decision d using (step_key)
        join step_output o on o.round = s.round and o.step = 'mix' and o.kind = 'training_set'
        left join training_row_trajectory r
            on r.training_set_id = o.id and r.trajectory_id = d.trajectory_id
        where s.step = 'mix' group by s.round order by s.round
        """,
    )
    assert found == [(1, True), (2, True)]


def test_no_training_rows_prompt_is_hinted(finished: Path) -> None:
    hinted = "select count(*) from training_row join prompt using (prompt_id) where hinted"
    assert ask(finished, hinted) == [(0,)]
    assert ask(finished, "select count(*) > 0 from prompt where hinted") == [(True,)]


def test_a_training_row_trains_on_the_problem_it_answers(finished: Path) -> None:
    strangers = """
        select count(*) from training_row r
        join training_row_trajectory x using (training_set_id, training_row_id)
        join trajectory t using (trajectory_id)
        join prompt p on p.prompt_id = r.prompt_id
        where p.problem_id <> t.problem_id"""
    assert ask(finished, strangers) == [(0,)]


def test_visits_add_up_to_steps_times_batch(finished: Path) -> None:
    found = ask(
        finished,
        "select u.steps_planned, u.steps_done, sum(v.visits) from training_update u "
        "join training_visit v using (update_id) group by all order by 1",
    )
    assert found == [(30, 30, 240), (36, 36, 288)]  # 30 × 1.2 = 36, batches of 8


def test_every_training_row_has_its_visits_recorded(finished: Path) -> None:
    unrecorded = """
        select count(*) from training_update u join training_row r using (training_set_id)
        anti join training_visit v
            on v.update_id = u.update_id and v.training_row_id = r.training_row_id"""
    assert ask(finished, unrecorded) == [(0,)]


def test_rationalized_rows_have_a_failed_try_of_the_same_problem_as_parent(finished: Path) -> None:
    found = ask(
        finished,
        """
        select count(*), count(distinct t.trajectory_id),
               count(*) filter (parent.problem_id = t.problem_id and v.status = 'wrong'
                                and prompt.hinted and not plain.hinted)
        from trajectory t
        left join trajectory_parent p on p.trajectory_id = t.trajectory_id and relation = 'hint'
        left join trajectory parent on parent.trajectory_id = p.parent_id
        left join verdict v on v.trajectory_id = parent.trajectory_id
        left join prompt on prompt.prompt_id = t.prompt_id
        left join prompt plain on plain.prompt_id = parent.prompt_id
        where t.origin = 'rationalized'
        """,
    )
    (rows, slots, sound) = found[0]
    assert rows == slots == sound > 0


def test_only_failed_problems_are_rationalized(finished: Path) -> None:
    found = ask(
        finished,
        """
        select round, count(distinct problem_id) filter (purpose = 'rationalize'),
               count(distinct problem_id) filter (purpose = 'train' and status = 'wrong')
        from trajectory_fate where round > 0 group by round order by round
        """,
    )
    assert [round_ for round_, _, _ in found] == [1, 2]
    assert all(rationalized == failed for _, rationalized, failed in found)


def test_no_two_slots_share_a_seed(finished: Path) -> None:
    found = ask(
        finished,
        "select count(*) - count(distinct (seed, purpose)), count(*) - count(distinct seed) "
        "from trajectory where seed is not null",
    )
    assert found == [(0, 0)]


def test_every_sampled_token_has_a_log_probability(finished: Path) -> None:
    torn = """select count(*) from trajectory
              where model_id is not null and len(logprobs) is distinct from len(token_ids)"""
    assert ask(finished, torn) == [(0,)]


def test_what_a_run_used_is_in_its_table(finished: Path) -> None:
    kinds = [kind for (kind,) in ask(finished, "select distinct kind from step_output")]
    made = {"trajectory", "verdict", "training_set", "training_update", "model", "evaluation"}
    assert made <= set(kinds)
    for kind in kinds:
        id_ = "update_id" if kind == "training_update" else f"{kind}_id"
        lost = f"select id from step_output anti join {kind} on {id_} = id where kind = '{kind}'"
        assert ask(finished, lost) == []


def test_no_shard_draft_or_temporary_file_is_left(finished: Path) -> None:
    runs = finished.parent
    left = [
        str(path.relative_to(runs))
        for path in runs.rglob("*")
        if ".prefect" not in path.parts
        and (path.suffix in (".tmp", ".parquet", ".wal") or "draft" in path.name)
    ]
    assert left == []
    names = {path.name for path in (runs / "try").rglob("*")}
    assert names - {"work"} == {"lock", "progress.jsonl"}


def test_every_checkpoint_of_the_store_is_complete_and_is_what_its_row_says(finished: Path) -> None:
    from stages.policies.checkpoint import is_complete, model_id_of

    models = ask(finished, "select model_id, path from model")
    assert len(models) == 3
    for model_id, path in models:
        assert is_complete(finished.parent / path)
        assert model_id_of(finished.parent / path) == model_id


def test_the_copy_equals_the_store(finished: Path) -> None:
    assert contents(finished.with_name("store.snapshot.duckdb")) == contents(finished)


def test_the_manifest_names_versions_and_the_config_loads_again(finished: Path) -> None:
    from configs.load import check, load

    ((manifest, config),) = ask(finished, "select manifest, config from run")
    assert json.loads(manifest)["packages"]["duckdb"].split(".")[0] == "2"
    assert check(json.loads(config)) == load(TRY)


# ── the commands that read ──────────────────────────────────────────────────────────────────

SQL = "select round, n, pass_at_1 from round_summary order by round"


def test_sql_gives_the_same_rows_as_table_csv_and_json(command: Command, finished: Path) -> None:
    expected = ask(finished, SQL)
    table = command("sql", SQL, "--store", finished).out.splitlines()
    assert table[0].split() == ["round", "n", "pass_at_1"]
    assert [line.split()[0] for line in table[2:5]] == ["0", "1", "2"]
    assert table[5] == "3 rows"
    assert table[6].startswith("(from the copy of ")
    text = command("sql", SQL, "--format", "csv", "--store", finished).out
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["round", "n", "pass_at_1"]
    assert [(int(a), int(b), float(c)) for a, b, c in rows] == expected
    found = json.loads(command("sql", SQL, "--format", "json", "--store", finished).out)
    assert [tuple(row.values()) for row in found] == expected


def test_sql_writes_parquet_to_a_file(finished: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.parquet"
    arguments = ["starloop", "sql", SQL, "--format", "parquet", "--store", str(finished)]
    code = f"import sys; sys.argv = {arguments!r}; from flows.cli import main; main()"
    with answer.open("wb") as file:
        subprocess.run([sys.executable, "-P", "-c", code], stdout=file, check=True,
                       env=clean_environment())  # fmt: skip
    assert [tuple(row.values()) for row in pq.read_table(answer).to_pylist()] == ask(finished, SQL)


def test_status_report_samples_and_lineage_speak_of_the_run(
    command: Command, finished: Path, tmp_path: Path
) -> None:
    page = tmp_path / "pages" / "report.md"
    row = command("status", "--store", finished).out.splitlines()[3].split()
    assert row[:6] == ["try", "star", "2", "of", "2", "complete"]
    report = command("report", "try", "--markdown", page, "--store", finished)
    assert "against its base" in report.out
    assert page.read_text().startswith("## try\n\nstar: task addition")
    samples = command("samples", "--count", "6", "--store", finished).out
    assert samples.count("  question    ") == 6
    lineage = command("lineage", "--store", finished)
    ((last,),) = ask(finished, "select model_id from round_summary where round = 2")
    assert lineage.out.startswith(f"trained try@2 ({last})\n")
    assert [e.code for e in (report, lineage)] == [0, 0]


def test_a_dry_run_prints_the_config_as_json_and_writes_nothing(
    command: Command, tmp_path: Path
) -> None:
    from configs.load import check, load

    store = tmp_path / "runs" / "store.duckdb"
    ended = command("run", TRY, "seed=5", "--rounds", "7", "--dry-run", "--store", store)
    assert ended.code == 0
    assert ended.err.startswith("forecast for run try, rounds to go: 7\n")
    assert check(json.loads(ended.out)) == load(TRY, ["seed=5", "rounds=7"])
    assert not store.parent.exists()


def test_the_command_line_loads_no_heavy_package() -> None:
    heavy = {"torch", "transformers", "trl", "prefect", "duckdb", "pyarrow", "datasets"}
    code = f"import sys, flows.cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
