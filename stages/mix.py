# SPDX-License-Identifier: Apache-2.0
"""Candidates to training rows, and a decision with a reason for every candidate.

The store's query hands over candidates; the choice is made here, the same for a seed whatever
the order they come in. Rows are tried source by source: this round, rationalized, earlier
rounds, seed. Training rows always carry the problem's plain prompt.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from stages import ids
from stages.candidates import Candidate, History, Mix, barred, loss_tokens
from stages.equations import equation_key, equations_hold, farthest
from stages.groups import GroupsConfig
from stages.ids import Id
from stages.pairs import PairsConfig
from stages.rows import Decision, Source, TrainingRow, TrainingRowTrajectory, TrainingSet
from stages.settings import Settings, later

SOURCES: tuple[Source, ...] = ("round", "rationalized", "earlier", "seed")


class MixConfig(Settings):
    """What a training set is made of.

    `history` says which earlier rows are taken: none (`new_only`), all (`accumulate`), those of the
    last w rounds with this one (`window(w)`), or any up to a share of the set (`ratio(x)`).
    `seed_rows` is how many worked examples of the task are. `max_rationalized_share` bounds
    rationalized rows among the rows that the model made. `dedup` compares answers of one problem by
    token ids, by text, or by their equations: of a list of equations (no equations are a list too)
    and a source, the answer that is farthest from the problem's kept ones stays. `check_equations`
    leaves out answers with a false equation. `max_policy_age` leaves out rows whose policy was
    updated more often since. `pairs` says how answers are paired, for losses on pairs; `groups` how
    those to one problem are weighed, for policy gradients.
    """

    history: str = "accumulate"
    seed_rows: int = Field(0, ge=0)
    cap_per_problem: int | None = Field(None, ge=1)
    dedup: Literal["none", "exact", "normalised", "equations"] = "exact"
    check_equations: bool = later(False)
    max_rationalized_share: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_policy_age: int | None = later(None, ge=0)
    pairs: PairsConfig = later(PairsConfig())
    groups: GroupsConfig = later(GroupsConfig())

    @field_validator("history")
    @classmethod
    def _history_is_known(cls, text: str) -> str:
        History.parse(text)
        return text


def mix(
    candidates: Sequence[Candidate],
    config: MixConfig,
    seed: int,
    step_key: Id,
    kind: Literal["sft", "rollout"] = "sft",
) -> Mix:
    """Choose among the candidates and order the chosen rows for training.

    Right answers are rows of kind `sft`; right and wrong ones, weighed by their reward, `rollout`.
    """
    allowed = {"correct"} if kind == "sft" else {"correct", "wrong"}
    kept, left_out = _choose(_ordered(candidates, seed), config, allowed)
    random.Random(f"rows|{seed}").shuffle(kept)
    rows = _training_rows(kept, kind)
    set_id = ids.training_set_id([row_id for row_id, _ in rows])
    decided = [*((c, "kept") for c in kept), *left_out]
    decisions = [
        Decision(step_key, c.trajectory.trajectory_id, c.source, why == "kept", why)
        for c, why in decided
    ]
    training_rows = [
        TrainingRow(
            set_id,
            row_id,
            place,
            kind,
            c.prompt.prompt_id,
            _weight(c, kind),
            c.source,
            loss_tokens(c),
            c.age,
        )
        for place, (row_id, c) in enumerate(rows)
    ]
    return Mix(
        TrainingSet(set_id, len(rows), sum(row.tokens for row in training_rows)),
        training_rows,
        [
            TrainingRowTrajectory(
                set_id, row_id, c.trajectory.trajectory_id, "completion", c.score, None
            )
            for row_id, c in rows
        ],
        decisions,
    )


def _ordered(candidates: Sequence[Candidate], seed: int) -> list[Candidate]:
    def key(candidate: Candidate) -> tuple[int, str]:
        shuffle = ids.hash_text(f"{seed}|{candidate.trajectory.trajectory_id}")
        return SOURCES.index(candidate.source), shuffle

    return sorted(candidates, key=key)


def _choose(
    ordered: Sequence[Candidate], config: MixConfig, allowed: Collection[str]
) -> tuple[list[Candidate], list[tuple[Candidate, str]]]:
    """Rows that fall to another rule leave no room for rationalized ones: choose until it holds."""
    own = sum(c.trajectory.origin == "self" for c in ordered)
    read = [_Read(c, _usable(c, config, allowed), _dedup_text(c, config)) for c in ordered]
    while True:
        kept, left_out = _choose_with_room(read, config, _rationalized_room(config, own))
        found = sum(c.trajectory.origin == "self" for c in kept)
        room = _rationalized_room(config, found)
        if room is None or sum(map(_rationalized, kept)) <= room:
            return kept, left_out
        own = min(found, own - 1)


@dataclass(frozen=True, slots=True)
class _Read:
    """A candidate, why it can never train (or None), and what its duplicates share with it."""

    candidate: Candidate
    barred: str | None
    text: str | None


def _choose_with_room(
    read: Sequence[_Read], config: MixConfig, room: int | None
) -> tuple[list[Candidate], list[tuple[Candidate, str]]]:
    kept: list[Candidate] = []
    left_out: list[tuple[Candidate, str]] = []
    seen: set[str] = set()
    per_problem: Counter[Id] = Counter()
    history = History.parse(config.history)
    seeds = rationalized = earlier = tokens = 0
    for one in _farthest_first(read, kept) if config.dedup == "equations" else read:
        candidate, why, text = one.candidate, one.barred, one.text
        if why is None and text is not None and text in seen:
            why = "duplicate"
        if why is None and _rationalized(candidate) and room is not None:
            why = "over_rationalized_share" if rationalized >= room else None
        if why is None and candidate.source == "earlier":
            most = history.room(len(kept) - earlier)
            why = "over_old_share" if most is not None and earlier >= most else None
        if why is None and candidate.source == "seed":
            why = "over_seed_rows" if seeds >= config.seed_rows else None
        if why is None and config.cap_per_problem and candidate.source != "seed":
            full = per_problem[candidate.trajectory.problem_id] >= config.cap_per_problem
            why = "over_cap" if full else None
        if why is None and config.max_tokens is not None:
            why = "over_tokens" if tokens + loss_tokens(candidate) > config.max_tokens else None
        if why is not None:
            left_out.append((candidate, why))
            continue
        kept.append(candidate)
        tokens += loss_tokens(candidate)
        seeds += candidate.source == "seed"
        earlier += candidate.source == "earlier"
        rationalized += _rationalized(candidate)
        per_problem[candidate.trajectory.problem_id] += 1
        if text is not None:
            seen.add(text)
    return kept, left_out


def _farthest_first(read: Sequence[_Read], kept: Sequence[Candidate]) -> Iterator[_Read]:
    """The candidates in order, those alike and of one source trading places: the farthest first.

    The caller adds to `kept` while this runs; distances are to what is kept of the same problem.
    """
    alike: dict[tuple[str | None, Source], list[_Read]] = defaultdict(list)
    for one in read:
        if one.barred is None:
            alike[one.text, one.candidate.source].append(one)
    texts: dict[Id, list[str]] = defaultdict(list)
    settled: set[str | None] = set()
    counted = 0
    for place in read:
        if place.barred is not None:
            yield place
            continue
        rivals = alike[place.text, place.candidate.source]
        near = texts[place.candidate.trajectory.problem_id]
        answers = [one.candidate.trajectory.completion for one in rivals]
        yield rivals.pop(0 if place.text in settled else farthest(answers, near))
        if len(kept) > counted:
            counted = len(kept)
            near.append(kept[-1].trajectory.completion)
            settled.add(place.text)


def _usable(candidate: Candidate, config: MixConfig, allowed: Collection[str]) -> str | None:
    """Why a candidate can never train, or None."""
    why = barred(candidate)
    if why is None and candidate.status not in allowed:
        why = candidate.status
    if why is None and config.check_equations:
        why = None if equations_hold(candidate.trajectory.completion) else "false_equation"
    return why


def _rationalized(candidate: Candidate) -> bool:
    return candidate.trajectory.origin == "rationalized"


def _rationalized_room(config: MixConfig, own: int) -> int | None:
    """Rationalized rows allowed so that their share of the model's rows stays in bounds."""
    share = config.max_rationalized_share
    return None if share is None or share == 1.0 else int(own * share / (1.0 - share) + 1e-9)


def _dedup_text(candidate: Candidate, config: MixConfig) -> str | None:
    problem = candidate.trajectory.problem_id
    if config.dedup == "exact":
        return f"{problem}|{ids.hash_tokens(candidate.trajectory.token_ids)}"
    if config.dedup == "normalised":
        words = re.sub(r"\s+", " ", candidate.trajectory.completion.strip().lower())
        return f"{problem}|{words}"
    if config.dedup == "equations":
        return f"{problem}|{' '.join(equation_key(candidate.trajectory.completion))}"
    return None


def _training_rows(kept: Sequence[Candidate], kind: str) -> list[tuple[Id, Candidate]]:
    """The kept candidates with their row ids; equal contents get ids of their own."""
    copies: Counter[tuple[Id, Id, float]] = Counter()
    rows = []
    for candidate in kept:
        prompt = candidate.prompt
        content = ids.content_id(prompt.token_ids, candidate.trajectory.token_ids)
        same = (prompt.prompt_id, content, _weight(candidate, kind))
        row_id = ids.training_row_id(kind, same[0], [content], same[2], copies[same])
        copies[same] += 1
        rows.append((row_id, candidate))
    return rows


def _weight(candidate: Candidate, kind: str) -> float:
    """1; of a rollout its reward, so that other rewards of the same answers are other rows."""
    return (candidate.score or 0.0) if kind == "rollout" else 1.0


def rationalized_share(candidates: Sequence[Candidate], mixed: Mix) -> float:
    """Share of a mix's rows that were rationalized, in whatever round."""
    hinted = {c.trajectory.trajectory_id for c in candidates if _rationalized(c)}
    return sum(link.trajectory_id in hinted for link in mixed.trajectories) / len(mixed.rows)
