# SPDX-License-Identifier: Apache-2.0
"""`grpo`: its losses by plain forward passes, step by step, on rollouts however old."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from plain_torch import Killed, load, weights
from pydantic import ValidationError

from stages import ids
from stages.errors import UpdaterError
from stages.ids import Id
from stages.scoring import score_tokens
from stages.update import update
from stages.updaters import Item, Plan, Trained, grpo
from stages.updaters.rollouts import ratios_of
from stages.updaters.training import BatchSorted

# Rollouts of 3 to 9 tokens to prompts of 2 to 5; every other one has no end token (2).
ADVANTAGES = (1.0, -0.5, 0.25, -1.5, 2.0, -0.75, 0.5)
ROLLOUTS = [
    Item(
        ids.mint("i", n),
        (1, 5, *range(20, 20 + n // 2)),
        (*range(30 + n, 33 + 2 * n), *([2] if n % 2 else [])),
        advantage=advantage,
        temperature=1.0,
        loss_mask=None if n % 3 else (True, False, *[True] * (1 + n + n % 2)),
    )
    for n, advantage in enumerate(ADVANTAGES)
]
SEED, RATE = 3, 0.01

Losses = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def sampled_by(policy: Path, items: Sequence[Item], temperature: float = 1.0) -> list[Item]:
    """Items as a policy would have sampled them."""
    rows = [(item.prompt_ids, item.completion_ids) for item in items]
    found = score_tokens(policy, "cpu", "float32", rows, temperature=temperature)
    return [
        replace(item, logprobs=tuple(values), temperature=temperature)
        for item, values in zip(items, found, strict=True)
    ]


def a_config(**more: Any) -> grpo.Config:
    given = {"learning_rate": RATE, "batch_size": 7, "warmup_steps": 0, "weight_decay": 0.0}
    return grpo.Config(type="grpo", **{**given, **more})


def train(
    init: Path, place: Path, items: Sequence[Item], steps: int = 1,
    reference: Path | None = None, **more: Any,
) -> Trained:  # fmt: skip
    plan = Plan(steps, SEED, init, place / "work", place / "draft", reference=reference)
    return a_config(**more).build().update(items, plan, lambda step, loss: None)


def said(trained: Trained, name: str) -> list[float]:
    return [value for _, measured, value in trained.series if measured == name]


@pytest.fixture(scope="module")
def policies(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A policy, the one trained from it, and the one trained from that."""
    found = [tiny_folder]
    for n in range(2):
        place = tmp_path_factory.mktemp(f"policy-{n}")
        train(found[-1], place, sampled_by(found[-1], ROLLOUTS), 2)
        found.append(place / "draft")
    return found


def logprobs(model: Any, item: Item, temperature: float) -> torch.Tensor:
    whole = torch.tensor([[*item.prompt_ids, *item.completion_ids]])
    said = (model(input_ids=whole).logits[0] / temperature).log_softmax(-1)
    first = len(item.prompt_ids) - 1
    return torch.stack([said[first + n, t] for n, t in enumerate(item.completion_ids)])


def mask_of(item: Item) -> torch.Tensor:
    return torch.tensor(item.loss_mask or (True,) * len(item.completion_ids))


def plain_loss(model: Any, items: Sequence[Item], config: grpo.Config) -> torch.Tensor:
    """The loss of a batch, a rollout at a time, from the formulas of the papers."""
    low, high = config.epsilon, config.top
    sums, tokens = [], []
    for item in items:
        assert item.advantage is not None and item.logprobs is not None and item.temperature
        now, mask = logprobs(model, item, item.temperature), mask_of(item)
        old = torch.tensor(item.logprobs) if config.ratio != "none" else now.detach()
        gap = now - old
        if config.ratio == "sequence":
            gap = (gap[mask].mean()).expand_as(gap)
        ratio = gap.exp()
        if config.loss == "cispo":
            found = -ratio.clamp(max=high).detach() * item.advantage * now
        else:
            clipped = ratio.clamp(1 - low, 1 + high)
            bounded = ratio if config.delta is None else ratio.clamp(max=config.delta)
            found = -torch.min(bounded * item.advantage, clipped * item.advantage)
        if config.beta:
            apart = torch.tensor(item.reference) - now
            k3 = apart.exp() - apart - 1
            found = found + config.beta * (k3 * ratio if config.kl_correction else k3)
        sums.append(found[mask].sum())
        tokens.append(int(mask.sum()))
    if config.loss == "grpo":
        return torch.stack([s / n for s, n in zip(sums, tokens, strict=True)]).mean()
    whole = torch.stack(sums).sum()
    if config.loss in ("dapo", "bnpo", "cispo"):
        return whole / sum(tokens)
    assert config.length is not None
    return whole / (len(items) * config.length)


def plain_steps(start: Path, items: Sequence[Item], steps: int, config: grpo.Config) -> list[float]:
    """The loss before each step of AdamW, in the order of the trainer's batches."""
    model = load(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.0)
    lengths = [len(item.prompt_ids) + len(item.completion_ids) for item in items]
    order = BatchSorted(lengths, config.batch_size, SEED)
    batches: list[list[int]] = []
    for epoch in range(steps):
        order.set_epoch(epoch)
        places = list(order)
        starts = range(0, len(places), config.batch_size)
        batches += [places[at : at + config.batch_size] for at in starts]
    found = []
    for places in batches[:steps]:
        optimizer.zero_grad()
        loss = plain_loss(model, [items[place] for place in places], config)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(float(loss.detach()))
    return found


KINDS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "dr_grpo": {"loss": "dr_grpo", "length": 12},
    "dapo": {"loss": "dapo", "epsilon_high": 0.28},
    "bnpo": {"loss": "bnpo"},
    "cispo": {"loss": "cispo", "epsilon_high": 1.0},
    "gspo": {"ratio": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
    "reinforce": {"loss": "dr_grpo", "length": 1, "ratio": "none"},
    "two-sided": {"delta": 1.5, "loss": "dapo"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("micro", [None, 2])
def test_minibatches_on_rollouts_two_policies_old_are_those_of_plain_torch(
    policies: list[Path], tmp_path: Path, kind: str, micro: int | None
) -> None:
    """Seven rollouts in batches of 4 and 3, then again: four steps, the last rows not dropped."""
    items = sampled_by(policies[0], ROLLOUTS)
    more = {**KINDS[kind], "batch_size": 4}
    trained = train(policies[2], tmp_path, items, 4, micro_batch_size=micro, **more)
    expected = plain_steps(policies[2], items, 4, a_config(**more))
    assert said(trained, "loss") == pytest.approx(expected, abs=1e-5)
    assert set(trained.visits.values()) == {2}
    assert len(set(expected)) == 4


def test_ratio_and_clip_of_old_rollouts_are_those_worked_by_hand(
    policies: list[Path], tmp_path: Path
) -> None:
    items = sampled_by(policies[0], ROLLOUTS)
    trained = train(policies[2], tmp_path, items, epsilon=0.1, epsilon_high=0.15)
    model = load(policies[2])
    low = high = tokens = 0
    ratios = []
    for item in items:
        assert item.advantage is not None
        old, mask = torch.tensor(item.logprobs), mask_of(item)
        ratio = (logprobs(model, item, 1.0).detach() - old).exp()[mask]
        tokens += len(ratio)
        ratios += ratio.tolist()
        low += int((ratio < 0.9).sum()) if item.advantage < 0 else 0
        high += int((ratio > 1.15).sum()) if item.advantage > 0 else 0
    assert low > 0 and high > 0
    assert said(trained, "clip_ratio/low_mean") == pytest.approx([low / tokens], abs=1e-6)
    assert said(trained, "clip_ratio/high_mean") == pytest.approx([high / tokens], abs=1e-6)
    assert said(trained, "ratio/min") == pytest.approx([min(ratios)], abs=1e-5)
    assert said(trained, "ratio/max") == pytest.approx([max(ratios)], abs=1e-5)
    pieces = train(policies[2], tmp_path / "pieces", items, micro_batch_size=1)
    for name in ("ratio/min", "ratio/max"):  # of the batch, not means of its pieces'
        assert said(pieces, name) == pytest.approx(said(trained, name), abs=1e-5)


def test_the_ratio_of_a_sequence_is_the_geometric_mean_of_its_trained_tokens() -> None:
    inputs = {
        "old_per_token_logps": torch.tensor([[-1.0, -2.0, -3.0], [-1.0, -9.0, 0.0]]),
        "completion_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
        "tool_mask": torch.tensor([[1, 0, 1], [1, 1, 1]]),
    }
    logps = torch.tensor([[-0.5, -7.0, -2.0], [-1.5, -9.5, 5.0]])
    # gaps of trained tokens: 0.5 and 1; −0.5 and −0.5
    whole = ratios_of(logps, inputs, whole=True)
    assert whole.tolist() == pytest.approx([math.exp(0.75), math.exp(-0.5)])
    each = ratios_of(logps, inputs, whole=False)
    assert each.log().tolist() == pytest.approx([0.5, 1.0, -0.5, -0.5])
    assert ratios_of(logps, {}, whole=True) is None


def test_the_entropy_that_is_measured_is_that_of_the_whole_vocabulary(
    policies: list[Path], tmp_path: Path
) -> None:
    items = sampled_by(policies[0], ROLLOUTS, 0.7)
    trained = train(policies[2], tmp_path, items)
    model, found = load(policies[2]), []
    for item in items:
        whole = torch.tensor([[*item.prompt_ids, *item.completion_ids]])
        said_ = (model(input_ids=whole).logits[0] / 0.7).log_softmax(-1).detach()
        first = len(item.prompt_ids) - 1
        entropies = -(said_.exp() * said_).sum(-1)[first : first + len(item.completion_ids)]
        found += entropies[mask_of(item)].tolist()
    assert said(trained, "entropy") == pytest.approx([sum(found) / len(found)], abs=1e-5)


def test_rollouts_of_the_policy_itself_have_ratio_one_and_the_loss_of_their_advantages(
    tiny_folder: Path, tmp_path: Path
) -> None:
    trained = train(tiny_folder, tmp_path, sampled_by(tiny_folder, ROLLOUTS))
    assert said(trained, "loss") == pytest.approx([-sum(ADVANTAGES) / 7], abs=1e-6)
    assert said(trained, "clip_ratio/region_mean") == [0.0]


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_kl_in_the_loss_is_k3_to_the_reference_at_the_samplers_temperature(
    policies: list[Path], other_folder: Path, tmp_path: Path, corrected: bool, temperature: float
) -> None:
    items = sampled_by(policies[1], ROLLOUTS, temperature)
    more = {"beta": 0.3, "kl_correction": corrected}
    trained = train(policies[2], tmp_path, items, 2, reference=other_folder, **more)
    scored = sampled_by(other_folder, items, temperature)
    known = [replace(i, reference=s.logprobs or ()) for i, s in zip(items, scored, strict=True)]
    expected = plain_steps(policies[2], known, 2, a_config(**more))
    assert said(trained, "loss") == pytest.approx(expected, abs=1e-5)
    assert all(value > 0 for value in said(trained, "kl"))
    without = train(policies[2], tmp_path / "without", items, 1)
    assert abs(said(without, "loss")[0] - expected[0]) > 1e-3


def test_no_second_model_is_loaded_while_it_trains(
    tiny_folder: Path, other_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl.trainer import grpo_trainer

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a reference model is loaded")

    monkeypatch.setattr(grpo_trainer, "create_model_from_path", refuse)
    items = sampled_by(tiny_folder, ROLLOUTS)
    trained = train(tiny_folder, tmp_path, items, reference=other_folder, beta=0.1)
    assert len(said(trained, "kl")) == 1


def test_temperature_divides_the_logits(policies: list[Path], tmp_path: Path) -> None:
    items = sampled_by(policies[1], ROLLOUTS, 0.7)
    trained = train(policies[1], tmp_path, items)
    assert said(trained, "loss") == pytest.approx([-sum(ADVANTAGES) / 7], abs=1e-6)


def run(init: Path, place: Path, kill_at: int | None = None) -> tuple[str, Mapping[Id, int]]:
    """Model id and visits of an update, killed at a step if asked for."""

    def progress(step: int, loss: float | None) -> None:
        if step == kill_at:
            raise Killed

    (place / "models").mkdir(parents=True, exist_ok=True)
    updater = a_config(batch_size=3, save_every=2, micro_batch_size=1).build()
    plan = Plan(6, SEED, init, place / "work", place / "draft")
    folder, trained = update(sampled_by(init, ROLLOUTS), updater, plan, place / "models", progress)
    return folder.name, trained.visits


def test_a_killed_update_ends_as_the_undisturbed_one(tiny_folder: Path, tmp_path: Path) -> None:
    undisturbed = run(tiny_folder, tmp_path / "undisturbed")
    assert set(undisturbed[1].values()) == {2}
    for kill_at in (3, 5):
        with pytest.raises(Killed):
            run(tiny_folder, tmp_path / str(kill_at), kill_at)
        assert run(tiny_folder, tmp_path / str(kill_at)) == undisturbed


def test_updates_that_hand_on_the_optimizer_are_one_long_update(
    tiny_folder: Path, tmp_path: Path
) -> None:
    items, updater = sampled_by(tiny_folder, ROLLOUTS), a_config(weight_decay=0.1).build()
    whole = Plan(4, SEED, tiny_folder, tmp_path / "work", tmp_path / "draft")
    expected = said(updater.update(items, whole, lambda step, loss: None), "loss")
    found: list[float] = []
    init, optimizer = tiny_folder, None
    for part in range(2):
        place = tmp_path / str(part)
        plan = Plan(
            2, part, init, place / "work", place / "draft",
            optimizer=optimizer, span=4, state=place / "state",
        )  # fmt: skip
        found += said(updater.update(items, plan, lambda step, loss: None), "loss")
        init, optimizer = plan.draft, plan.state
    assert found == pytest.approx(expected, abs=1e-6)
    theirs = weights(whole.draft)
    for name, tensor in weights(init).items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-6)


GOOD = replace(ROLLOUTS[0], logprobs=(-1.0,) * len(ROLLOUTS[0].completion_ids))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logprobs": None}, "has no log-probabilities of its sampler for 3 tokens"),
        ({"logprobs": (-1.0,)}, "has 1 log-probabilities of its sampler for 3 tokens"),
        ({"logprobs": (-1.0, math.nan, -1.0)}, "grpo needs a finite one for each"),
        ({"advantage": None}, "has advantage None, grpo weighs each rollout by one"),
        ({"advantage": math.nan}, "has advantage nan"),
        ({"temperature": 0.7}, "sampled at temperature 0.7, 1.0: grpo needs one above 0 for all"),
        ({"temperature": 0.0}, "sampled at temperature 0.0, 1.0"),
    ],
)
def test_rollouts_that_cannot_be_weighed_are_refused(
    tiny_folder: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UpdaterError, match=message):
        train(tiny_folder, tmp_path, [GOOD, replace(GOOD, **changes)])


def test_without_a_ratio_the_samplers_log_probabilities_are_not_needed(
    tiny_folder: Path, tmp_path: Path
) -> None:
    trained = train(tiny_folder, tmp_path, ROLLOUTS, ratio="none", loss="dr_grpo", length=1)
    assert len(said(trained, "loss")) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0.28, "epsilon_high": 0.2}, "epsilon is 0.28 and epsilon_high 0.2"),
        ({"epsilon": -0.2}, "greater than 0"),
        ({"epsilon": 5.0}, "less than or equal to 1"),
        ({"delta": 1.1}, "delta is 1.1, and the ratio is clipped at 1.2 already"),
        ({"loss": "cispo"}, "epsilon_high is None, and for cispo it is the largest weight"),
        ({"loss": "dr_grpo"}, "length is None for loss dr_grpo: dr_grpo divides by it"),
        ({"length": 5}, "length is 5 for loss grpo"),
        ({"top_entropy_quantile": 0.2, "micro_batch_size": 1}, "leave one of them out"),
        ({"trainer_args": {"num_iterations": 2}}, "set update.steps.epochs"),
        ({"trainer_args": {"scale_rewards": "none"}}, "set mix.groups"),
        ({"trainer_args": {"temperature": 0.5}}, "rollouts are sampled before"),
    ],
)
def test_a_config_that_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        a_config(**given)
    assert message in str(caught.value)


def test_only_the_tokens_of_highest_entropy_train_where_asked(
    policies: list[Path], tmp_path: Path
) -> None:
    items = sampled_by(policies[0], ROLLOUTS)
    every, some = (
        train(policies[2], tmp_path / str(q), items, top_entropy_quantile=q) for q in (1.0, 0.3)
    )
    assert abs(said(every, "loss")[0] - said(some, "loss")[0]) > 1e-4


def test_a_training_that_comes_apart_is_stopped_at_the_step_and_leaves_nothing(
    policies: list[Path], tmp_path: Path
) -> None:
    items = sampled_by(policies[0], ROLLOUTS)
    with pytest.raises(UpdaterError, match=r"(loss|grad_norm) is nan at step 2 of 4: training has"):
        train(policies[0], tmp_path, items, 4, learning_rate=1e30)
    assert not (tmp_path / "draft").exists()
