# SPDX-License-Identifier: Apache-2.0
"""Files that break their form: one error with file, line, column, and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_files import jsonl, parquet, read

from stages.errors import ConfigError, TaskDataError
from stages.imports.files import file_hash, records_of

GOOD = {"prompt": "1+1=", "completion": "2", "token_ids": [1, 2], "logprobs": [-1, -2]}


def refused(tmp_path: Path, *records: dict[str, Any]) -> str:
    with pytest.raises(TaskDataError) as error:
        read(jsonl(tmp_path / "a.jsonl", records), "jsonl")
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt": 5}, "line 2, column 'prompt': a number (5) where line 1 has text"),
        ({"completion": {"a": 1}}, "column 'completion': an object ({'a': 1}) where line 1"),
        ({"completion": "\ud83d"}, "column 'completion': a lone surrogate (\\ud83d) is no text"),
        ({"token_ids": [1, -2]}, "column 'token_ids': -2 is no token id"),
        ({"token_ids": [1, 2**31]}, "column 'token_ids': 2147483648 is no token id"),
        ({"token_ids": [1, True]}, "column 'token_ids': True is no token id"),
        ({"logprobs": [-1]}, "column 'logprobs': 1 log-probabilities for 2 token ids"),
        ({"logprobs": [-1, None]}, "column 'logprobs': a log-probability is missing"),
        ({"logprobs": [-1, -1e999]}, "column 'logprobs': -inf is not finite"),
        ({"reward": "high"}, "column 'reward': text ('high') where a number is needed"),
        ({"difficulty": [3]}, "column 'difficulty': a list ([3]) where a number is needed"),
        ({"prompt\udc00": 1}, "line 2: the column name 'prompt\\udc00' holds a lone surrogate"),
    ],
)
def test_a_broken_value_is_named_with_its_place(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    message = refused(tmp_path, GOOD, {**GOOD, **change})
    assert f"{tmp_path}/a.jsonl, line 2" in message
    assert said in message


def test_a_column_of_numbers_and_text_is_mixed_where_it_may_be_a_reward(tmp_path: Path) -> None:
    records = [{"prompt": "a", "completion": "b", "right": value} for value in (1.0, "yes")]
    with pytest.raises(TaskDataError, match=r"line 2, column 'right': text .* line 1 has a number"):
        read(jsonl(tmp_path / "a.jsonl", records), "trl")


def test_missing_columns_are_named_with_those_that_there_are(tmp_path: Path) -> None:
    message = refused(tmp_path, {"promt": "1+1=", "completion": "2"})
    assert "rollouts need prompt" in message
    assert "columns: promt, completion" in message
    assert "did you mean --map prompt=promt?" in message


def test_a_mapped_column_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [GOOD])
    with pytest.raises(TaskDataError, match="no row has a column 'gold'"):
        read(path, "jsonl", answer="gold")


def test_a_row_without_prompt_or_completion_is_left_out_with_its_line(tmp_path: Path) -> None:
    records = [{**GOOD, "prompt": None}, GOOD, {"prompt": "a"}, {**GOOD, "completion": None}]
    found = read(jsonl(tmp_path / "a.jsonl", records), "jsonl")
    assert [row.line for row in found.rows] == [2]
    assert found.refused == {"no prompt": [1], "no completion": [3, 4]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no rows"),
        (b"\n \n", "holds no rows"),
        (b"\x89PNG\r\n\x1a\n", "line 1: byte 1 is not UTF-8"),
        (b'{"a": 1}\nprompt,completion\n', "line 2: no JSON"),
        (b"[1, 2]\n", "line 1: a list ([1, 2]) where an object is needed"),
        (b"[" * 200_000, "line 1: no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 1: no JSON"),
    ],
)
def test_a_file_that_is_no_jsonl_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(TaskDataError) as error:
        read(path, "jsonl")
    assert said in str(error.value)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"prompt,completion\n", b"PAR1" + b"x" * 99])
def test_a_file_that_is_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(TaskDataError, match=r"a\.parquet, after row 0: no Parquet"):
        read(path, "trl")


def test_a_torn_parquet_file_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [GOOD] * 100)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TaskDataError, match="no Parquet"):
        read(path, "jsonl")


def test_an_empty_parquet_table_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"prompt": pa.array([], pa.string())}), tmp_path / "a.parquet")
    with pytest.raises(TaskDataError, match="holds no rows"):
        read(tmp_path / "a.parquet", "trl")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder: name the files in it"):
        file_hash(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        file_hash(tmp_path / "none.jsonl")


def test_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\n\n" + json.dumps(GOOD).encode()
    )
    assert [row.line for row in read(path, "jsonl").rows] == [1, 3]


def test_a_line_of_a_megabyte_is_read(tmp_path: Path) -> None:
    long = "x🙂\x00" * 350_000
    path = jsonl(tmp_path / "a.jsonl", [{**GOOD, "completion": long}])
    assert path.stat().st_size > 1_000_000
    assert read(path, "jsonl").rows[0].said[0].text == long


@given(
    st.dictionaries(
        st.sampled_from([*GOOD, "answer", "reward", "group", "question"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["role", "content", "type"]), inner, max_size=3)
            ),
            max_leaves=6,
        ),
    )
)
def test_whatever_a_row_holds_it_is_read_refused_or_named(
    tmp_path_factory: pytest.TempPathFactory, record: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    jsonl(path, [GOOD, {**GOOD, **record}])
    try:
        found = read(path, "jsonl")
    except TaskDataError as error:
        assert "any.jsonl, line 2" in str(error)
    else:
        assert len(found.rows) + sum(map(len, found.refused.values())) == 2
    assert len(list(records_of(path).records)) == 2
