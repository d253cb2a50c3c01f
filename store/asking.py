# SPDX-License-Identifier: Apache-2.0
"""SQL from outside: one statement that reads, asked of the readers' copy."""

import pyarrow as pa

from stages.errors import ConfigError
from store.db import DuckDBError, Store


def ask_user_sql(store: Store, sql: str) -> pa.Table:
    """The answer to one statement of a user's that only reads, from the readers' copy.

    Raises ConfigError for a statement that does not read, does not parse or does not run.
    """
    with store.reader() as connection:
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1:
                raise ConfigError(f"sql: {len(statements)} statements were given: give one")
            if statements[0].type.name != "SELECT":
                kind = statements[0].type.name
                raise ConfigError(
                    f"sql: {kind} is not allowed, only SELECT is: runs alone write to the store"
                )
            return connection.sql(sql).to_arrow_table()
        except DuckDBError as error:
            raise ConfigError(f"sql: {' '.join(str(error).split())}") from error
