# SPDX-License-Identifier: Apache-2.0
"""What an updater is: training items and a start checkpoint in, a checkpoint and visits out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from stages.errors import UpdaterError
from stages.ids import Id
from stages.settings import Settings

Progress = Callable[[int, float | None], None]
Rows = Literal["sft", "pair", "rollout"]


@dataclass(frozen=True, slots=True)
class View:
    """A loss as a policy gradient, in the terms of DeepSeekMath (arXiv 2402.03300, 5.2.1).

    A step goes along the mean over rows of coefficient × ∇ log π(completion), by the completion's
    role. `level`: whether tokens or whole sequences count alike. Coefficients are Python, in the
    names of SYMBOLS and of the config's fields; `chosen` is that of the chosen one.
    """

    data: str
    reward: str
    coefficients: Mapping[str, str]
    level: Literal["token", "sequence", "–"]


SYMBOLS = {
    "c, r": "log π/π_ref of the chosen (or only) completion, and of the rejected one",
    "Δ": "log π/π_ref of the chosen completion less that of the rejected one",
    "p, q": "log π of the two",
    "n, m": "tokens of the two",
    "tokens": "mean tokens of a batch's (chosen) completions",
    "σ": "the logistic function",
    "ε": "label_smoothing",
    "w": "σ(β * Δ / 0.05), DiscoPOP's mixture",
    "A": "the rollout's advantage",
    "ρ": "π/π_old of the token, or the sequence's geometric mean",
    "open": "1 where the clip lets the gradient through, else 0",
    "κ": "π_ref/π of the token",
    "u": "τ (ρ - 1), τ 1 where A > 0, else 1.05 (SAPO)",
    "φ": "w^k e^(λ - λ w) of w = π/π_old of the answer; k, λ = 2, 3 where A ≥ 0, else 3, 2 (VESPO)",
    "z": "mean log π/π_ref over mismatched answers, at least 0",
}


class UpdaterSettings(Settings):
    """What every updater's config has, beside `batch_size` and `rows`.

    `rows` is the kind of training rows it takes: completions to imitate, pairs of a chosen and a
    rejected one, or completions with a reward. `VIEWS` has what each loss that it knows does.
    """

    VIEWS: ClassVar[Mapping[str, View]]

    @property
    def losses_used(self) -> Sequence[str]:
        """The keys of `VIEWS` that this config trains with."""
        return tuple(self.VIEWS)

    @property
    def needs_reference(self) -> bool:
        """Whether its loss compares the policy with a reference model."""
        return False

    @property
    def carries_optimizer(self) -> bool:
        """Whether a later update can go on with the optimizer that this one leaves."""
        return False

    @property
    def precision(self) -> tuple[str, str]:
        """Number format (`auto` included) and device."""
        return "float32", "cpu"

    def check(self) -> None:
        """Refuse what cannot train, before a round is spent on it: ConfigError."""


@dataclass(frozen=True, slots=True)
class Item:
    """A training row as tokens: loss falls on the completion, the chosen one of a pair.

    `loss_mask` has one flag per completion token; None puts loss on all of them. `rejected_ids` are
    a pair's; `reward` and `advantage` are a rollout's. `reference` has the summed log-probabilities
    (nats) under the reference model of the completion and of the rejected one. `texts` are prompt,
    completion and rejected one as text. `logprobs` (nats) are the sampler's for each completion
    token, at its `temperature`.
    """

    training_row_id: Id
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    loss_mask: tuple[bool, ...] | None = None
    rejected_ids: tuple[int, ...] = ()
    reward: float | None = None
    reference: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    advantage: float | None = None
    logprobs: tuple[float, ...] | None = None
    temperature: float | None = None


def check_any(items: Sequence[Item]) -> None:
    """UpdaterError where there is nothing to train on."""
    if not items:
        raise UpdaterError("there is no row to train on: lower the bar of `mix` or sample more")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: optimizer steps, seed, the start checkpoint, and a folder of our own.

    `work` keeps intermediate checkpoints over a kill; `draft` is where the result must lie.
    `optimizer` is the state that an earlier update left, to go on with (None: begin anew); the
    learning rate's schedule covers `span` steps (None: `steps`). `state` is where this update
    leaves its own (None: nowhere). `reference` is the reference model's checkpoint.
    """

    steps: int
    seed: int
    init: Path
    work: Path
    draft: Path
    optimizer: Path | None = None
    span: int | None = None
    state: Path | None = None
    reference: Path | None = None


@dataclass(frozen=True, slots=True)
class Trained:
    """What was done: steps, visits of the optimizer by row, mean loss over the last tenth.

    `series` are (step, name, value): what the trainer measured on each step, from 1.
    """

    steps_done: int
    visits: Mapping[Id, int]
    loss: float | None
    series: Sequence[tuple[int, str, float]] = ()


def accelerator() -> str:
    """`cuda` where there is one, else `cpu`."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


class Updater(Protocol):
    """A built updater; `deterministic` means equal items and plan give equal weights."""

    @property
    def name(self) -> str: ...
    @property
    def deterministic(self) -> bool: ...

    def update(self, items: Sequence[Item], plan: Plan, progress: Progress) -> Trained:
        """Train from `plan.init` and leave a checkpoint in `plan.draft`.

        Calls `progress(steps_done, loss)`. Raises UpdaterError.
        """
        ...
