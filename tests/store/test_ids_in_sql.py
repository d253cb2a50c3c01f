# SPDX-License-Identifier: Apache-2.0
"""SQL mints the ids that Python minted, from the columns that the store keeps."""

from typing import Any
from uuid import UUID

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import ids, rows
from store.transaction import Transaction

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
IDS = st.uuids()
TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=8).map(tuple)
SEEDS = st.integers(0, 2**63 - 1)
PARTS = st.lists(
    st.one_of(IDS, st.none(), st.integers(-(2**63), 2**63 - 1), TEXT.map(ids.hash_text)),
    min_size=1,
    max_size=6,
)


def one(schema: duckdb.DuckDBPyConnection, sql: str, values: Any = None) -> Any:
    found = schema.execute(sql, values).fetchone()
    assert found is not None
    return found[0]


@pytest.mark.parametrize("kind", sorted(ids.KINDS))
@settings(max_examples=25)
@given(parts=PARTS)
def test_mint_is_the_same_in_sql_for_every_kind(
    schema: duckdb.DuckDBPyConnection, kind: str, parts: list[UUID | int | str | None]
) -> None:
    texts = [None if part is None else str(part) for part in parts]
    found = one(schema, "select mint(?, ?::varchar[])", [kind, texts])
    assert found == ids.mint(kind, *parts)


def test_a_minted_id_of_no_parts_is_worked_by_hand(schema: duckdb.DuckDBPyConnection) -> None:
    # printf 'r|-' | sha256sum | cut -c1-32
    expected = UUID("3a7ef290a4db3ad2822ddcd5a1eee919")
    assert ids.mint("r", None) == expected
    assert one(schema, "select mint('r', [null])") == expected


@given(tokens=TOKENS)
def test_hash_tokens_is_the_same_in_sql(
    schema: duckdb.DuckDBPyConnection, tokens: tuple[int, ...]
) -> None:
    assert one(schema, "select hash_tokens(?::integer[])", [list(tokens)]) == ids.hash_tokens(
        tokens
    )


def stored(schema: duckdb.DuckDBPyConnection, row: Any, sql: str) -> Any:
    """What `sql` says of a table that holds nothing but `row`."""
    schema.execute("begin")
    try:
        Transaction(schema).insert(type(row), [row])
        return one(schema, sql)
    finally:
        schema.execute("rollback")


@settings(max_examples=40)
@given(task=TEXT, question=TEXT, answer=TEXT)
def test_problem_id_follows_from_the_stored_columns(
    schema: duckdb.DuckDBPyConnection, task: str, question: str, answer: str
) -> None:
    minted = ids.problem_id(task, question, answer)
    row = rows.Problem(minted, task, "train", question, answer)
    sql = "select mint('p', [sha256(task), sha256(question), sha256(answer)]) from problem"
    assert stored(schema, row, sql) == minted


@settings(max_examples=40)
@given(name=TEXT, plain=TEXT, hint=st.none() | TEXT, config=st.none() | TEXT)
def test_prompt_set_id_follows_from_the_stored_columns(
    schema: duckdb.DuckDBPyConnection, name: str, plain: str, hint: str | None, config: str | None
) -> None:
    minted = ids.prompt_set_id(name, plain, hint, config)
    row = rows.PromptSet(minted, name, plain, hint, config)
    sql = (
        "select mint('x', [sha256(name), sha256(plain), sha256(hint)] "
        "|| if(config is null, [], [sha256(config)])) from prompt_set"
    )
    assert stored(schema, row, sql) == minted


@settings(max_examples=40)
@given(problem=IDS, prompt_set=IDS, hinted=st.booleans(), tokens=TOKENS)
def test_prompt_id_follows_from_the_stored_columns(
    schema: duckdb.DuckDBPyConnection,
    problem: UUID,
    prompt_set: UUID,
    hinted: bool,
    tokens: tuple[int, ...],
) -> None:
    minted = ids.prompt_id(problem, prompt_set, hinted, tokens)
    row = rows.Prompt(minted, problem, prompt_set, hinted, tokens, "")
    sql = """select mint('q', [problem_id::varchar, prompt_set_id::varchar,
                               hinted::integer::varchar, hash_tokens(token_ids)]) from prompt"""
    assert stored(schema, row, sql) == minted


def trajectory(**values: Any) -> rows.Trajectory:
    rest = dict.fromkeys(("engine", "engine_version", "dtype", "weight_version"))
    return rows.Trajectory(
        origin="self", completion="", logprobs=None, finish_reason="stop", **rest, **values
    )


@settings(max_examples=40)
@given(
    problem=IDS,
    prompt=IDS,
    model=IDS,
    sampling=IDS,
    purpose=st.sampled_from(["train", "rationalize", "eval"]),
    seed=SEEDS,
    slot=st.integers(0, 2**31 - 1),
)
def test_trajectory_id_follows_from_the_stored_columns(
    schema: duckdb.DuckDBPyConnection,
    problem: UUID,
    prompt: UUID,
    model: UUID,
    sampling: UUID,
    purpose: Any,
    seed: int,
    slot: int,
) -> None:
    minted = ids.trajectory_id(problem, prompt, model, sampling, purpose, seed, slot)
    row = trajectory(
        trajectory_id=minted,
        content_id=prompt,
        problem_id=problem,
        prompt_id=prompt,
        model_id=model,
        sampling_id=sampling,
        purpose=purpose,
        seed=seed,
        slot=slot,
        token_ids=(),
    )
    sql = """select mint('t', [problem_id::varchar, prompt_id::varchar, model_id::varchar,
                               sampling_id::varchar, purpose, seed::varchar, slot::varchar])
             from trajectory"""
    assert stored(schema, row, sql) == minted


@settings(max_examples=40)
@given(asked=TOKENS, said=TOKENS, some=IDS)
def test_content_id_follows_from_prompt_and_completion_tokens(
    schema: duckdb.DuckDBPyConnection, asked: tuple[int, ...], said: tuple[int, ...], some: UUID
) -> None:
    minted = ids.content_id(asked, said)
    row = trajectory(
        trajectory_id=some,
        content_id=minted,
        problem_id=some,
        prompt_id=some,
        model_id=None,
        sampling_id=None,
        purpose="seed",
        seed=None,
        slot=0,
        token_ids=said,
    )
    asked_in_sql = f"[{', '.join(map(str, asked))}]::integer[]"
    sql = f"select mint('c', [hash_tokens({asked_in_sql}), hash_tokens(token_ids)]) from trajectory"
    assert stored(schema, row, sql) == minted


@settings(max_examples=40)
@given(held=IDS, content=IDS, verifier=IDS, attempt=st.integers(0, 9))
def test_verdict_id_follows_from_the_stored_columns_and_the_content(
    schema: duckdb.DuckDBPyConnection, held: UUID, content: UUID, verifier: UUID, attempt: int
) -> None:
    minted = ids.verdict_id(held, content, verifier, attempt)
    row = rows.Verdict(
        minted, held, verifier, attempt, "wrong", 0.0, None, "mismatch", "strong", "none"
    )
    sql = f"""select mint('j', [trajectory_id::varchar, '{content}', verifier_id::varchar,
                                attempt::varchar]) from verdict"""
    assert stored(schema, row, sql) == minted
