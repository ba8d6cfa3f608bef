"""Stores of hits with values that no program wrote, under the commands that read a store."""

import contextlib
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.scoring.matrix import matrix_text, named_matrix
from swsearch.store.store import Store
from tests.campaign.program import run
from tests.campaign.trials import Trial, told


@cache
def _sound_store(folder: Path) -> bytes:
    """Return a small valid store as bytes."""
    path = folder / "sound.sqlite"
    letters = "ACDEFGHIKL"
    alignment = Alignment(0, 10, 0, 10, "5=1X4=", 9, 9, 10, 0, 0, "ACDEFWHIKL")
    hit = Hit(1, 0, "S1 subject", 10, 40, 20.5, 1e-5, "plus", alignment)
    info = RunInfo(
        command="query", parameters={"top": 5}, matrix="BLOSUM62", matrix_scores=matrix_text(named_matrix("BLOSUM62")),
        gap_open=11, gap_extend=1, lam=0.267, k=0.041, statistics="as tabled", search_space=1000,
        database=DatabaseInfo(("db",), ("0" * 64,), 1, "protein", 1, 10), program="swsearch 0", engine="cpu", threads=1,
    )  # fmt: skip
    with Store(path, create=True) as store:
        run = store.runs.start(info)
        stats = SearchStats(100, 0.1, 0.2, 0)
        store.results.add(run, QueryResult(0, "Q1", letters, (hit, replace(hit, rank=2, subject_index=1)), 2, stats))
        store.runs.finish(run)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path.read_bytes()


_CELLS: Final[tuple[Any, ...]] = (
    None, -1, 0, 2**62, 1.5, float("inf"), "", "x", "9=", "{", "[]", '{"a":', "\\u12", b"\xff\x00", "\n", "2024-13-99",
    "1D" * 500, "99999999999999999D", "9" * 5000 + "=",
)  # fmt: skip


@pytest.mark.thorough
@pytest.mark.peer("gcc")
@pytest.mark.campaign(10, 1_600)
def test_foreign_values_are_reported_and_never_crash_a_command(trial: Trial) -> None:
    """Cells of a store are set to values that the program never wrote; then it is read."""
    path = trial.folder / "input.sqlite"
    path.write_bytes(_sound_store(trial.state_dir))
    choice = trial.rng.choice
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(choice((1, 1, 2, 4))):
            table = choice(("runs", "queries", "hits"))
            column = choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            with contextlib.suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                connection.execute(f"UPDATE {table} SET {column} = ?", (choice(_CELLS),))
    connection.close()
    text_format = choice(("table", "tsv", "json", "sam", "pairwise", "xml", "html", "blast7"))
    for arguments in (["runs", "list"], ["runs", "show", "1"], ["report", "1", "--format", text_format]):
        ended = run([*arguments, "--store", str(path)], trial.folder)
        with told(f"{arguments}: {ended.text[-600:]}"):
            assert ended.fault is None
            assert ended.code in (0, 1)
            assert ended.code == 0 or ended.text.splitlines()[-1].startswith("swsearch: error: ")
