# SPDX-License-Identifier: Apache-2.0
"""What `describe` says of a loss is its gradient: each coefficient against autograd."""

import math
import re
from collections.abc import Callable
from typing import Any, get_args

import pytest
from plug_ins import in_folder

from stages import updaters
from stages.updaters import CONFIGS, dpo, grpo, kto, simpo
from stages.updaters.base import SYMBOLS, View

torch = pytest.importorskip("torch")
F = torch.nn.functional
log, SETTINGS = F.logsigmoid, {"β": 0.3, "γ": 0.7, "ε": 0.1, "cpo_alpha": 0.4}
B, E, G = SETTINGS["β"], SETTINGS["ε"], SETTINGS["γ"]
Loss = Callable[[Any, Any, Any, Any], Any]

# As functions of c, r (log π/π_ref, or log π for simpo) and the tokens n, m of the two.
LOSSES: dict[str, Loss] = {
    "sigmoid": lambda c, r, n, m: -log(B * (c - r)),
    "hinge": lambda c, r, n, m: torch.relu(1 - B * (c - r)),
    "ipo": lambda c, r, n, m: (c / n - r / m - 1 / (2 * B)) ** 2,
    "exo_pair": lambda c, r, n, m: (
        torch.sigmoid(B * (c - r)) * (log(B * (c - r)) - math.log(1 - E))
        + torch.sigmoid(-B * (c - r)) * (log(-B * (c - r)) - math.log(E))
    ),
    "nca_pair": lambda c, r, n, m: -log(B * c) - 0.5 * log(-B * c) - 0.5 * log(-B * r),
    "robust": lambda c, r, n, m: (
        (-(1 - E) * log(B * (c - r)) + E * log(-B * (c - r))) / (1 - 2 * E)
    ),
    "bco_pair": lambda c, r, n, m: -log(B * c) - log(-B * r),
    "sppo_hard": lambda c, r, n, m: (c - 0.5 / B) ** 2 + (r + 0.5 / B) ** 2,
    "aot": lambda c, r, n, m: -log(B * (c - r)) * (1 - E) - log(-B * (c - r)) * E,
    "aot_unpaired": lambda c, r, n, m: -log(B * (c - r)) * (1 - E) - log(-B * (c - r)) * E,
    "apo_zero": lambda c, r, n, m: 1 - torch.sigmoid(B * c) + torch.sigmoid(B * r),
    "apo_down": lambda c, r, n, m: torch.sigmoid(B * c) + 1 - torch.sigmoid(B * (c - r)),
    "discopop": lambda c, r, n, m: (
        -log(B * (c - r)) * (1 - torch.sigmoid(B * (c - r) / 0.05))
        + torch.exp(-B * (c - r)) * torch.sigmoid(B * (c - r) / 0.05)
    ),
    "sft": lambda c, r, n, m: -c / n,  # a batch of one pair
    "sigmoid_norm": lambda c, r, n, m: -log(B * (c / n - r / m)),
}
POINTS = [(0.0, 0.0), (0.5, -0.25), (-0.75, 0.5), (3.0, -2.0), (-2.0, -2.5), (0.05, 0.02)]


def gradient(loss: Loss, c: float, r: float) -> list[float]:
    """Minus the derivatives of a loss by the two log-probabilities."""
    pair = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (c, r)]
    loss(*pair, 7, 4).backward()
    return [0.0 if value.grad is None else -value.grad.item() for value in pair]


def said(view: View, c: float, r: float, **more: Any) -> dict[str, float]:
    """What the coefficients of a view come to."""
    delta = c - r
    names: dict[str, Any] = {
        **SETTINGS, "c": c, "r": r, "p": c, "q": r, "Δ": delta, "n": 7, "m": 4, "tokens": 7,
        "σ": lambda x: 1 / (1 + math.exp(-x)), "log": math.log, "exp": math.exp,
        "w": 1 / (1 + math.exp(-B * delta / 0.05)), **more,
    }  # fmt: skip
    for role, text in view.coefficients.items():
        names[role] = eval(text, {"__builtins__": {}}, names)
    return {role: names[role] for role in view.coefficients}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("c", "r"), POINTS)
def test_the_coefficients_of_a_dpo_loss_are_its_gradient(loss: str, c: float, r: float) -> None:
    found = said(dpo.Config.VIEWS[loss], c, r)
    chosen, rejected = gradient(LOSSES[loss], c, r)
    assert found["chosen"] == pytest.approx(chosen, abs=1e-9)
    assert found.get("rejected", 0.0) == pytest.approx(rejected, abs=1e-9)


@pytest.mark.parametrize(("c", "r"), POINTS)
def test_the_coefficients_of_simpo_are_its_gradient(c: float, r: float) -> None:
    loss: Loss = lambda p, q, n, m: -log(B * (p / n - q / m) - G)  # noqa: E731
    found = said(simpo.Config.VIEWS["simpo"], c, r)
    assert [found["chosen"], found["rejected"]] == pytest.approx(gradient(loss, c, r), abs=1e-9)


@pytest.mark.parametrize(("c", "z"), [(0.0, 0.0), (0.5, 0.2), (-1.5, 0.1)])
def test_the_coefficients_of_kto_are_its_gradient(c: float, z: float) -> None:
    weights = {"desirable_weight": 1.5, "undesirable_weight": 0.5}
    right: Loss = lambda c, r, n, m: 1.5 * (1 - torch.sigmoid(B * (c - z)))  # noqa: E731
    wrong: Loss = lambda c, r, n, m: 0.5 * (1 - torch.sigmoid(B * (z - c)))  # noqa: E731
    found = said(kto.Config.VIEWS["kto"], c, 0.0, z=z, **weights)
    assert found["right"] == pytest.approx(gradient(right, c, 0.0)[0], abs=1e-9)
    assert found["wrong"] == pytest.approx(gradient(wrong, c, 0.0)[0], abs=1e-9)
    unpaired = said(kto.Config.VIEWS["apo_zero_unpaired"], c, 0.0, **weights)
    assert unpaired == pytest.approx(said(kto.Config.VIEWS["kto"], c, 0.0, z=0.0, **weights))


def clipped(ratio: Any, advantage: float) -> Any:
    """min(ρ A, clip(ρ, 0.8, 1.28) A), negated."""
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)


def vespo_weight(ratio: float, advantage: float) -> float:
    """φ of an answer of one token."""
    k, lam = (2.0, 3.0) if advantage >= 0 else (3.0, 2.0)
    return math.exp(lam) * ratio**k * math.exp(-lam * ratio)


def soft(ratio: Any, advantage: float) -> Any:
    """SAPO's gate in place of a clip, negated."""
    tau = 1.0 if advantage > 0 else 1.05
    return -torch.sigmoid(tau * (ratio - 1)) * 4 / tau * advantage


# Of a token's log π x, its ratio and advantage; an answer of 5 tokens, a batch of 9.
GROUP_LOSSES: dict[str, tuple[Callable[[Any, Any, float], Any], float]] = {
    "grpo": (lambda x, ratio, A: clipped(ratio, A), 5),
    "dr_grpo": (lambda x, ratio, A: clipped(ratio, A), 32),
    "dapo": (lambda x, ratio, A: clipped(ratio, A), 9),
    "bnpo": (lambda x, ratio, A: clipped(ratio, A), 9),
    "cispo": (lambda x, ratio, A: -ratio.clamp(max=1.1).detach() * A * x, 9),
    "sapo": (lambda x, ratio, A: soft(ratio, A), 5),
    "luspo": (lambda x, ratio, A: clipped(ratio, A), 1),
    "vespo": (lambda x, ratio, A: -vespo_weight(ratio.item(), A) * A * x, 9),
}


@pytest.mark.parametrize("loss", GROUP_LOSSES)
@pytest.mark.parametrize("old", [-1.0, -1.5, -0.5])
@pytest.mark.parametrize("advantage", [0.9, -0.6])
def test_the_coefficients_of_policy_gradients_are_their_gradient(
    loss: str, old: float, advantage: float
) -> None:
    policy_loss, over = GROUP_LOSSES[loss]
    x = torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
    kl = torch.exp(-1.2 - x) - (-1.2 - x) - 1
    ratio = torch.exp(x - old)
    ((policy_loss(x, ratio, advantage) + B * kl) / over).backward()
    r = ratio.item()
    shut = (advantage > 0 and r > 1.28) or (advantage < 0 and r < 0.8)
    names = {
        "A": advantage, "ρ": r, "open": 0 if shut else 1, "κ": math.exp(-1.2 + 1.0), "n": 5,
        "tokens": 9, "length": 32, "epsilon_high": 1.1, "φ": vespo_weight(r, advantage),
        "u": (1.0 if advantage > 0 else 1.05) * (r - 1), "min": min,
    }  # fmt: skip
    found = said(grpo.Config.VIEWS[loss], 0.0, 0.0, **names)
    assert found["completion"] == pytest.approx(-x.grad.item(), abs=1e-9)


def test_every_updater_says_what_each_of_its_losses_does() -> None:
    assert set(CONFIGS) == set(in_folder(updaters).values())
    assert set(dpo.Config.VIEWS) == set(get_args(dpo.Loss)) == set(LOSSES)
    assert set(grpo.Config.VIEWS) == set(get_args(grpo.Loss)) == set(GROUP_LOSSES)
    for config in CONFIGS:
        assert config.VIEWS
        for view in config.VIEWS.values():
            assert view.data and view.reward and view.level


@pytest.mark.parametrize("config", CONFIGS)
def test_every_letter_of_a_coefficient_is_explained_or_a_field(config: Any) -> None:
    known = {name for names in SYMBOLS for name in names.split(", ")}
    known |= {"β", "γ", "log", "exp", "min", "chosen", *config.model_fields}
    for view in config.VIEWS.values():
        for text in view.coefficients.values():
            assert set(re.findall(r"[^\W\d]\w*", text)) <= known


def test_the_losses_used_are_those_of_the_config() -> None:
    assert dpo.Config(type="dpo", losses=("sigmoid", "sft")).losses_used == ("sigmoid", "sft")
    assert kto.Config(type="kto", loss="apo_zero_unpaired").losses_used == ("apo_zero_unpaired",)
    assert simpo.Config(type="simpo").losses_used == ("simpo",)
    assert simpo.Config(type="simpo", cpo_alpha=0.1).losses_used == ("simpo", "sft")
