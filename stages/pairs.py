# SPDX-License-Identifier: Apache-2.0
"""Judged answers to preference pairs: chosen against rejected, of one problem and one policy.

The guard: chosen is `correct`, rejected is `wrong`; never unjudged, cut off, hinted or reciting an
evaluation problem; never the same text once blanks and case are set aside, nor with equivalent
answers; both from one policy unless `across_policies`. (`shortest_correct_vs_longest_correct` alone
pairs a short right answer with a long right one.) Problems whose answers are all right or all wrong
give no pair: their candidates are decided `one_sided`. The choice is the same for a seed whatever
the order that candidates come in.
"""

import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import Field, field_validator

from stages import ids
from stages.candidates import Candidate, History, Mix, barred
from stages.ids import Id
from stages.rows import Decision, TrainingRow, TrainingRowTrajectory, TrainingSet
from stages.settings import Settings

CAPPED = re.compile(r"all_capped\(([1-9][0-9]{0,5})\)")
LONG = 1.5  # times the shortest right answer, for a right answer to be rejected as too long

Same = Callable[[str, str], bool]
Pair = tuple[Candidate, Candidate]


class PairsConfig(Settings):
    """Which pairs a group of answers gives.

    `rule`: `random` is one right and one wrong answer drawn at random; `best_worst` the right
    answer with the highest reward and the wrong one with the lowest; `all_capped(m)` up to m pairs,
    each answer used as evenly as can be (arXiv 2404.19733 walks both lists in parallel);
    `shortest_correct_vs_longest_correct` the shortest right answer and the longest right one that
    is at least 1.5 times as long (Kimi k1.5, arXiv 2501.12599). `max_length_gap` bounds the
    difference in tokens, `margin` is the least difference of rewards, `min_edits` the least edit
    distance in characters.
    """

    rule: str = "random"
    max_length_gap: int | None = Field(None, ge=0)
    margin: float = Field(0.0, ge=0)
    min_edits: int | None = Field(None, ge=1)
    across_policies: bool = False

    @field_validator("rule")
    @classmethod
    def _rule_is_known(cls, rule: str) -> str:
        known = ("random", "best_worst", "shortest_correct_vs_longest_correct")
        if rule not in known and not CAPPED.fullmatch(rule):
            raise ValueError(
                f"{rule!r} is not allowed: use {', '.join(known)}, or all_capped(m) with m from 1 "
                "on: all_capped(10)"
            )
        return rule


def pair_up(
    candidates: Sequence[Candidate],
    config: PairsConfig,
    history: History,
    seed: int,
    step_key: Id,
    answers: Mapping[Id, str],
    same_answer: Same,
) -> Mix:
    """Pairs as a training set, with a decision for every candidate.

    `answers` are the extracted answers by trajectory, where there is one; `same_answer` says
    whether two of them are equivalent.
    """
    guard = Guard(config, answers, same_answer)
    groups: dict[tuple[Id, Id, Id | None], list[Candidate]] = defaultdict(list)
    why: dict[Id, str] = {}
    for one in candidates:
        reason = barred(one) or ("unjudged" if one.status == "unjudged" else None)
        if reason is not None:
            why[one.trajectory.trajectory_id] = reason
            continue
        policy = None if config.across_policies else one.trajectory.model_id
        groups[one.trajectory.problem_id, one.prompt.prompt_id, policy].append(one)
    pairs: list[Pair] = []
    for key in sorted(groups, key=str):
        found, reasons = _of_group(groups[key], config, guard, seed)
        pairs += found
        why |= reasons
    pairs, why_old = _within_share(pairs, history, seed)
    why |= why_old
    random.Random(f"rows|{seed}").shuffle(pairs)
    return _as_mix(pairs, candidates, why, step_key)


class Guard:
    """Why two answers may not stand as chosen and rejected."""

    def __init__(self, config: PairsConfig, answers: Mapping[Id, str], same_answer: Same) -> None:
        self._config, self._answers, self._same_answer = config, answers, same_answer

    def refuses(self, chosen: Candidate, rejected: Candidate) -> str | None:
        """The reason, None for a pair that may stand."""
        config = self._config
        one, other = chosen.trajectory, rejected.trajectory
        texts = [normalised(one.completion), normalised(other.completion)]
        if texts[0] == texts[1]:
            return "equal_text"
        gap = abs(len(one.token_ids) - len(other.token_ids))
        if config.max_length_gap is not None and gap > config.max_length_gap:
            return "length_gap"
        if config.min_edits is not None:
            from rapidfuzz.distance import Levenshtein

            if Levenshtein.distance(*texts, score_cutoff=config.min_edits) < config.min_edits:
                return "too_few_edits"
        if config.rule == "shortest_correct_vs_longest_correct":
            return None
        if (chosen.score or 0.0) - (rejected.score or 0.0) < config.margin:
            return "margin"
        said = [self._answers.get(t.trajectory_id) for t in (one, other)]
        if said[0] is not None and said[1] is not None and self._same_answer(said[0], said[1]):
            return "equivalent_answers"
        return None


def normalised(text: str) -> str:
    """A text without differences of blanks and case."""
    return " ".join(text.casefold().split())


def _of_group(
    group: Sequence[Candidate], config: PairsConfig, guard: Guard, seed: int
) -> tuple[list[Pair], dict[Id, str]]:
    """A group's pairs, and why each other candidate is in none."""

    def shuffled(one: Candidate) -> str:
        return ids.hash_text(f"pair|{seed}|{one.trajectory.trajectory_id}")

    right = sorted((c for c in group if c.status == "correct"), key=shuffled)
    wrong = sorted((c for c in group if c.status == "wrong"), key=shuffled)
    if not right or (not wrong and config.rule != "shortest_correct_vs_longest_correct"):
        return [], {c.trajectory.trajectory_id: "one_sided" for c in group}
    most = int(found[1]) if (found := CAPPED.fullmatch(config.rule)) else 1
    pairs: list[Pair] = []
    refused: dict[Id, str] = {}
    for chosen, rejected in _in_order(right, wrong, config.rule):
        if len(pairs) == most:
            break
        reason = guard.refuses(chosen, rejected)
        if reason is None:
            pairs.append((chosen, rejected))
            continue
        for one in (chosen, rejected):
            refused.setdefault(one.trajectory.trajectory_id, reason)
    used = {one.trajectory.trajectory_id for pair in pairs for one in pair}
    left = [c.trajectory.trajectory_id for c in group if c.trajectory.trajectory_id not in used]
    return pairs, {id_: refused.get(id_, "not_paired") for id_ in left}


def _in_order(right: Sequence[Candidate], wrong: Sequence[Candidate], rule: str) -> Iterator[Pair]:
    """All pairs that a rule may take, the preferred ones first."""
    if rule == "best_worst":
        best = sorted(right, key=lambda c: -(c.score or 0.0))
        worst = sorted(wrong, key=lambda c: c.score or 0.0)
        yield from ((one, other) for one in best for other in worst)
    elif rule == "shortest_correct_vs_longest_correct":
        by_length = sorted(right, key=lambda c: len(c.trajectory.token_ids))
        shortest = by_length[0]
        for other in reversed(by_length[1:]):
            if len(other.trajectory.token_ids) >= LONG * len(shortest.trajectory.token_ids):
                yield shortest, other
    else:
        rows, columns = len(right), len(wrong)
        around = math.lcm(rows, columns)
        for shift in range(math.gcd(rows, columns)):
            for step in range(around):
                yield right[step % rows], wrong[(step + shift) % columns]


def _within_share(
    pairs: Sequence[Pair], history: History, seed: int
) -> tuple[list[Pair], dict[Id, str]]:
    """All pairs of this round and as many older ones as its share allows, drawn at random."""
    new = [pair for pair in pairs if not _old(pair)]
    old = [pair for pair in pairs if _old(pair)]
    random.Random(f"old|{seed}").shuffle(old)
    room = history.room(len(new))
    why = {} if room is None else {
        one.trajectory.trajectory_id: "over_old_share" for pair in old[room:] for one in pair
    }  # fmt: skip
    return new + old[:room], why


def _old(pair: Pair) -> bool:
    return any(one.source == "earlier" for one in pair)


def _as_mix(
    pairs: Sequence[Pair], candidates: Sequence[Candidate], why: Mapping[Id, str], step_key: Id
) -> Mix:
    rows = [(_row_id(chosen, rejected), chosen, rejected) for chosen, rejected in pairs]
    distinct = {row_id: (chosen, rejected) for row_id, chosen, rejected in reversed(rows)}
    ordered = list(dict.fromkeys(row_id for row_id, _, _ in rows))
    set_id = ids.training_set_id(ordered)
    training_rows, links = [], []
    kept: set[Id] = set()
    for place, row_id in enumerate(ordered):
        chosen, rejected = distinct[row_id]
        tokens = len(chosen.trajectory.token_ids) + len(rejected.trajectory.token_ids)
        older = max(chosen, rejected, key=lambda c: -1 if c.age is None else c.age)
        training_rows.append(
            TrainingRow(
                set_id, row_id, place, "pair", chosen.prompt.prompt_id, 1.0, older.source, tokens,
                older.age,
            )
        )  # fmt: skip
        for one, role in ((chosen, "chosen"), (rejected, "rejected")):
            id_ = one.trajectory.trajectory_id
            kept.add(id_)
            links.append(TrainingRowTrajectory(set_id, row_id, id_, role, one.score, None))  # type: ignore[arg-type]
    decisions = []
    for one in candidates:
        id_ = one.trajectory.trajectory_id
        reason = "kept" if id_ in kept else why.get(id_, "duplicate")
        decisions.append(Decision(step_key, id_, one.source, id_ in kept, reason))
    training_set = TrainingSet(set_id, len(ordered), sum(row.tokens for row in training_rows))
    return Mix(training_set, training_rows, links, decisions)


def _row_id(chosen: Candidate, rejected: Candidate) -> Id:
    prompt = chosen.prompt
    contents = [
        ids.content_id(prompt.token_ids, one.trajectory.token_ids) for one in (chosen, rejected)
    ]
    return ids.training_row_id("pair", prompt.prompt_id, contents, 1.0, 0)
