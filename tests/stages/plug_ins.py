# SPDX-License-Identifier: Apache-2.0
"""Plug-ins found by listing a folder, and those that the folder's union names."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin


def in_folder(package: ModuleType) -> dict[str, Any]:
    """The Config class of every plug-in file of a package's folder, by file name."""
    assert package.__file__ is not None
    names = sorted(path.stem for path in Path(package.__file__).parent.glob("*.py"))
    modules = {
        name: import_module(f"{package.__name__}.{name}")
        for name in names
        if name not in ("__init__", "base")
    }
    return {name: module.Config for name, module in modules.items() if hasattr(module, "Config")}


def in_union(union: Any) -> set[Any]:
    """The Config classes of a union, discriminated or not, or of a single class."""
    inner = get_args(union)[0] if get_origin(union) is Annotated else union
    return set(get_args(inner) or (inner,))


def type_of(config: Any) -> tuple[str, ...]:
    """The values that a Config class allows for its `type`."""
    values: tuple[str, ...] = get_args(config.model_fields["type"].annotation)
    return values
