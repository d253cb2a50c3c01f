# SPDX-License-Identifier: Apache-2.0
"""SQL from a person: one statement that reads is answered, everything else is refused."""

from pathlib import Path

import pytest

from stages.errors import ConfigError
from store.asking import ask_user_sql
from store.db import Store

READS = [
    "select version from store_info",
    "select version from store_info;",
    "from store_info select version -- and a comment",
    "with found as (select version from store_info) select * from found",
]
REFUSED = {
    "": "0 statements were given",
    " ;; ": "0 statements were given",
    "-- nothing but a comment": "0 statements were given",
    "select 1; select 2": "2 statements were given",
    "select 1; drop table run": "2 statements were given",
    "drop table run": "DROP is not allowed",
    "insert into store_info values (9, 'me')": "INSERT is not allowed",
    "update store_info set version = 9": "UPDATE is not allowed",
    "delete from store_info": "DELETE is not allowed",
    "create table mine (x int)": "CREATE is not allowed",
    "attach 'other.duckdb' as other": "ATTACH is not allowed",
    "copy store_info to 'out.csv'": "COPY is not allowed",
    "export database 'out'": "EXPORT is not allowed",
    "pragma database_size": "PRAGMA is not allowed",
    "set enable_external_access = true": "SET is not allowed",
    "install httpfs": "LOAD is not allowed",
    "call pragma_version()": "CALL is not allowed",
    "select * from read_csv('{file}')": "file system operations are disabled",
    "select * from read_text('{file}')": "file system operations are disabled",
    "from '{file}'": "file system operations are disabled",
    "select * from query('drop table run')": "Expected a single SELECT",
    "selekt 1": "syntax error at or near",
    "select (": "syntax error",
    "select missing from run": 'column "missing" not found',
    "select * from nowhere": "nowhere does not exist",
    "select error('no'\n || chr(10) || 'way')": "no way",
}


@pytest.mark.parametrize("sql", READS)
def test_one_statement_that_reads_is_answered(store: Store, sql: str) -> None:
    assert ask_user_sql(store, sql).to_pylist() == [{"version": 2}]


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_else_is_refused_in_one_line_and_changes_nothing(
    store: Store, tmp_path: Path, sql: str
) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,2\n")
    store.snapshot()
    before = {path: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    with pytest.raises(ConfigError) as caught:
        ask_user_sql(store, sql.replace("{file}", str(file)))
    assert REFUSED[sql] in str(caught.value)
    assert str(caught.value).startswith("sql: ")
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in sorted(tmp_path.iterdir())} == before


def test_a_variable_of_the_calling_code_is_no_table(store: Store) -> None:
    import pyarrow as pa

    mine = pa.table({"x": [1]})
    assert mine.num_rows == 1
    with pytest.raises(ConfigError, match="mine does not exist"):
        ask_user_sql(store, "from mine")
