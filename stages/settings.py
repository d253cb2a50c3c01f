# SPDX-License-Identifier: Apache-2.0
"""Base of every config class: strict, frozen, unknown keys refused, fields of two kinds.

Identity fields change what is computed and enter step keys. Operational fields (made with
`operational`) change only how: batch sizes, paths, logging. They may differ when a run goes on.
"""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """A strict, frozen config section."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def operational(default: Any, **limits: Any) -> Any:
    """A field that changes how things are computed, not what."""
    return Field(default, json_schema_extra={"operational": True}, **limits)


def is_operational(settings: Settings, name: str) -> bool:
    """Whether a field of a section was made with `operational`."""
    extra = type(settings).model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("operational"))


def identity(settings: Settings) -> dict[str, Any]:
    """The identity fields of a section, nested sections included, as plain values."""
    fields: dict[str, Any] = {}
    for name in type(settings).model_fields:
        if not is_operational(settings, name):
            value = getattr(settings, name)
            fields[name] = identity(value) if isinstance(value, Settings) else value
    return fields


def canonical(values: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def identity_json(settings: Settings) -> str:
    """The identity fields of a section as canonical JSON."""
    return canonical(identity(settings))
