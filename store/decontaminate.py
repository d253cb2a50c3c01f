# SPDX-License-Identifier: Apache-2.0
"""Which texts overlap evaluation items, and which repeat each other, found in DuckDB.

The work is done in memory, batch by batch, never in the store's file. Of a text the first
100,000 characters count. Rules, over words in lower case without punctuation:

    exact      equal words, and equal operators between numbers; below 8 words of letters a text
               with a digit or a sign of mathematics is compared sign by sign: in `(2+3)*4` and
               `2+3*4` the signs are the problem
    template   equal words with every number masked; at least 8 words without a number
    13-gram    any run of 13 words in common (lm-evaluation-harness)
    10-gram    any run of 10; items of 3 to 9 words: exact (DeepSeekMath, arXiv 2402.03300)
    8-gram     runs of 8 that one item has cover a share of the candidate's words (Tülu 3, arXiv
               2411.15124, which counts tokens)

A text without any word overlaps nothing. N-grams are compared by 64-bit hashes: among 10^13 pairs
one of two million would be equal by chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stages.ids import Id
from store.scratch import scratch
from store.transaction import query, read_table

if TYPE_CHECKING:
    import duckdb

CHARACTERS = 100_000  # of one text
BATCH = 8_000_000  # characters in hand at once
LEADING = 25  # items that one n-gram leads to
_ALL = 2**62
_SHORT = (3, 9)  # words of an item that has no 10-gram


def texts(rows: Iterable[tuple[Id, str]]) -> pa.Table:
    """Ids and texts as a table (id, text); half a surrogate pair becomes a question mark."""
    pairs = list(rows)
    return pa.table(
        {
            "id": pa.array([id_.bytes for id_, _ in pairs], pa.uuid()),
            "text": pa.array([text.encode("utf-8", "replace") for _, text in pairs], pa.binary()),
        }
    ).cast(pa.schema({"id": pa.uuid(), "text": pa.string()}))


def find_overlaps(
    candidates: pa.Table,
    evaluation: pa.Table,
    rules: Sequence[str],
    containment: float,
    folder: Path,
    memory: str = "4GB",
    threads: int | None = None,
) -> pa.Table:
    """Candidates that overlap evaluation items: (problem_id, other_id, rule, share).

    Both tables are (id, text). One row for each candidate and rule, with the item that shares
    most: share 1 for equal texts, else the share of the candidate's words in n-grams that the item
    has; of 8-grams at least `containment`. An n-gram that more than 25 items have leads to the
    first 25 alone. Rows are in the order of candidates and rules. Files that the memory limit
    makes necessary lie in `folder` meanwhile.
    """
    lengths = {rule: int(rule.removesuffix("-gram")) for rule in rules if rule.endswith("-gram")}
    with scratch(folder, memory, threads) as connection:
        connection.execute(query("overlap_begin"))
        for _ in _batches(connection, evaluation):
            connection.execute(query("overlap_evaluation"))
            for n in lengths.values():
                connection.execute(query("overlap_grams"), {"n": n})
        for _ in _batches(connection, candidates):
            for rule in rules:
                if rule in lengths:
                    least = containment if rule == "8-gram" else 0.0
                    limits = {"n": lengths[rule], "least": least, "most": LEADING}
                    connection.execute(query("overlap_ngrams"), {"rule": rule, **limits})
                if rule == "10-gram":
                    _equal(connection, rule, "exact", *_SHORT)
                elif rule not in lengths:
                    _equal(connection, rule, rule, 1, _ALL)
        found = read_table(connection, "overlaps")
    return _with_ids(found, candidates, evaluation)


def find_duplicates(
    candidates: pa.Table,
    rule: str,
    folder: Path,
    memory: str = "4GB",
    threads: int | None = None,
) -> pa.Table:
    """Texts (id, text) that repeat an earlier one by `exact` or `template`, columns as above."""
    with scratch(folder, memory, threads) as connection:
        connection.execute(query("overlap_begin"))
        for _ in _batches(connection, candidates):
            connection.execute(query("overlap_keys"), {"by": rule})
        found = read_table(connection, "overlap_twins", by=rule)
    return _with_ids(found, candidates, candidates)


def _equal(
    connection: "duckdb.DuckDBPyConnection", rule: str, by: str, shortest: int, longest: int
) -> None:
    limits = {"shortest": shortest, "longest": longest}
    connection.execute(query("overlap_equal"), {"rule": rule, "by": by, **limits})


def _batches(connection: "duckdb.DuckDBPyConnection", table: pa.Table) -> Iterator[None]:
    """The texts of a table, a bounded number of characters at a time, as the table `batch`."""
    cut = pc.utf8_slice_codeunits(table.column("text"), 0, CHARACTERS).combine_chunks()
    ends = pc.cumulative_sum(pc.cast(pc.utf8_length(cut), pa.int64())).to_numpy()
    begin = 0
    while begin < len(cut):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(ends.searchsorted(before + BATCH, side="right")))
        positions = pa.array(range(begin, end), pa.int64())
        given = pa.table({"position": positions, "text": cut[begin:end]})
        connection.register("given", given)
        connection.execute(query("overlap_batch"))
        connection.unregister("given")
        yield
        begin = end


def _with_ids(found: pa.Table, candidates: pa.Table, others: pa.Table) -> pa.Table:
    """Positions as the ids that stand there."""
    return pa.table(
        {
            "problem_id": candidates.column("id").take(found.column("position")),
            "other_id": others.column("id").take(found.column("other")),
            "rule": found.column("rule"),
            "share": found.column("share"),
        }
    )
