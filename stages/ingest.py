# SPDX-License-Identifier: Apache-2.0
"""Rows of files that other tools wrote to rows of the store.

No policy of ours sampled these rows: their policy and sampling are NULL, and a slot is a place in
a file under the options that shape its row. Token ids are the file's; where it has none, text is
taken as it stands and chat messages go through the tokenizer's chat template.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stages import ids
from stages.errors import ConfigError
from stages.ids import Id
from stages.imports.base import Row
from stages.imports.taking import JUDGED, File, Ingested, Options, Writer
from stages.rows import (
    Prompt,
    TrainingRow,
    TrainingRowTrajectory,
    TrainingSet,
    Trajectory,
    Verdict,
    VerdictComponent,
    Verifier,
)
from stages.settings import canonical

ROLES = ("chosen", "rejected")


def ingest(files: Sequence[File], options: Options, tokenizer: Any = None) -> Ingested:
    """The rows of the store for the rows of files."""
    taken = Ingested()
    verifiers = {file.sha256: _verifier(file, options) for file in files}
    taken.verifiers = list(dict.fromkeys(v for v in verifiers.values() if v is not None))
    writer = Writer(options, tokenizer, taken)
    pairs: list[tuple[Row, Prompt, list[Trajectory]]] = []
    for file in files:
        for row in file.reading.rows:
            found = writer.take(file, row)
            if found is not None and options.kind == "pairs":
                pairs.append(found)
            elif found is not None:
                _judge(found[2][0], row, verifiers[file.sha256], options, taken)
    if pairs:
        _training_set(pairs, taken)
    return taken


def _verifier(file: File, options: Options) -> Verifier | None:
    """The verifier that a threshold on a reward makes."""
    if options.correct_at is None:
        return None
    reading = file.reading
    if options.kind not in JUDGED:
        raise ConfigError(f"--correct-at: {options.kind} have no rewards: leave it out")
    if reading.decides is None:
        found = ", ".join(reading.rewards) or "none"
        raise ConfigError(
            f"--correct-at: {file.name} has no single reward column (found: {found}): name the one "
            "that decides with --map reward=COLUMN"
        )
    config = canonical(
        {"format": options.format, "reward": reading.decides, "correct_at": options.correct_at}
    )
    return Verifier(ids.verifier_id("import", "1", config), "import", "1", config)


def _judge(
    trajectory: Trajectory, row: Row, verifier: Verifier | None, options: Options, taken: Ingested
) -> None:
    if verifier is None or options.correct_at is None:
        return
    reached = row.score is not None and row.score >= options.correct_at
    verdict = Verdict(
        ids.verdict_id(trajectory.trajectory_id, trajectory.content_id, verifier.verifier_id, 0),
        trajectory.trajectory_id,
        verifier.verifier_id,
        0,
        "unjudged" if row.score is None else "correct" if reached else "wrong",
        row.score,
        None,
        "no_reward" if row.score is None else "reward_reached" if reached else "reward_below",
        "weak",
        "none",
    )
    taken.verdicts.append(verdict)
    taken.components += [
        VerdictComponent(verdict.verdict_id, name, value, weight)
        for name, value, weight in row.components
    ]


def _training_set(
    pairs: Sequence[tuple[Row, Prompt, Sequence[Trajectory]]], taken: Ingested
) -> None:
    """The pairs as one training set, in the order of the files."""
    copies: Counter[Any] = Counter()
    rows: list[tuple[Id, Row, Prompt, Sequence[Trajectory]]] = []
    for row, prompt, made in pairs:
        contents = [one.content_id for one in made]
        same = (prompt.prompt_id, *contents, row.weight)
        row_id = ids.training_row_id("pair", prompt.prompt_id, contents, row.weight, copies[same])
        copies[same] += 1
        rows.append((row_id, row, prompt, made))
    set_id = ids.training_set_id([row_id for row_id, *_ in rows])
    taken.training_rows = [
        TrainingRow(
            set_id, row_id, place, "pair", prompt.prompt_id, row.weight, "import",
            sum(len(one.token_ids) for one in made),
        )
        for place, (row_id, row, prompt, made) in enumerate(rows)
    ]  # fmt: skip
    tokens = sum(row.tokens for row in taken.training_rows)
    taken.training_sets = [TrainingSet(set_id, len(rows), tokens)]
    taken.links = [
        TrainingRowTrajectory(set_id, row_id, one.trajectory_id, role, None, None)  # type: ignore[arg-type]
        for row_id, _, _, made in rows
        for role, one in zip(ROLES, made, strict=True)
    ]
