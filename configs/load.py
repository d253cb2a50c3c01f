# SPDX-License-Identifier: Apache-2.0
"""From YAML and `key=value` to a checked config: defaults < used files < file < command line.

Every fault is one ConfigError line with the field, the value, what is allowed and the fix.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

import yaml
from pydantic import BaseModel, ValidationError

from configs.files import FOLDER, Loader, read
from configs.schema import Config
from stages.errors import ConfigError
from stages.settings import Settings, is_operational

NOT_BUILT = {
    "verifier": {
        "math": "a verifier for LaTeX answers",
        "code": "a sandbox",
    },
}


def load(path: Path, overrides: Sequence[str] = ()) -> Config:
    """The config in a YAML file with `key=value` overrides applied."""
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.yaml")])
        hint = f"; did you mean {path.parent / near[0]}?" if near else ""
        raise ConfigError(
            f"config {path} is not a file{hint}: name a YAML file such as configs/star.yaml"
        )
    values = read(path)
    for override in overrides:
        apply(values, override)
    return check(values)


def check(values: dict[str, Any]) -> Config:
    """A config from plain values."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_one_line(error, values)) from error


def apply(values: dict[str, Any], override: str) -> None:
    """Set the value that `key=value` names, sections by dots."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"{override!r} is not key=value: write for example update.steps.first=50")
    try:
        value = yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{key}: {text[:60]!r} is not a YAML value: quote it") from error
    *parents, last = key.split(".")
    section = values
    for parent in parents:
        below = section.setdefault(parent, {})
        if not isinstance(below, dict):
            raise ConfigError(f"{key}: {parent!r} is {below!r}, not a section with keys below it")
        section = below
    section[last] = value


def flat(settings: Settings, prefix: str = "") -> dict[str, tuple[Any, bool]]:
    """Every field by dotted name, with its value and whether it is operational."""
    fields: dict[str, tuple[Any, bool]] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Settings):
            fields |= flat(value, f"{prefix}{name}.")
        else:
            fields[prefix + name] = (value, is_operational(settings, name))
    return fields


def differences(old: Config, new: Config) -> tuple[list[str], list[str]]:
    """What changed, as lines `key: old → new`: identity fields, then operational ones."""
    before, after = flat(old), flat(new)
    changed: tuple[list[str], list[str]] = ([], [])
    for key in sorted(before.keys() | after.keys()):
        was, is_ = before.get(key, (None, False)), after.get(key, (None, False))
        if was[0] != is_[0]:
            changed[was[1] or is_[1]].append(f"{key}: {was[0]} → {is_[0]}")
    return changed


def _one_line(error: ValidationError, values: dict[str, Any]) -> str:
    found = [(tuple(map(str, _path(e["loc"], values))), e) for e in error.errors()]
    (at, first), others = found[0], len({path for path, _ in found}) - 1
    more = f" (and {others} more)" if others else ""
    path = list(at)
    field, kind, context = ".".join(path), first["type"], first.get("ctx", {})
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1], values)
        near = difflib.get_close_matches(path[-1], known, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return f"{field}: unknown key (value {first['input']!r}); {fix}{more}"
    if kind == "union_tag_invalid" or (kind == "literal_error" and path[-1] == "type"):
        return _unknown_part(path, first, context) + more
    if kind in ("missing", "union_tag_not_found"):
        name = f"{field}.type" if kind == "union_tag_not_found" else field
        return f"{name}: missing; it has no default, add it to the config{more}"
    if kind == "value_error":
        return f"{field + ': ' if field else ''}{context['error']}{more}"
    said = dict.fromkeys(e["msg"][:1].lower() + e["msg"][1:] for p, e in found if p == at)
    wanted = " or ".join(said)
    if kind in ("model_type", "model_attributes_type"):
        wanted = "write a section with keys below it"
    return f"{field}: {first['input']!r} is not allowed; {wanted}{more}"


def _unknown_part(path: list[str], first: Any, context: dict[str, Any]) -> str:
    section = ".".join(path[:-1] if path[-1] == "type" else path)
    given = context.get("tag", first["input"])
    allowed = str(context.get("expected_tags", context.get("expected", ""))).replace("'", "")
    needs = NOT_BUILT.get(section, {}).get(str(given))
    if needs:
        return f"{section}.type: {given!r} is not built yet (it needs {needs}); allowed: {allowed}"
    near = difflib.get_close_matches(str(given), allowed.split(", "), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if section == "task" and (FOLDER / "tasks" / f"{given}.yaml").is_file():
        hint = f"; it is a recipe: write `use: tasks/{given}` in the config"
    return f"{section}.type: {given!r} is unknown; allowed: {allowed}{hint}"


def _path(location: Sequence[int | str], values: Any) -> list[int | str]:
    """The location without the names that pydantic adds for a union's branch."""
    path: list[int | str] = []
    in_branch = False
    for part in location:
        if not in_branch and isinstance(values, dict) and values.get("type") == part:
            in_branch = True
            continue
        in_branch = False
        if isinstance(values, dict) and part in values:
            values = values[part]
        elif isinstance(part, int):
            values = values[part] if isinstance(values, list) and part < len(values) else None
        elif isinstance(values, dict):
            values = None
        else:
            continue
        path.append(part)
    return path


def _known_keys(path: list[str], values: dict[str, Any]) -> list[str]:
    """The keys a section knows, found by walking the model along the path."""
    options: list[Any] = [Config]
    for name in path:
        if isinstance(values, list):  # an element of a list is what the list is of
            values = values[int(name)]
        else:
            options = _sections(_fitting(options, values).model_fields[name].annotation)
            values = values.get(name, {})
    fields = _fitting(options, values).model_fields
    return [field.alias or name for name, field in fields.items()]


def _fitting(options: list[Any], values: Any) -> type[BaseModel]:
    """The Config class among some that has the `type` of the values, else the first."""
    fitting = [
        option
        for option in options
        if "type" not in option.model_fields
        or values.get("type") in get_args(option.model_fields["type"].annotation)
    ]
    return cast("type[BaseModel]", (fitting or options)[0])


def _sections(annotation: Any) -> list[Any]:
    """The Config classes that an annotation names, in unions and lists too."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _sections(inner)]
