# SPDX-License-Identifier: Apache-2.0
"""schema.sql and stages/rows/ say the same; every name in the schema is explained."""

import inspect
import types
import typing
from dataclasses import fields

import duckdb
import pytest

from stages import rows
from stages.shards import arrow_schema
from store.db import Store
from store.transaction import table_of
from store.versions import SCHEMA_VERSION

ROW_TYPES = [
    found
    for _, found in inspect.getmembers(rows, inspect.isclass)
    if hasattr(found, "KEY") and found.__module__.startswith("stages.rows.")
]
OWN_TABLES = {"store_info", "run", "step_run", "event"}  # written by statements, not from rows
SQL_TYPES = {
    "extension<arrow.uuid>": {"UUID"},
    "string": {"VARCHAR"},
    "int64": {"INTEGER", "BIGINT"},
    "double": {"DOUBLE"},
    "bool": {"BOOLEAN"},
    "list<item: int32>": {"INTEGER[]"},
    "list<item: float>": {"FLOAT[]"},
    "list<item: bool>": {"BOOLEAN[]"},
}

by_row_type = pytest.mark.parametrize("row_type", ROW_TYPES, ids=lambda t: t.__name__)


def columns_of(schema: duckdb.DuckDBPyConnection, table: str) -> dict[str, tuple[str, bool]]:
    found = schema.execute(
        "select column_name, data_type, is_nullable from duckdb_columns() where table_name = ?",
        [table],
    ).fetchall()
    return {name: (type_, nullable) for name, type_, nullable in found}


def test_every_table_is_a_row_type_or_is_written_by_a_statement(
    schema: duckdb.DuckDBPyConnection,
) -> None:
    tables = {
        name for (name,) in schema.execute("select table_name from duckdb_tables()").fetchall()
    }
    assert tables == {table_of(row_type) for row_type in ROW_TYPES} | OWN_TABLES


@by_row_type
def test_table_has_exactly_the_columns_of_its_row_type(
    schema: duckdb.DuckDBPyConnection, row_type: type
) -> None:
    assert set(columns_of(schema, table_of(row_type))) == {f.name for f in fields(row_type)}


@by_row_type
def test_column_types_take_the_arrow_types_without_loss(
    schema: duckdb.DuckDBPyConnection, row_type: type
) -> None:
    columns = columns_of(schema, table_of(row_type))
    misfits = {
        field.name: (str(field.type), columns[field.name][0])
        for field in arrow_schema(row_type)
        if columns[field.name][0] not in SQL_TYPES[str(field.type)]
    }
    assert misfits == {}


@by_row_type
def test_a_column_may_be_null_where_the_field_may_be_none(
    schema: duckdb.DuckDBPyConnection, row_type: type
) -> None:
    columns = columns_of(schema, table_of(row_type))
    optional = {
        name
        for name, hint in typing.get_type_hints(row_type).items()
        if typing.get_origin(hint) in (types.UnionType, typing.Union)
        and type(None) in typing.get_args(hint)
    }
    assert {name for name, (_, nullable) in columns.items() if nullable} == optional


@by_row_type
def test_primary_key_where_there_is_one_is_the_key_of_the_row_type(
    schema: duckdb.DuckDBPyConnection, row_type: type
) -> None:
    found = schema.execute(
        "select constraint_column_names from duckdb_constraints() "
        "where constraint_type = 'PRIMARY KEY' and table_name = ?",
        [table_of(row_type)],
    ).fetchall()
    assert found in ([], [(list(row_type.KEY),)])  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["tables", "views", "columns", "functions"])
def test_every_table_view_macro_and_column_has_a_comment(
    schema: duckdb.DuckDBPyConnection, kind: str
) -> None:
    name = {
        "tables": "table_name",
        "views": "view_name",
        "columns": "table_name || '.' || column_name",
        "functions": "function_name",
    }[kind]
    found = schema.execute(
        f"select {name}, comment from duckdb_{kind}() where not internal"
    ).fetchall()
    assert found
    assert [name for name, comment in found if not comment] == []


def test_a_new_file_can_be_read_by_duckdb_1_5(store: Store) -> None:
    with duckdb.connect(str(store.path), read_only=True) as connection:
        (found,) = connection.execute(
            "select tags['storage_version'] from duckdb_databases() where database_name = 'store'"
        ).fetchall()
    assert found[0].removesuffix("+") == "v1.5.0"


def test_a_new_file_says_which_schema_it_has_and_who_made_it(store: Store) -> None:
    with store.reader() as connection:
        ((version, maker),) = connection.execute("from store_info").fetchall()
    assert version == SCHEMA_VERSION
    assert maker.count(".") == 2
