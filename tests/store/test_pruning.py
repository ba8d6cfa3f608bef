"""Old runs, the size of a store, and `runs prune`. Expected values: by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from swsearch.cli.app import main
from swsearch.errors import StoreError
from swsearch.store.store import Store
from tests.store.conftest import RUN, make_query

NOW = datetime.now(UTC)


@pytest.fixture
def store(target):
    """Six runs that began 60, 50, … 10 days ago: one of a service, one at work, one interrupted, three finished."""
    with Store(target, create=True) as opened:
        for days in range(60, 0, -10):
            run = opened.runs.start(RUN)
            opened.results.add(run, make_query(0, n_hits=400))
            with opened.writing() as rows:
                rows.change("runs", run, {"started_at": NOW - timedelta(days=days)})
        for run in (1, 4, 5, 6):
            opened.runs.finish(run)
        opened.runs.interrupt(3)
        with opened.writing() as rows:
            rows.insert("searches", SEARCH | {"run_id": 1})
        yield opened


SEARCH = {
    "key": "k", "owner": "ann", "database_name": "p", "database_digest": "d", "database_generation": 1, "options": "{}",
    "fingerprint": "f", "content": "c", "asked_digest": "a", "state": "done", "created_at": NOW, "n_queries": 1,
    "n_done": 1, "n_failed": 0, "cells": 1, "cells_done": 1, "n_hits": 0, "served": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("keep", "days", "expected"),
    [
        (0, None, [3, 4, 5, 6]),
        (2, None, [3, 4]),
        (4, None, []),
        (100, None, []),
        (0, 25, [3, 4]),
        (0, 35, [3]),
        (3, 25, [3]),
        (1, 5, [3, 4, 5]),
    ],
)
def test_old_runs_are_those_that_nothing_keeps(store, keep, days, expected):
    before = None if days is None else NOW - timedelta(days=days)
    assert [run.id for run in store.runs.old(keep=keep, before=before)] == expected


def test_a_store_knows_its_size(store):
    """Source: a hit has 56 letters of its subject and 60 of its header; the limit above is generous."""
    n_bytes, n_free = store.size()
    assert 6 * 400 * 116 < n_bytes < 6 * 400 * 1500
    assert 0 <= n_free < n_bytes


def test_pruning_returns_the_space_of_old_runs(tmp_path, capfd):
    """Run 1 stays because it is new enough, though it is not among the newest; run 3 because it is."""
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as opened:
        for _ in range(3):
            opened.results.add(opened.runs.start(RUN), make_query(0, n_hits=2000))
            opened.runs.finish(opened.runs.newest().id)
        with opened.writing() as rows:
            rows.execute("UPDATE runs SET started_at = ? WHERE id <> 1", NOW - timedelta(days=3))
    before = path.stat().st_size
    prune = ["runs", "prune", "--store", str(path), "--keep", "1", "--older-than", "48h"]
    assert main([*prune, "--dry-run"]) == 0
    began = f"{NOW - timedelta(days=3):%Y-%m-%d %H:%M}"
    assert capfd.readouterr().out == f"run 2 would be deleted: 1 query in proteins.db, begun {began} UTC\n"
    assert path.stat().st_size == before
    assert main(prune) == 0
    printed = capfd.readouterr()
    assert printed.out == f"run 2 deleted: 1 query in proteins.db, begun {began} UTC\n"
    assert path.stat().st_size < 0.75 * before
    assert printed.err == f"swsearch: 2 runs in {path}: {path.stat().st_size / 1e6:.3g} MB\n"
    with Store(path) as opened:
        assert [run.id for run in opened.runs.all()] == [1, 3]
        assert list(opened.results.queries(3)) == [make_query(0, n_hits=2000)]
        assert opened.runs.start(RUN) == 4


def test_pruning_a_staged_store_publishes_a_smaller_one(tmp_path, capfd, monkeypatch):
    (tmp_path / "node").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "node"))
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True) as opened:
        for _ in range(2):
            opened.results.add(opened.runs.start(RUN), make_query(0, n_hits=2000))
            opened.runs.finish(opened.runs.newest().id)
    before = path.stat().st_size
    assert main(["runs", "prune", "--store", str(path), "--keep", "1", "--stage-store", "always"]) == 0
    assert path.stat().st_size < 0.6 * before
    assert capfd.readouterr().out.startswith("run 1 deleted: ")


def test_a_store_that_is_being_written_keeps_its_size(tmp_path):
    path = tmp_path / "hits.sqlite"
    with Store(path, create=True, busy_seconds=0.01) as opened, Store(path) as other:
        opened.results.add(opened.runs.start(RUN), make_query(0))
        with other.whole():
            other.runs.start(RUN)
            with pytest.raises(StoreError, match="another process is writing to it"):
                opened.compact()
        assert len(opened.runs.all()) == 2


@pytest.mark.parametrize("options", [[], ["--older-than", "30"], ["--older-than", "d"], ["--older-than", "-3d"]])
def test_a_pruning_without_a_limit_is_refused(tmp_path, capfd, options):
    path = tmp_path / "hits.sqlite"
    Store(path, create=True).close()
    assert main(["runs", "prune", "--store", str(path), *options]) == 1
    error = capfd.readouterr().err
    assert ("such as 12h, 30d or 8w" if options else "say which runs to delete: --older-than 30d") in error
