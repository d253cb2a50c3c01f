# SPDX-License-Identifier: Apache-2.0
"""The rules of the house, held by reading the sources: arrows, sizes, names that are written."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from flows.cli import app
from stages import errors

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ("stages", "store", "report", "configs", "flows")
HEAVY = {"torch", "transformers", "trl", "datasets", "prefect", "vllm", "accelerate"}
LICENSE = "# SPDX-License-Identifier: Apache-2.0"
# What each folder may import of ours, itself aside; flows may import everything.
ARROWS = {
    "stages": (),
    "store": (
        "stages.rows",
        "stages.ids",
        "stages.shards",
        "stages.errors",
        "stages.sync",
    ),
    "configs": ("stages",),
    "report": ("store", "stages", "configs.load"),
    "flows": HOUSE,
}


def sources(*folders: str) -> list[Path]:
    """The Python files of folders, or of the whole checkout but its tests."""
    found = [path for folder in folders or (".",) for path in (ROOT / folder).rglob("*.py")]
    parts = [path.relative_to(ROOT).parts for path in found]
    hidden = ("tests", "build")
    return sorted(
        path
        for path, names in zip(found, parts, strict=True)
        if not (names[0].startswith(".") or (not folders and names[0] in hidden))
    )


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def walk(node: ast.AST, *, into_functions: bool) -> Iterator[ast.AST]:
    """Every node below, without `if TYPE_CHECKING` blocks and, if asked, without functions."""
    for child in ast.iter_child_nodes(node):
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if is_type_checking(child) or (function and not into_functions):
            continue
        yield child
        yield from walk(child, into_functions=into_functions)


def imports(path: Path, *, into_functions: bool = True) -> set[str]:
    """Dotted names that a file imports: `from a import b` gives `a.b`."""
    names = set()
    for node in walk(tree(path), into_functions=into_functions):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def within(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == a or name.startswith(f"{a}.") for a in allowed)


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ── arrows ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("folder", HOUSE)
def test_imports_follow_the_arrows(folder: str) -> None:
    against = {
        f"{where(path)} imports {name}"
        for path in sources(folder)
        for name in imports(path)
        if within(name, HOUSE) and not within(name, (folder, *ARROWS[folder]))
    }
    assert against == set()


@pytest.mark.parametrize(
    ("package", "place"), [("duckdb", "store/db.py"), ("prefect", "flows/"), ("typer", "flows/")]
)
def test_one_place_alone_imports_a_package(package: str, place: str) -> None:
    users = {where(path) for path in sources(*HOUSE) if any(
        within(name, (package,)) for name in imports(path))}  # fmt: skip
    assert users
    assert {user for user in users if not user.startswith(place)} == set()


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    light = [*sources("stages", "configs", "store", "report"), ROOT / "starloop.py"]
    at_top = {
        f"{where(path)} imports {name}"
        for path in light
        for name in imports(path, into_functions=False)
        if within(name, tuple(HEAVY))
    }
    assert at_top == set()


# ── sizes ───────────────────────────────────────────────────────────────────────────────────


def test_no_python_file_is_longer_than_300_lines() -> None:
    lines = {where(path): len(path.read_text().splitlines()) for path in sources()}
    assert {name: count for name, count in lines.items() if count > 300} == {}


@pytest.mark.parametrize("recipe", ["star", "rejection", "dpo", "grpo"])
def test_a_recipe_is_at_most_60_lines_and_calls_the_steps(recipe: str) -> None:
    text = (ROOT / "flows" / f"{recipe}.py").read_text()
    assert len(text.splitlines()) <= 60
    assert re.findall(r"steps\.(\w+)\(", text)[-4:] == [
        *("update", "watch", "hand_over", "evaluate")
    ]


def test_every_recipe_has_a_file_and_a_config() -> None:
    from configs.schema import Config

    recipes = get_args(Config.model_fields["recipe"].annotation)
    assert {"star", "rejection"} <= set(recipes)
    for name in recipes:
        assert (ROOT / "flows" / f"{name}.py").exists()
        assert f"recipe: {name}" in (ROOT / "configs" / f"{name}.yaml").read_text()


# ── text in files ───────────────────────────────────────────────────────────────────────────


def test_every_python_file_with_code_starts_with_its_license() -> None:
    every = [path for path in [*sources(), *sources("tests")] if path.read_text().strip()]
    assert [where(p) for p in every if p.read_text().splitlines()[0] != LICENSE] == []


def test_every_module_says_what_it_does() -> None:
    every = [path for path in sources() if path.read_text().strip()]
    assert [where(path) for path in every if not ast.get_docstring(tree(path))] == []


QUERIES = sorted((ROOT / "store" / "queries").glob("*.sql"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_says_what_it_answers_and_is_used(path: Path) -> None:
    assert re.match(r"-- [A-Z].*[.:,;]?\n", path.read_text())
    users = [p for p in sources() if re.search(rf'"{path.stem}"', p.read_text())]
    assert users, f"no code asks {path.name}"


def test_every_query_that_the_code_names_is_there() -> None:
    asked = {
        argument.value
        for path in sources()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
        in ("ask", "rows", "read", "append", "query")
        for argument in node.args[:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert len(asked) > 10
    assert asked - {path.stem for path in QUERIES} == set()


def test_no_python_outside_the_store_holds_sql() -> None:
    words = re.compile(
        r"\b(select\s+[\w*(\"].*\bfrom\b|(insert|delete)\s+(into|from)|create\s+table)", re.I | re.S
    )
    holding = {
        f"{where(path)}:{node.lineno}"
        for path in sources("stages", "configs", "report", "flows")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and words.search(node.value)
    }
    # the one example that `starloop sql --help` shows
    assert {place for place in holding if not place.startswith("flows/commands/sql.py")} == set()


# ── what the pages name is there ────────────────────────────────────────────────────────────

README = ROOT / "README.md"
MAKEFILE = ROOT / "Makefile"
METHODS = ROOT / "docs" / "methods.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE.read_text(), re.M))


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_every_make_target_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", page.read_text(), re.M)
    assert set(named) - make_targets() == set()


def test_the_readme_names_make_targets() -> None:
    named = re.findall(r"make ([a-z][a-z0-9-]*)", README.read_text())
    assert {"try", "star", "help"} <= set(named)


def test_make_help_lists_every_target() -> None:
    helped = set(re.findall(r"^([a-z0-9-]+):.*##", MAKEFILE.read_text(), re.M))
    assert make_targets() == helped
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE.read_text(), re.M)
    assert set(phony.split()) == helped


@pytest.mark.parametrize(
    "command", [c.callback.__name__ for c in app.registered_commands if c.callback]
)
def test_every_subcommand_is_on_a_page_and_has_its_file(command: str) -> None:
    # `import` is a word of Python's: its function and file are named `import_`
    text = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"\b(?:starloop|make) {command.rstrip('_')}\b", text)
    assert (ROOT / "flows" / "commands" / f"{command}.py").exists()


def test_every_file_that_a_page_names_is_there() -> None:
    folders = "|".join([*HOUSE, "docs", "benchmarks", "tests"])
    text = "\n".join(page.read_text() for page in PAGES)
    named = set(re.findall(rf"`((?:{folders})/[\w./-]+\w)`", text))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_a_page_of_the_readme_is_there() -> None:
    linked = re.findall(r"\]\((docs/[\w./-]+)\)", README.read_text())
    assert len(linked) > 10
    assert [name for name in linked if not (ROOT / name).exists()] == []
    assert len(README.read_text().splitlines()) <= 80


def test_the_errors_page_has_every_error_with_its_exit_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", (ROOT / "docs/errors.md").read_text(), re.M)
    drawn = re.findall(r"[├└]── (\w+) .*exit (\d+)$", errors.__doc__ or "", re.M)
    assert rows == drawn


def test_every_error_is_drawn_in_the_tree_with_its_exit_code() -> None:
    drawn = re.findall(r"[├└]── (\w+) .*exit (\d+)$", errors.__doc__ or "", re.M)
    classes = [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and found is not errors.LoopError
    ]
    assert all(issubclass(found, errors.LoopError) for found in classes)
    assert drawn == [(found.__name__, str(found.exit_code)) for found in classes]


def test_every_test_that_the_methods_page_names_exists() -> None:
    rows = [line for line in METHODS.read_text().splitlines() if line.startswith("|")]
    named = [name for row in rows for name in re.findall(r"tests/[\w/]+\.py::\w+", row)]
    assert named
    missing = [
        name
        for name in named
        for file, function in [name.split("::")]
        if not (ROOT / file).exists()
        or function not in {n.name for n in ast.walk(tree(ROOT / file))
                            if isinstance(n, ast.FunctionDef)}
    ]  # fmt: skip
    assert missing == []
