"""Invalid values in the columns of a store: they are reported as damage, with the names of the store and the column.

The expected words are written by hand.
"""

import sqlite3

import numpy as np
import pytest

from swsearch.errors import StoreError
from swsearch.hits.result import Pssm
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query

VALUES = [
    ("runs", "parameters", "{"),
    ("runs", "parameters", "[]"),
    ("runs", "database_paths", "proteins.db"),
    ("runs", "database_paths", "[]"),
    ("runs", "database_digests", "{}"),
    ("runs", "database_digests", "[1]"),
    ("runs", "database_alphabet", "runes"),
    ("runs", "shard_count", 2),
    ("runs", "process", 2**62),
    ("queries", "n_hits", float("inf")),
    ("runs", "started_at", "2024-13-99"),
    ("runs", "started_at", 5),
    ("runs", "lam", "x"),
    ("queries", "n_passed", "many"),
    ("queries", "letters", b"\xff"),
    ("queries", "score_seconds", "fast"),
    ("queries", "pssm", "ARN"),
    ("queries", "pssm", Pssm(np.zeros((7, 20), dtype=np.int8)).as_text()),
    ("hits", "query_start", -1),
    ("hits", "cigar", b"5="),
    ("hits", "query_frame", "x"),
    ("hits", "bits", "x"),
]


@pytest.mark.parametrize(("table", "column", "value"), VALUES, ids=lambda value: str(value)[:20])
def test_a_foreign_value_is_named_by_its_column(tmp_path, table, column, value):
    """SQLite accepts any value in any column: a text in a column of numbers used to end reports with a traceback."""
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as store:
        run = store.runs.start(RUN)
        store.results.add(run, make_query(0))
        store.runs.finish(run)
        assert len(list(store.results.queries(run))) == 1
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
    connection.close()

    def read_all() -> None:
        with Store(path) as store:
            store.runs.all()
            list(store.results.queries(run))

    with pytest.raises(StoreError, match=r"hits\.sqlite: the store is damaged") as caught:
        read_all()
    assert "\n" not in str(caught.value)
    assert column in str(caught.value)
