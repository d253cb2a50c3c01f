# SPDX-License-Identifier: Apache-2.0
"""Config files: YAML read strictly, and `use`, which puts other files below a config.

`use: tasks/gsm8k` names configs/tasks/gsm8k.yaml, or a file relative to the config; a list is laid
one upon the other. A section of another `type` takes the place of the one below it whole.
"""

import difflib
import re
from pathlib import Path
from typing import Any

import yaml

from stages.errors import ConfigError

FOLDER = Path(__file__).resolve().parent


class Loader(yaml.SafeLoader):
    """YAML 1.1 reads 1e-4 as text and takes the last of two equal keys: this one does neither."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.YAMLError(f"key {twice!r} stands twice: keep one")
        return super().construct_mapping(node, deep)


Loader.yaml_implicit_resolvers = {
    first: list(resolvers) for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The values of a YAML file over those that it uses; `above` are the files that use it."""
    if path.resolve() in above:
        circle = " → ".join(p.name for p in (*above, path))
        raise ConfigError(f"config {path}: use goes in a circle ({circle}): take one out")
    try:
        values = yaml.load(path.read_text(), Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"config {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"config {path} holds {type(values).__name__}, not keys and values")
    used = values.pop("use", [])
    names = [used] if isinstance(used, str) else used
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"config {path}: use is {used!r}: name a file such as tasks/gsm8k")
    below: dict[str, Any] = {}
    for name in names:
        below = laid(below, read(_find(name, path), (*above, path.resolve())))
    return laid(below, values)


def laid(below: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Own values over those below, section by section."""
    merged = dict(below)
    for key, value in own.items():
        under = merged.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            same = value.get("type", under.get("type")) == under.get("type")
            value = laid(under, value) if same else value
        merged[key] = value
    return merged


def _find(name: str, user: Path) -> Path:
    """The file that `use` names: under configs/, else relative to its user."""
    for place in (FOLDER, user.parent):
        for path in (place / f"{name}.yaml", place / name):
            if path.is_file():
                return path
    shipped = [str(p.relative_to(FOLDER).with_suffix("")) for p in FOLDER.rglob("*.yaml")]
    near = difflib.get_close_matches(name, shipped, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(
        f"config {user}: use names {name!r}, which is no file under configs/ or beside the config"
        f"{hint}"
    )
