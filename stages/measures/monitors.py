# SPDX-License-Identifier: Apache-2.0
"""What a refresh's answers look like, as named readings.

In: the answers sampled without a hint, their final verdicts, and which of them train. Out:
(name, slice, value). A reading that cannot be had is left out, never 0.

| name | value |
|---|---|
| answers, tokens | how many were sampled |
| length | mean tokens of an answer; of right and of wrong ones |
| reasoning_length, answer_length | the same of its parts, by their share of its characters |
| entropy | −log p of a sampled token, a sample estimate, where nothing scaled or cut p |
| all_right, all_wrong, mixed | shares of the problems with two or more judged answers |
| groups, groups_kept | problems that were answered, and those with an answer that trains |
| effective | share of the answers that train, those of advantage 0 left out |
| advantage_variance | population variance over the rollouts that train |
| reward_mean, reward_std_between, reward_std_within | by problem |
| equal_rewards | share of the problems with two or more answers whose rewards are all equal |
| reward_at_top | share of the answers that have the highest reward of the refresh |
| held_out | pass@1 of the newest evaluation of an earlier round |
| reward_gap | reward_mean less held_out |
| truncated | share of the answers that were cut off |
| repetition | mean share of runs of four words that repeat |
| kl_base_k1 … kl_reference_k3 | KL of the policy to base and reference, by two estimators |
| sampler_gap, sampler_gap_max | distance of the sampler's log p of a token to the trainer's |

What the trainer itself measures (clip fractions, ratios, entropy over all tokens) are its series.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from stages.ids import Id
from stages.measures.divergence import apart, entropy, k1, k3
from stages.measures.groups import equal_share, rewards, sides, top_share
from stages.measures.texts import parts, repetition
from stages.rows import Status, Trajectory
from stages.settings import Settings, later

Reading = tuple[str, str, float]

SLICED = ("length", "reasoning_length", "answer_length")
NAMES = (
    "answers", "tokens", *SLICED, "entropy", "all_right", "all_wrong", "mixed", "effective",
    "groups", "groups_kept", "advantage_variance",
    "reward_mean", "reward_std_between", "reward_std_within", "equal_rewards", "reward_at_top",
    "held_out", "reward_gap", "truncated", "repetition",
    "kl_base_k1", "kl_base_k3", "kl_reference_k1", "kl_reference_k3",
    "sampler_gap", "sampler_gap_max",
)  # fmt: skip


class MonitorsConfig(Settings):
    """Whether the policy is compared with base and reference, on `kl_sample` answers of a refresh.

    `kl` of None says so for recipes dpo and grpo, where the sampler's answers come from weights.
    """

    kl: bool | None = later(None)
    kl_sample: int = later(64, ge=1, le=10**6)


@dataclass(frozen=True, slots=True)
class Answer:
    """A sampled answer, its final verdict, whether it trains, and with what advantage."""

    trajectory: Trajectory
    status: Status
    score: float | None
    kept: bool
    advantage: float | None = None


def readings(answers: Sequence[Answer], mark: str | None, *, plain: bool) -> list[Reading]:
    """All readings but KL.

    `mark` stands before an answer; `plain`: sampled at temperature 1 and uncut.
    """
    if not answers:
        return []
    count = len(answers)
    found: list[tuple[str, float | None]] = [
        ("answers", count),
        ("tokens", sum(len(a.trajectory.token_ids) for a in answers)),
        ("effective", sum(a.kept and a.advantage != 0 for a in answers) / count),
        ("truncated", sum(a.trajectory.finish_reason == "length" for a in answers) / count),
        ("repetition", _mean(repetition(a.trajectory.completion) for a in answers)),
        ("entropy", entropy(a.trajectory.logprobs or () for a in answers) if plain else None),
        *_by_problem(answers),
    ]
    whole = [(name, "all", float(value)) for name, value in found if value is not None]
    return [*whole, *_lengths(answers, mark)]


def tried(answers: Sequence[Answer]) -> list[Reading]:
    """How many groups were sampled, and how many of them train."""
    asked = {a.trajectory.problem_id for a in answers}
    kept = {a.trajectory.problem_id for a in answers if a.kept}
    return [("groups", "all", float(len(asked))), ("groups_kept", "all", float(len(kept)))]


def weighed(advantages: Sequence[float]) -> list[Reading]:
    """How far the advantages of the rollouts that train are apart."""
    return [("advantage_variance", "all", pvariance(advantages))] if advantages else []


def against_held_out(found: Sequence[Reading], pass_at_1: float) -> list[Reading]:
    """The newest held-out pass@1, and how far the mean reward among the readings is above it."""
    means = [value for name, _, value in found if name == "reward_mean"]
    gaps = [("reward_gap", "all", mean - pass_at_1) for mean in means]
    return [("held_out", "all", pass_at_1), *gaps]


def between(
    sampler: Sequence[Sequence[float]], trainer: Sequence[Sequence[float]]
) -> list[Reading]:
    """How far the two are apart on the same answers' tokens; nothing without a token."""
    gap = apart(sampler, trainer)
    found = [("sampler_gap", "all", gap.mean), ("sampler_gap_max", "all", gap.most)]
    return found if gap.tokens else []


def divergences(policy: Sequence[float], others: Mapping[str, Sequence[float]]) -> list[Reading]:
    """KL of the policy to others by name: log-probabilities of the same tokens under each."""
    return [
        (f"kl_{name}_{estimator.__name__}", "all", value)
        for name, logprobs in others.items()
        for estimator in (k1, k3)
        if (value := estimator(policy, logprobs)) is not None
    ]


def _by_problem(answers: Sequence[Answer]) -> Iterator[tuple[str, float]]:
    right: dict[Id, list[bool]] = {}
    scores: dict[Id, list[float]] = {}
    for one in answers:
        if one.status != "unjudged":
            right.setdefault(one.trajectory.problem_id, []).append(one.status == "correct")
        if one.score is not None:
            scores.setdefault(one.trajectory.problem_id, []).append(one.score)
    if shares := sides(right.values()):
        yield from (
            ("all_right", shares.all_right),
            ("all_wrong", shares.all_wrong),
            ("mixed", shares.mixed),
        )
    if spread := rewards(scores.values()):
        yield from (
            ("reward_mean", spread.mean),
            ("reward_std_between", spread.between),
            ("reward_std_within", spread.within),
        )
    yield from (
        (name, value)
        for name, value in (
            ("equal_rewards", equal_share(scores.values())),
            ("reward_at_top", top_share(scores.values())),
        )
        if value is not None
    )


def _lengths(answers: Sequence[Answer], mark: str | None) -> Iterator[Reading]:
    def length(one: Answer, part: Callable[[tuple[str, str]], str] | None) -> float | None:
        tokens, text = len(one.trajectory.token_ids), one.trajectory.completion
        if part is None:
            return tokens
        divided = parts(text, mark)
        return None if divided is None else tokens * len(part(divided)) / len(text)

    named = zip(SLICED, (None, lambda both: both[0], lambda both: both[1]), strict=True)
    for name, part in named:
        for slice_ in ("all", "correct", "wrong"):
            some = (a for a in answers if slice_ in ("all", a.status))
            value = _mean(length(one, part) for one in some)
            if value is not None:
                yield name, slice_, value


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None
