# SPDX-License-Identifier: Apache-2.0
"""LoRA with every updater on TRL: what trains, what is left, what goes on."""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from plain_torch import Killed, load, logprobs, weights
from pydantic import ValidationError
from training_items import items_for

from stages.errors import ConfigError, UpdaterError
from stages.ids import Id
from stages.policies.checkpoint import is_complete
from stages.scoring import score_tokens
from stages.update import update
from stages.updaters import CONFIGS, Item, Plan, Trained, sft
from stages.updaters.adapter import ADAPTER, BASE
from stages.updaters.trl import TrlSettings

KINDS = [config for config in CONFIGS if issubclass(config, TrlSettings)]
RANK = 2
LORA = {"rank": RANK, "alpha": 8.0}
SEED = 3


def a_config(kind: Any, **more: Any) -> Any:
    name = kind.__module__.rpartition(".")[2]
    given = {"batch_size": 8, "learning_rate": 0.01, "warmup_steps": 0, "weight_decay": 0.0}
    return kind(type=name, **{**given, "lora": LORA, **more})


def items_of(kind: Any, init: Path) -> list[Item]:
    """Items as `init` would have sampled them, and as it scores them as the reference."""
    items = items_for(a_config(kind).rows)

    def scored(completions: list[tuple[int, ...]]) -> list[list[float]]:
        rows = [(i.prompt_ids, said) for i, said in zip(items, completions, strict=True)]
        return score_tokens(init, "cpu", "float32", rows)

    chosen = scored([item.completion_ids for item in items])
    rejected = scored([item.rejected_ids for item in items]) if items[0].rejected_ids else []
    found = []
    for place, item in enumerate(items):
        sums = [sum(each[place]) for each in (chosen, rejected) if each]
        said = tuple(chosen[place]) if item.logprobs is not None else None
        found.append(replace(item, reference=tuple(sums), logprobs=said))
    return found


def train(kind: Any, init: Path, place: Path, steps: int = 1, **more: Any) -> tuple[Plan, Trained]:
    plan_of = {name: more.pop(name) for name in ("optimizer", "state", "span") if name in more}
    plan = Plan(steps, SEED, init, place / "work", place / "draft", reference=init, **plan_of)
    items = items_of(kind, more.pop("sampled_by", init))
    return plan, a_config(kind, **more).build().update(items, plan, lambda step, loss: None)


def losses(trained: Trained) -> list[float]:
    return [value for _, name, value in trained.series if name == "loss"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__module__)
def test_the_first_loss_is_that_of_all_weights_and_an_adapter_of_its_rank_is_left(
    kind: Any, tiny_folder: Path, tmp_path: Path
) -> None:
    plan, trained = train(kind, tiny_folder, tmp_path / "lora", 8)
    _, whole = train(kind, tiny_folder, tmp_path / "whole", lora=None)
    assert losses(trained)[0] == pytest.approx(losses(whole)[0], abs=1e-5)
    assert losses(trained)[-1] < losses(trained)[0]
    before, after = weights(tiny_folder), weights(plan.draft)
    assert before.keys() == after.keys()
    ranks = {name: rank_of(after[name] - before[name]) for name in before}
    changed = {name for name, rank in ranks.items() if rank}
    linear = {name for name in before if "proj" in name}
    assert changed == linear and {ranks[name] for name in changed} <= set(range(1, RANK + 1))
    assert {tensor.dtype for tensor in after.values()} == {torch.float32}
    assert not [path for path in plan.draft.iterdir() if "adapter" in path.name]


def rank_of(change: torch.Tensor) -> int:
    """The rank of a matrix up to rounding; 0 of what did not change."""
    if not change.any():
        return 0
    return int(torch.linalg.matrix_rank(change, atol=1e-6)) if change.dim() == 2 else 1


def test_the_merged_model_says_what_base_and_adapter_say_together(
    tiny_folder: Path, tmp_path: Path
) -> None:
    from peft import PeftModel

    plan, _ = train(sft.Config, tiny_folder, tmp_path, 4, state=tmp_path / "state")
    assert is_complete(tmp_path / "state")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers, about peft
        both = PeftModel.from_pretrained(load(tmp_path / "state" / BASE),
                                         tmp_path / "state" / ADAPTER).eval()  # fmt: skip
    merged, base = load(plan.draft), load(tiny_folder)
    for item in items_for("sft"):
        apart = [
            (logprobs(merged, item.prompt_ids, item.completion_ids)
             - logprobs(other, item.prompt_ids, item.completion_ids)).abs().max()
            for other in (both, base)
        ]  # fmt: skip
        assert apart[0] < 1e-5 < 1e-3 < apart[1]


def test_targets_alone_are_adapted(tiny_folder: Path, tmp_path: Path) -> None:
    plan, _ = train(
        sft.Config, tiny_folder, tmp_path, 2, lora={**LORA, "targets": ["q_proj", "v_proj"]}
    )
    before, after = weights(tiny_folder), weights(plan.draft)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if "q_proj" in name or "v_proj" in name}


def test_a_target_that_no_layer_has_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UpdaterError, match=r"update\.updater\.lora\.targets.*no_proj"):
        train(sft.Config, tiny_folder, tmp_path, lora={**LORA, "targets": ["no_proj"]})


def run(init: Path, place: Path, kill_at: int | None = None) -> tuple[str, Mapping[Id, int]]:
    """Model id and visits of an update, killed at a step if asked for."""

    def progress(step: int, loss: float | None) -> None:
        if step == kill_at:
            raise Killed

    (place / "models").mkdir(parents=True, exist_ok=True)
    lora = {**LORA, "dropout": 0.25}
    updater = a_config(sft.Config, batch_size=3, save_every=2, lora=lora).build()
    plan = Plan(6, SEED, init, place / "work", place / "draft")
    folder, trained = update(items_for("sft"), updater, plan, place / "models", progress)
    return folder.name, trained.visits


def test_a_killed_update_ends_as_the_undisturbed_one(tiny_folder: Path, tmp_path: Path) -> None:
    undisturbed = run(tiny_folder, tmp_path / "undisturbed")
    for kill_at in (1, 3, 5):
        with pytest.raises(Killed):
            run(tiny_folder, tmp_path / str(kill_at), kill_at)
        assert run(tiny_folder, tmp_path / str(kill_at)) == undisturbed


def test_updates_that_hand_on_the_optimizer_train_one_adapter(
    tiny_folder: Path, tmp_path: Path
) -> None:
    """Two updates of two steps are one of four: losses, and the adapter on the first one's base."""
    whole, expected = train(sft.Config, tiny_folder, tmp_path / "whole", 4)
    init, state, found = tiny_folder, None, []
    for part in range(2):
        place = tmp_path / str(part)
        plan, trained = train(
            sft.Config, init, place, 2, optimizer=state, span=4, state=place / "state"
        )
        found += losses(trained)
        init, state = plan.draft, plan.state
    assert found == pytest.approx(losses(expected), abs=1e-5)
    theirs, ours = weights(whole.draft), weights(init)
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in theirs)
    assert state is not None
    base = weights(state / BASE)
    assert all(torch.equal(tensor, base[name]) for name, tensor in weights(tiny_folder).items())
    assert (state / BASE / "model.safetensors").samefile(tiny_folder / "model.safetensors")
    anew, other = train(sft.Config, tmp_path / "0" / "draft", tmp_path / "anew", 2)
    assert losses(other)[0] == pytest.approx(found[2], abs=1e-5)  # the same model
    assert abs(losses(other)[1] - found[3]) > 1e-6  # by another adapter and other moments
    assert anew.optimizer is None


def test_bfloat16_trains_an_adapter_that_is_float32(tiny_folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    plan, _ = train(
        sft.Config, tiny_folder, tmp_path, 2, state=tmp_path / "state", dtype="bfloat16"
    )
    kept = load_file(tmp_path / "state" / ADAPTER / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in kept.values()} == {torch.float32}
    assert {tensor.dtype for tensor in weights(plan.draft).values()} == {torch.bfloat16}


def test_without_peft_it_is_refused_before_a_round_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"update\.updater\.lora needs the package peft"):
        a_config(sft.Config).check()
    a_config(sft.Config, lora=None).check()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rank": 0}, "greater than or equal to 1"),
        ({"alpha": 0.0}, "greater than 0"),
        ({"dropout": 1.0}, "less than 1"),
        ({"targets": []}, "at least 1"),
        ({"ranks": 4}, "Extra inputs"),
    ],
)
def test_an_adapter_that_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        a_config(sft.Config, lora={**LORA, **given})
