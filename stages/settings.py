# SPDX-License-Identifier: Apache-2.0
"""Base of every config class: strict, frozen, unknown keys refused, fields of two kinds.

Identity fields change what is computed and enter step keys. Operational fields (made with
`operational`) change only how: batch sizes, paths, logging. They may differ when a run goes on.
A field made with `later` joins the identity once it leaves its default, so that a section's ids
outlive the field's arrival.
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


def later(default: Any, **limits: Any) -> Any:
    """An identity field that counts only where its value is not the default."""
    return Field(default, json_schema_extra={"later": True}, **limits)


def is_operational(settings: Settings, name: str) -> bool:
    """Whether a field of a section was made with `operational`."""
    return _marked(settings, name, "operational")


def _marked(settings: Settings, name: str, mark: str) -> bool:
    extra = type(settings).model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra.get(mark))


def _counts(settings: Settings, name: str) -> bool:
    if is_operational(settings, name):
        return False
    default = type(settings).model_fields[name].get_default(call_default_factory=True)
    return not (_marked(settings, name, "later") and getattr(settings, name) == default)


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return identity(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def identity(settings: Settings) -> dict[str, Any]:
    """The identity fields of a section, nested sections included, as plain values."""
    names = [name for name in type(settings).model_fields if _counts(settings, name)]
    return {name: _plain(getattr(settings, name)) for name in names}


def canonical(values: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def identity_json(settings: Settings) -> str:
    """The identity fields of a section as canonical JSON."""
    return canonical(identity(settings))
