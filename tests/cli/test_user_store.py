"""The user's store: where runs are kept if no store is named, and searches that cannot be stored there.

Expected values: by hand, and reports of searches that are not stored.
"""

import stat

import pytest

from swsearch.store.store import Store
from tests.cli.conftest import QUERIES
from tests.processes import run_with_file_limit


@pytest.fixture
def expected(swsearch, few_proteins_db):
    """The report of a search that is not stored."""
    return swsearch("query", QUERIES, few_proteins_db, "--format", "blast6", "--store", "none").out


def test_a_search_leaves_no_file_where_it_was_called(swsearch, tmp_path, user_store, few_proteins_db, expected):
    found = swsearch("query", QUERIES, few_proteins_db, "--format", "blast6")
    assert found.out == expected
    assert f"stored as run 1 in {user_store}" in found.err
    assert list(tmp_path.iterdir()) == []
    assert swsearch("report", "latest", "--format", "blast6").out == expected


def test_nobody_else_can_read_the_folder_of_the_user_store(swsearch, user_store, few_proteins_db):
    """Source: the XDG Base Directory Specification, which asks for the mode 0700."""
    assert swsearch("query", QUERIES, few_proteins_db, "--quiet").code == 0
    for folder in (user_store.parent, user_store.parents[1]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_commands_that_only_read_make_no_folder(swsearch, user_store):
    for command in (["runs", "list"], ["report", "latest"], ["runs", "delete", "1"], ["tokens", "list"]):
        assert f"there is no store {user_store}; `swsearch query` makes one" in swsearch(*command).error
    assert not user_store.parents[1].exists()


def test_commands_that_make_a_store_make_the_folder(swsearch, user_store, few_proteins_db):
    assert swsearch("query", QUERIES, few_proteins_db, "--store", "one.sqlite", "--quiet").code == 0
    assert swsearch("runs", "merge", "one.sqlite").out.startswith(f"run 1 in {user_store}: 7 queries")
    assert swsearch("batch", QUERIES, few_proteins_db).out == f"run 2 in {user_store}: 7 queries done, 0 failed\n"


def test_latest_names_its_database_in_the_user_store_alone(swsearch, user_store, few_proteins_db):
    """Runs of several projects are in the user's store; a named store is that of one."""
    assert swsearch("query", QUERIES, few_proteins_db).code == 0
    with Store(user_store) as store:
        begun = f"{store.runs.get(1).started:%Y-%m-%d %H:%M}"
    said = f"swsearch: latest is run 1: 7 queries in few.db, begun {begun} UTC\n"
    assert swsearch("report", "latest").err == said
    assert swsearch("report", "1").err == ""
    user_store.rename("mine.sqlite")
    assert swsearch("report", "latest", "--store", "mine.sqlite").err == ""
    mine = swsearch("runs", "delete", "latest", "--store", "mine.sqlite")
    assert (mine.out, mine.err) == ("run 1 deleted\n", "")


def test_a_search_that_cannot_be_stored_prints_its_hits(swsearch, monkeypatch, few_proteins_db, expected):
    """The place of the folder is a file. Where a run is wanted, this is an error before the search."""
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null")
    query = ["query", QUERIES, few_proteins_db, "--format", "blast6"]
    for quiet in ([], ["--quiet"]):
        found = swsearch(*query, *quiet)
        assert (found.code, found.out) == (0, expected)
        assert found.err.count("nothing is stored: the folder /dev/null/swsearch cannot be created: Not a dir") == 1
        assert "stored as" not in found.err
    for wanted in ([*query, "--resume", "latest"], ["batch", *query[1:]], ["runs", "merge", "a.sqlite"]):
        refused = swsearch(*wanted)
        assert "the folder /dev/null/swsearch cannot be created" in refused.refusal
    assert swsearch(*query, "--store", "/dev/null/hits.sqlite").code == 1


def test_a_user_without_a_home_can_search(swsearch, monkeypatch, few_proteins_db, expected):
    """A container's user that is in no list of users and has no HOME."""

    def unknown(*_):
        raise KeyError

    for variable in ("XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    found = swsearch("query", QUERIES, few_proteins_db, "--format", "blast6")
    assert (found.code, found.out) == (0, expected)
    assert "nothing is stored: this user has no home folder in which runs could be kept; name another" in found.err
    assert "this user has no home folder" in swsearch("runs", "list").error
    assert swsearch("query", QUERIES, few_proteins_db, "--store", "own.sqlite", "--quiet").code == 0
    assert swsearch("report", "latest", "--store", "own.sqlite").code == 0


@pytest.mark.parametrize("content", [b"no database at all, " * 100, None])
def test_a_damaged_or_foreign_store_does_not_hide_the_hits(swsearch, user_store, few_proteins_db, expected, content):
    """Another file, or a folder, in the place of the store."""
    user_store.parent.mkdir(parents=True)
    if content is None:
        user_store.mkdir()
    else:
        user_store.write_bytes(content)
    found = swsearch("query", QUERIES, few_proteins_db, "--format", "blast6")
    assert (found.code, found.out) == (0, expected)
    assert f"warning: nothing is stored: {user_store} is " in found.err
    assert swsearch("batch", QUERIES, few_proteins_db).code == 1


@pytest.mark.thorough
@pytest.mark.parametrize(("limit", "is_open"), [(60_000, False), (600_000, True)])
def test_a_disk_that_is_full_ends_the_storing_and_not_the_search(
    swsearch, tmp_path, user_store, few_proteins_db, limit, is_open
):
    """No file may grow beyond a limit. Queries that repeat others are copied from the store, or searched again."""
    records = QUERIES.read_text().split(">")[1:]
    (tmp_path / "q.fasta").write_text("".join(f">q{number} {records[number % 3]}" for number in range(40)))
    command = ["query", "q.fasta", few_proteins_db, "--format", "blast6", "--evalue", "1000", "--threads", "1"]
    expected = swsearch(*command, "--store", "none").out
    outcome = run_with_file_limit(command, tmp_path, limit)
    assert (outcome.returncode, outcome.stdout) == (0, expected), outcome.stderr
    warnings = [line for line in outcome.stderr.splitlines() if "warning" in line]
    assert len(warnings) == 1, outcome.stderr
    assert "stored as" not in outcome.stderr
    if is_open:
        with Store(user_store) as store:
            run = store.runs.get(1)
            assert 0 < run.n_queries < 40
            assert run.state == "interrupted"
        assert f"warning: no more than {run.n_queries} quer" in warnings[0]
    else:
        assert f"warning: nothing is stored: {user_store}: " in warnings[0]


def test_a_staged_user_store_that_cannot_be_published_does_not_hide_the_hits(
    swsearch, spawn_paused, user_store, few_proteins_db, expected
):
    """Another machine replaces the store while the last query is searched."""
    assert swsearch("query", QUERIES, few_proteins_db, "--quiet").code == 0
    command = ["query", QUERIES, few_proteins_db, "--format", "blast6", "--stage-store", "always"]
    process = spawn_paused('Results, "add", 7', *command)
    with Store(user_store) as store:
        store.runs.delete(1)
    printed, errors = process.communicate("\n")
    assert (process.returncode, printed) == (0, expected), errors
    assert errors.count(f"warning: nothing is stored: {user_store} was deleted or replaced by another process") == 1
    assert "stored as" not in errors


def test_a_second_search_waits_for_the_one_that_has_staged_the_user_store(
    spawn_paused, spawn, user_store, few_proteins_db, expected
):
    command = ["query", QUERIES, few_proteins_db, "--format", "blast6", "--stage-store", "always", "--threads", "1"]
    first = spawn_paused('Results, "add", 3', *command)
    second = spawn(*command)
    line = next(line for line in second.stderr if "waiting" in line)
    assert (
        line
        == f"swsearch: waiting for process {first.pid}, which writes to {user_store}; --store names another store\n"
    )
    printed, errors = first.communicate("\n")
    assert (first.returncode, printed) == (0, expected), errors
    printed, errors = second.communicate()
    assert (second.returncode, printed) == (0, expected), errors
    with Store(user_store) as store:
        assert [(run.state, run.n_queries) for run in store.runs.all()] == [("finished", 7)] * 2


@pytest.mark.thorough
def test_searches_at_the_same_time_share_the_user_store(swsearch, spawn, user_store, few_proteins_db):
    searches = [spawn("query", QUERIES, few_proteins_db, "--quiet", "--threads", "1") for _ in range(4)]
    for search in searches:
        _, errors = search.communicate()
        assert (search.returncode, errors) == (0, "")
    with Store(user_store) as store:
        assert [(run.state, run.n_queries) for run in store.runs.all()] == [("finished", 7)] * 4


def test_a_batch_without_a_store_is_a_report(swsearch, tmp_path, user_store, few_proteins_db, expected):
    """A record that cannot be searched fails alone, as with a store."""
    (tmp_path / "q.fasta").write_text(QUERIES.read_text() + ">bad\nMKV1\n")
    command = ["batch", "q.fasta", few_proteins_db, "--store", "none", "--format", "blast6"]
    found = swsearch(*command)
    assert (found.code, found.out) == (1, expected)
    assert "swsearch: 7 queries done, 1 failed\n" in found.err
    assert swsearch(*command, "--out", "hits.tsv").out == "7 queries done, 1 failed\n"
    assert (tmp_path / "hits.tsv").read_text() == expected
    assert not user_store.exists()
