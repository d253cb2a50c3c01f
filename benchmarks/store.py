# SPDX-License-Identifier: Apache-2.0
"""Figures of the provenance store: ingest, size, questions at 1 M and 10 M, two runs, snapshots.

    python -m benchmarks.store             everything (about 20 minutes, 20 GB of disk)
    python -m benchmarks.store --scale 0.1 a tenth of the rows: shows the shape, holds no bar
    python -m benchmarks.store --folder F  keep the made histories in F and use those there

Each figure is taken beside what a user would do instead, in the same process and minute.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.figures import Figure, show_and_write
from benchmarks.history import write_history
from benchmarks.questions import QUESTIONS, WHOLE, ask_all, beside_files
from benchmarks.under_way import killed, two_at_once
from report.text import text_table
from stages.rows import Trajectory
from stages.shards import arrow_schema
from store.db import Store
from store.versions import surface

BATCH = 100_000
TRAJECTORIES = """
select mint('t', [i]) as trajectory_id, mint('c', [i]) as content_id, mint('p', [i % 9973])
           as problem_id, mint('q', [i % 9973]) as prompt_id, mint('m', [0]) as model_id,
       mint('s', [0]) as sampling_id, 'train' as purpose, 'self' as origin, i as seed, 0 as slot,
       array_to_string(list_transform(range(120),
           lambda w: 'w' || (hash(i * 1000 + w) % 2048 * 7919 % 100003)), ' ') as completion,
       list_transform(range(160), lambda w: (hash(i * 1000 + w) % 32000)::integer) as token_ids,
       list_transform(range(160), lambda w:
           ln(((hash(i * 1000 - w) % 1000000)::bigint + 1) / 1000001.0)::float) as logprobs,
       'stop' as finish_reason, 'made' as engine, '1' as engine_version, 'float32' as dtype,
       'none' as weight_version, null::uuid as group_id, null::boolean[] as loss_mask,
       null::boolean as from_text
from range($begin, $end) r(i)
"""


def main() -> None:
    """Take every figure, print the tables, write the figures."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--folder", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-store-") as temporary:
        folder, kept = Path(temporary), chosen.folder or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        figures = ingest(folder, int(1_000_000 * chosen.scale))
        figures["two runs at once: waiting"] = two_at_once(folder)
        figures["work repeated after a kill"] = killed(folder)
        small = history(kept, "1M", int(10_000 * chosen.scale))
        large = history(kept, "10M", int(100_000 * chosen.scale))
        figures |= questions(small, large)
        figures |= files(small, folder)
        figures["snapshot"] = snapshot(large)
    show_and_write("store", figures)


def ingest(folder: Path, count: int) -> dict[str, Figure]:
    """Our insert with its id checks against the bare one, batch by batch in turn; size on disk."""
    ours, bare = Store(folder / "ours.duckdb"), Store(folder / "bare.duckdb")
    for store in (ours, bare):
        store.create()
    seconds = {"ours": 0.0, "bare": 0.0}
    for turn, table in enumerate(batches(count)):
        for way in ("ours", "bare") if turn % 2 else ("bare", "ours"):
            begun = time.monotonic()
            if way == "ours":
                with ours.transaction() as tx:
                    new = tx.insert(Trajectory, table)
                assert len(new) == table.num_rows
            else:
                with duckdb.connect(str(bare.path)) as connection:
                    connection.register("incoming", table)
                    connection.execute("insert into trajectory by name from incoming")
            seconds[way] += time.monotonic() - begun
        print(f"  {(turn + 1) * BATCH:,} trajectories ingested", flush=True)
    with duckdb.connect(str(ours.path)) as connection:
        jsonl = folder / "sample.jsonl"
        connection.execute(f"copy (from trajectory limit {BATCH}) to '{jsonl}' (format json)")
    a_row = jsonl.stat().st_size / min(BATCH, count)
    share = ours.path.stat().st_size / count / a_row
    ratio = seconds["bare"] / seconds["ours"]
    rate = f"{count / seconds['ours']:,.0f} trajectories/s, {ratio:.2f} of the bare insert"
    return {
        "ingest with id checks": Figure(
            rate, "", "≥ 0.5", ratio >= 0.5, f"{count / seconds['bare']:,.0f}/s bare"
        ),
        "bytes a trajectory": Figure(
            f"{ours.path.stat().st_size / count:,.0f} B, {share:.2f} of JSONL", "", "≤ 0.35",
            share <= 0.35, f"{a_row:,.0f} B as JSONL",
        ),
    }  # fmt: skip


def batches(count: int) -> Iterator[pa.Table]:
    """Arrow tables of trajectories: 120 words, 160 token ids, 160 log-probabilities each."""
    with duckdb.connect(config={"arrow_lossless_conversion": True}) as connection:
        macros = surface()
        connection.execute(macros[: macros.index("create or replace macro hash_tokens")])
        for begin in range(0, count, BATCH):
            values = {"begin": begin, "end": min(begin + BATCH, count)}
            found: pa.Table = connection.sql(TRAJECTORIES, params=values).to_arrow_table()
            yield found.cast(arrow_schema(Trajectory))


def history(folder: Path, name: str, size: int) -> Path:
    """A store of 10 runs × 10 rounds × `size` trajectories, made now unless it is there."""
    path = folder / f"{name}.duckdb"
    if not path.exists():
        print(f"making {100 * size:,} trajectories", flush=True)
        draft = path.with_suffix(".tmp")
        write_history(draft, 10, 10, size, words=26, tokens=34)
        draft.rename(path)
    return path


def questions(small: Path, large: Path) -> dict[str, Figure]:
    """Every view and macro for one run or one model, at both sizes."""
    for path in (small, large):
        Store(path).snapshot()
    at_small = ask_all(small, QUESTIONS | WHOLE)
    at_large = ask_all(large, QUESTIONS | WHOLE)
    rows = [[n, f"{at_small[n]:.2f}", f"{at_large[n]:.2f}"] for n in QUESTIONS | WHOLE]
    print(text_table(["question, one run or model", "1 M, s", "10 M, s"], rows), end="\n\n")
    slowest = max(QUESTIONS, key=lambda name: at_large[name])
    return {
        "slowest question at 10 M": Figure(
            f"{at_large[slowest]:.2f} s ({slowest})", "", "≤ 2 s", at_large[slowest] <= 2.0,
            f"{at_small[slowest]:.2f} s at 1 M",
        ),
    }  # fmt: skip


def files(small: Path, folder: Path) -> dict[str, Figure]:
    """Three questions beside pandas and jq over one run's JSONL."""
    found = beside_files(small, folder)
    return {
        f"1 M: {name}": Figure(
            f"{ways['starloop']:.2f}", "s",
            against=", ".join(f"{w} {s:.1f} s" for w, s in ways.items() if w != "starloop" and s),
        )
        for name, ways in found.items()
    }  # fmt: skip


def snapshot(path: Path) -> Figure:
    """Our snapshot of a store against `cp` of the same file, in turn, twice each."""
    store, target = Store(path), path.with_suffix(".cp")
    ours = bare = 0.0
    for _ in range(2):
        begun = time.monotonic()
        subprocess.run(["cp", "--reflink=auto", str(path), str(target)], check=True)
        bare += time.monotonic() - begun
        target.unlink()
        store.copy.unlink(missing_ok=True)
        begun = time.monotonic()
        store.snapshot()
        ours += time.monotonic() - begun
    size = path.stat().st_size / 1e9
    ratio = bare / ours
    return Figure(
        f"{size:.1f} GB in {ours / 2:.1f} s, {ratio:.2f} of cp's rate", "", "≥ 0.5", ratio >= 0.5,
        f"cp {bare / 2:.1f} s",
    )  # fmt: skip


if __name__ == "__main__":
    main()
