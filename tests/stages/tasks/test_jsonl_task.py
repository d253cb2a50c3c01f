# SPDX-License-Identifier: Apache-2.0
"""Tasks from files: every format, the columns, what is left out, the cut, and what is refused."""

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from configs.files import FOLDER
from stages.errors import TaskDataError
from stages.tasks.columns import Columns, as_text, look
from stages.tasks.jsonl import Config, Jsonl

RECIPES = FOLDER / "tasks"
REAL = os.environ.get("STARLOOP_TEST_DATA")
ROWS = [{"question": f"What is {n} and 1?", "answer": n + 1} for n in range(10)]
CQA = {
    "answerKey": "B",
    "question": {
        "stem": "Where is a boat kept?",
        "choices": [{"label": "A", "text": "oven"}, {"label": "B", "text": "harbour"}],
    },
}
CQA_QUESTION = "Where is a boat kept?\nA. oven\nB. harbour"


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def task(train: Path | None = None, **more: Any) -> Jsonl:
    files = {**({"train": str(train)} if train else {}), **more.pop("files", {})}
    files = {split: str(path) for split, path in files.items()}
    built = Config.model_validate({"type": "jsonl", "files": files, **more}).build()
    assert isinstance(built, Jsonl)
    return built


def whole(train: Path, **more: Any) -> Jsonl:
    """A task whose train split is not cut."""
    return task(train, split={"dev": 0.0}, **more)


def pairs(built: Jsonl, split: Any = "train") -> list[tuple[str, str]]:
    return [(p.question, p.answer) for p in built.problems(split)]


def refusal(built: Jsonl) -> str:
    with pytest.raises(TaskDataError) as refused:
        built.problems("train")
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


# ── formats ─────────────────────────────────────────────────────────────────────────────────

EXPECTED = [(row["question"], str(row["answer"])) for row in ROWS]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json", "json.gz", "csv", "csv.gz"])
def test_every_text_format_gives_the_same_problems(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"train.{ending}"
    file = io.StringIO(newline="")
    if "csv" in ending:
        writer = csv.DictWriter(file, ["question", "answer"])
        writer.writeheader()
        writer.writerows(ROWS)
    elif "jsonl" in ending:
        file.writelines(json.dumps(row) + "\n" for row in ROWS)
    else:
        json.dump(ROWS, file)
    data = file.getvalue().encode()
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    assert pairs(whole(path)) == EXPECTED


def test_parquet_gives_the_same_problems(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "train.parquet")
    assert pairs(whole(tmp_path / "train.parquet")) == EXPECTED


def test_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    big = "9" * 5000
    path.write_text(
        f'{{"question": "a", "answer": 0.10}}\n{{"question": "b", "answer": {big}}}\n'
        '{"question": "c", "answer": true}\n'
    )
    assert [answer for _, answer in pairs(whole(path))] == ["0.10", big, "true"]


def test_a_byte_order_mark_and_blank_lines_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"question": "a", "answer": 1}\r\n\r\n\n')
    built = whole(path)
    assert pairs(built) == [("a", "1")] and built.left_out() == []


def test_a_row_is_found_at_its_line_whatever_unicode_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"question": "a\u2028b\x85", "answer": 1}\n\n{"question": "c"}\n')
    assert [(out.line, out.why) for out in whole(path).left_out()] == [
        ("train.jsonl:3", "no_answer")
    ]


# ── columns ─────────────────────────────────────────────────────────────────────────────────


def test_the_answer_is_what_follows_the_last_mark() -> None:
    columns = Columns(after="####")
    assert columns.take({"question": "q", "answer": "#### 1 so\n#### 1,234 "}).answer == "1,234"
    assert columns.take({"question": "q", "answer": "1234"}).answer is None
    assert columns.take({"question": "q", "answer": "work ####  "}).answer is None


def test_a_mark_with_a_brace_ends_at_the_brace_that_closes_it() -> None:
    columns = Columns(after="\\boxed{")
    row = {"question": "q", "answer": "first \\boxed{1}, then $\\boxed{\\frac{1}{2}}$."}
    assert columns.take(row).answer == "\\frac{1}{2}"
    assert columns.take({"question": "q", "answer": "\\boxed{\\frac{1}{2}"}).answer is None


@pytest.mark.parametrize(
    "choices",
    [
        [{"label": "A", "text": "oven"}, {"label": "B", "text": "harbour"}],
        {"label": ["A", "B"], "text": ["oven", "harbour"]},
        ["oven", "harbour"],
    ],
)
def test_choices_are_written_a_line_each(choices: Any) -> None:
    row = {"stem": "Where is a boat kept?", "options": choices, "answer": "B"}
    below = Columns(question="stem", choices="options").take(row)
    placed = Columns(question="{stem}\n{choices}", choices="options").take(row)
    assert below == placed
    assert below.question == CQA_QUESTION


@pytest.mark.parametrize(
    "choices",
    [None, [], "oven", {"label": ["A"], "text": []}, [{"label": "A"}], [{"text": 1}], [["a"], {}]],
)
def test_choices_that_are_none_leave_no_question(choices: Any) -> None:
    row = {"question": "q", "options": choices, "answer": "B"}
    assert Columns(choices="options").take(row).question is None


def test_columns_are_reached_by_dots_and_places() -> None:
    row = {"a": {"b": [{"c": 1}, {"c": 2}]}, "a.b": 3}
    assert look(row, "a.b.1.c") == 2
    assert look(row, "a.b") == 3
    assert look(row, "a.b.7.c") is None and look(row, "a.x.c") is None and look(row, "b") is None


def test_a_template_never_reads_more_than_columns() -> None:
    row = {"question": "{answer} {0} {question.__class__}", "answer": "7"}
    assert Columns(question="Q: {question}").take(row).question == "Q: " + row["question"]
    assert Columns(question="{question.__class__}").take(row).question is None


def test_the_first_number_of_a_difficulty_counts() -> None:
    def difficulty(value: Any) -> float | None:
        row = {"question": "q", "answer": 1, "level": value}
        return Columns(difficulty="level").take(row).difficulty

    assert [difficulty(v) for v in ("Level 5", 3, "2.5", "Level ?", None, "9" * 400)] == [
        *(5.0, 3.0, 2.5, None, None, None)
    ]


def test_what_is_no_text_is_none() -> None:
    assert [as_text(v) for v in (None, "", " \n", "\ud800", {"a": 1}, b"x", [], ["a", None])] == (
        [None] * 8
    )
    assert as_text(["assert f(1) == 2", "assert f(2) == 3"]) == "assert f(1) == 2\nassert f(2) == 3"


# ── what is left out ────────────────────────────────────────────────────────────────────────


def test_each_row_that_is_no_problem_is_listed_with_its_line_and_reason(tmp_path: Path) -> None:
    train = lines(
        tmp_path / "train.jsonl",
        [
            {"question": "one", "answer": 1},
            {"answer": 2},
            {"question": "three", "answer": None},
            {"question": " one ", "answer": "1"},
            ["no", "row"],
            {"question": "six", "answer": 6},
            {"question": "six", "answer": 7},
            {"question": "seen", "answer": 8},
        ],
    )
    test = lines(tmp_path / "test.jsonl", [{"question": "seen", "answer": 8}])
    built = whole(train, files={"test": test})
    assert pairs(built) == [("one", "1")]
    assert pairs(built, "test") == [("seen", "8")]
    assert {
        (out.split, out.line, out.why, out.question, out.answer) for out in built.left_out()
    } == {
        ("train", "train.jsonl:2", "no_question", "", "2"),
        ("train", "train.jsonl:3", "no_answer", "three", ""),
        ("train", "train.jsonl:4", "duplicate", " one ", "1"),
        ("train", "train.jsonl:5", "not_a_row", "", ""),
        ("train", "train.jsonl:6", "two_answers", "six", "6"),
        ("train", "train.jsonl:7", "two_answers", "six", "7"),
        ("train", "train.jsonl:8", "duplicate", "seen", "8"),
    }


values = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.text())
records = st.fixed_dictionaries({}, optional={"question": values, "answer": values}) | values


@given(st.lists(records, min_size=1, max_size=20))
def test_every_row_is_a_problem_or_left_out(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    path = lines(tmp_path_factory.mktemp("any") / "train.jsonl", [ROWS[0], ROWS[1], *rows])
    built = task(path)
    try:
        kept = [*built.problems("train"), *built.problems("dev")]
    except TaskDataError as error:  # two rows of the same two questions with other answers
        assert "no train problems" in str(error)
        return
    assert len(kept) + len(built.left_out()) == len(rows) + 2
    assert len({p.problem_id for p in kept}) == len(kept)
    assert len({out.line for out in built.left_out()}) == len(built.left_out())


# ── splits ──────────────────────────────────────────────────────────────────────────────────


def made(tmp_path: Path, count: int) -> Path:
    rows = [
        {"question": f"q{n}", "answer": n, "form": f"t{n % 7}", "area": f"d{n % 5}"}
        for n in range(count)
    ]
    return lines(tmp_path / "train.jsonl", rows)


@pytest.mark.parametrize("by", ["template", "domain"])
def test_no_group_is_in_two_splits(tmp_path: Path, by: str) -> None:
    columns = {"template": "form", "domain": "area"}
    built = task(made(tmp_path, 70), columns=columns, split={"dev": 0.2, "by": by})
    train, dev = ({getattr(p, by) for p in built.problems(s)} for s in ("train", "dev"))  # type: ignore[arg-type]
    assert train and dev and not train & dev
    assert len(built.problems("train")) + len(built.problems("dev")) == 70


def test_the_cut_takes_its_share_and_follows_from_the_seed(tmp_path: Path) -> None:
    path = made(tmp_path, 100)

    def dev(seed: int) -> list[tuple[str, str]]:
        return pairs(task(path, split={"dev": 0.2, "seed": seed}), "dev")

    assert len(dev(0)) == 20 and dev(0) == dev(0) and dev(0) != dev(1)


def test_dev_data_is_not_cut_from_train(tmp_path: Path) -> None:
    dev = lines(tmp_path / "dev.jsonl", [{"question": "held", "answer": 1}])
    built = task(made(tmp_path, 50), files={"dev": dev})
    assert len(built.problems("train")) == 50 and pairs(built, "dev") == [("held", "1")]


def test_a_limit_takes_the_first_problems_of_a_split(tmp_path: Path) -> None:
    built = whole(made(tmp_path, 50), limit={"train": 3})
    assert pairs(built) == [("q0", "0"), ("q1", "1"), ("q2", "2")]


def test_rationales_are_worked_examples_up_to_a_number(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "answer": f"so #### {n}"} for n in range(5)]
    columns = {"after": "####", "rationale": "answer"}
    built = whole(lines(tmp_path / "t.jsonl", rows), columns=columns, demonstrations=2)
    assert [(d.problem.question, d.completion) for d in built.demonstrations()] == [
        ("q0", "so #### 0"),
        ("q1", "so #### 1"),
    ]


# ── what is refused ─────────────────────────────────────────────────────────────────────────

BAD: list[tuple[str, bytes, str]] = [
    (
        "t.jsonl",
        b'{"question": "a", "answer": 1}\n{"question": \n',
        "t.jsonl:2: no JSON (Expecting value, column 14)",
    ),
    ("t.jsonl", b'{"question": "\xff", "answer": 1}\n', "t.jsonl:1: byte 15 is not UTF-8"),
    ("t.jsonl", b"[" * 100_000, "t.jsonl:1: no JSON ("),
    ("t.jsonl", b"\n\n", "t.jsonl holds no rows"),
    ("t.jsonl", b'{"qestion": "a", "answer": 1}\n', "did you mean task.columns.question=qestion?"),
    ("t.jsonl", b'{"question": "a"}\n', "task.columns.answer names 'answer', which no row has"),
    ("t.jsonl", b"1\n2\n", "columns there: none"),
    ("t.jsonl.gz", b"no gzip", "no whole gzip file"),
    ("t.jsonl.gz", gzip.compress(b"{}\n" * 999)[:-9], "no whole gzip file"),
    ("t.json", b'{"question": "a"}', "t.json holds dict, not a list of rows"),
    ("t.json", b"[1, ", "t.json: no JSON ("),
    ("t.csv", b'question,answer\n"a,1\n', "no CSV ("),
    ("t.csv", b"question,answer\na\xff,1\n", "no CSV ("),
    ("t.parquet", b"PAR1 and no more", "no Parquet ("),
    ("t.txt", b"a", "is of no known kind; allowed: .jsonl"),
]


@pytest.mark.parametrize(("name", "content", "said"), BAD)
def test_a_broken_file_is_named_with_its_line_and_field(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert said in refusal(whole(tmp_path / name))


def test_a_csv_row_with_too_many_cells_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("question,answer\na,1\nb,2,3\nc\n")
    built = whole(tmp_path / "t.csv")
    assert pairs(built) == [("a", "1")]
    assert [(o.line, o.why) for o in built.left_out()] == [
        ("t.csv:3", "not_a_row"),
        ("t.csv:4", "no_answer"),
    ]


def test_a_file_that_is_not_there_is_named_with_its_field(tmp_path: Path) -> None:
    assert "task.files.train: " in refusal(whole(tmp_path / "none.jsonl"))


def test_a_task_without_train_problems_is_refused(tmp_path: Path) -> None:
    test = lines(tmp_path / "test.jsonl", ROWS)
    assert "task jsonl has no train problems" in refusal(task(files={"test": test}))
    same = whole(lines(tmp_path / "t.jsonl", ROWS), files={"test": test})
    assert "(10 rows left out)" in refusal(same)


def test_one_problem_cannot_be_cut(tmp_path: Path) -> None:
    assert "set task.split.dev=0" in refusal(task(lines(tmp_path / "t.jsonl", ROWS[:1])))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "files is empty: name the data"),
        ({"hub": {"name": "a/b", "splits": {"train": "train"}}}, "hub.revision is missing: pin"),
        (
            {"hub": {"name": "a/b", "splits": {"train": "train"}, "revision": "main"}},
            "should match pattern",
        ),
    ],
)
def test_data_that_is_not_pinned_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Config.model_validate({"type": "jsonl", **given})


def test_a_data_set_that_cannot_be_reached_is_a_clear_error() -> None:
    hub = {"name": "nobody/nothing", "splits": {"train": "train"}, "revision": "0" * 40}
    said = refusal(whole_hub(hub))
    assert said.startswith("task.hub: nobody/nothing at 000000000000 cannot be loaded (")
    assert said.endswith("name local copies: task.files.train=FILE")


def whole_hub(hub: dict[str, Any]) -> Jsonl:
    return Jsonl(Config.model_validate({"type": "jsonl", "hub": hub}))


# ── what a file holds is part of the config ─────────────────────────────────────────────────


def test_the_files_hashes_are_identity_and_their_paths_are_not(tmp_path: Path) -> None:
    from stages.settings import identity

    (tmp_path / "b").mkdir()
    one = Config(type="jsonl", files={"train": str(lines(tmp_path / "t.jsonl", ROWS))})  # type: ignore[arg-type]
    same = Config(type="jsonl", files={"train": str(lines(tmp_path / "b" / "t.jsonl", ROWS))})  # type: ignore[arg-type]
    assert identity(one) == identity(same) and one != same
    other = Config(type="jsonl", files={"train": str(lines(tmp_path / "t.jsonl", ROWS[1:]))})  # type: ignore[arg-type]
    assert identity(one) != identity(other)


def test_a_file_that_changed_under_a_config_is_refused(tmp_path: Path) -> None:
    built = whole(lines(tmp_path / "t.jsonl", ROWS))
    lines(tmp_path / "t.jsonl", ROWS[1:])
    assert "the config says" in refusal(built)


def test_files_take_the_place_of_the_hub(tmp_path: Path) -> None:
    hub = {"name": "a/b", "splits": {"train": "train"}}
    config = {"type": "jsonl", "files": {"train": str(made(tmp_path, 3))}, "hub": hub}
    assert Config.model_validate(config).hub is None


# ── recipes ─────────────────────────────────────────────────────────────────────────────────

ORIGINAL: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "gsm8k": (
        {"question": "Ada has 2 bags of 3.", "answer": "2*3=<<2*3=6>>6\n#### 6"},
        ("Ada has 2 bags of 3.", "6"),
    ),
    "commonsenseqa": (CQA, (CQA_QUESTION, "B")),
    "math": (
        {
            "problem": "Half of 1?",
            "level": "Level 1",
            "type": "Algebra",
            "solution": "It is $\\boxed{\\frac{1}{2}}$.",
        },
        ("Half of 1?", "\\frac{1}{2}"),
    ),
    "math500": (
        {"problem": "Half of 4?", "answer": "2", "subject": "Algebra", "level": 1},
        ("Half of 4?", "2"),
    ),
    "aime": ({"problem": "Half of 8?", "answer": "004"}, ("Half of 8?", "004")),
    "dapo_math_17k": (
        {"prompt": "Half of 6?", "solution": "3", "ability": "MATH"},
        ("Half of 6?", "3"),
    ),
    "humaneval": (
        {"prompt": "def f():\n", "test": "def check(c):\n    assert c()\n", "entry_point": "f"},
        ("def f():\n", "def check(c):\n    assert c()\n\ncheck(f)"),
    ),
    "mbpp": (
        {"text": "Add one.", "test_list": ["assert f(1) == 2", "assert f(2) == 3"]},
        ("Add one.", "assert f(1) == 2\nassert f(2) == 3"),
    ),
}


def recipe(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((RECIPES / f"{name}.yaml").read_text())
    return values


def test_every_recipe_has_its_original_row_here() -> None:
    assert {path.stem for path in RECIPES.glob("*.yaml")} == ORIGINAL.keys()


@pytest.mark.parametrize("name", ORIGINAL)
def test_a_recipe_reads_the_form_of_its_data(tmp_path: Path, name: str) -> None:
    row, expected = ORIGINAL[name]
    section = {**recipe(name)["task"], "split": {"dev": 0.0}}
    section["files"] = {"train": str(lines(tmp_path / "train.jsonl", [row]))}
    built = Config.model_validate(section).build()
    (problem,) = built.problems("train")
    assert (problem.task, problem.question, problem.answer) == (name, *expected)
    assert built.left_out() == []


@pytest.mark.parametrize("name", ORIGINAL)
def test_a_recipe_alone_asks_for_a_pin_or_files(name: str) -> None:
    with pytest.raises(ValidationError, match="pin a commit of"):
        Config.model_validate(recipe(name)["task"])


@pytest.mark.skipif(not REAL, reason="STARLOOP_TEST_DATA names no folder of data sets")
@pytest.mark.parametrize(
    ("name", "files", "counts"),
    [
        ("gsm8k", {"train": "train.jsonl", "test": "test.jsonl"}, (7473, 0, 1319)),
        ("commonsenseqa", {"train": "train.jsonl", "dev": "dev.jsonl"}, (9741, 1221, 0)),
        ("humaneval", {"train": "HumanEval.jsonl.gz"}, (164, 0, 0)),
    ],
)
def test_all_of_the_real_data_is_read(
    name: str, files: dict[str, str], counts: tuple[int, int, int]
) -> None:
    section = {**recipe(name)["task"], "split": {"dev": 0.0}, "demonstrations": None}
    section["files"] = {split: str(Path(REAL or "") / name / file) for split, file in files.items()}
    built = Config.model_validate(section).build()
    assert tuple(len(built.problems(s)) for s in ("train", "dev", "test")) == counts
    assert built.left_out() == []
    if name == "gsm8k":
        assert len(built.demonstrations()) == 7473
