# SPDX-License-Identifier: Apache-2.0
"""What a run rewards, in words."""

from collections.abc import Sequence
from typing import Any


def reward_said(config: Any) -> str:
    """The reward that training sees; a control arm is named as one."""
    verifier = verifier_said(config.verifier)
    if config.reward is None:
        return verifier
    return f"{_settings(config.reward)} in place of {verifier}: a control arm"


def verifier_said(verifier: Any) -> str:
    """A verifier with its parts and their weights: `1 × numeric + 0.2 × format`."""
    parts = [verifier_said(part) for part in getattr(verifier, "parts", ())]
    if verifier.type == "weighted":
        metrics = [part for w, part in zip(verifier.weights, parts, strict=True) if not w]
        beside = f" (metrics: {', '.join(metrics)})" if metrics else ""
        return weighed(verifier.weights, parts) + beside
    if parts:
        return f"{verifier.type} of {', '.join(parts)}"
    return _settings(verifier) if verifier.type in ("length", "distance") else str(verifier.type)


def weighed(weights: Sequence[float], names: Sequence[str]) -> str:
    """A weighted sum in words, terms of weight 0 left out."""
    pairs = zip(weights, names, strict=True)
    return " + ".join(f"{weight:g} × {name}" for weight, name in pairs if weight)


def _settings(section: Any) -> str:
    """A section's type with the settings that it has."""
    said = section.model_dump(exclude={"type"}, exclude_none=True)
    values = ", ".join(f"{name} {value}" for name, value in said.items())
    return f"{section.type} ({values})" if said else str(section.type)
