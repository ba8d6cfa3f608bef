"""Several databases on the command line: which arguments they are, what is stored, resumed and reported.

Expected values: the same command with the database of the concatenated FASTA files, whose folder has the name that
reports print for all of them; the messages are written by hand.
"""

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, QUERIES, Outcome

TOGETHER = "together/a.db b.db c.db"
LOOK = ["--evalue", "1000", "--quiet"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, few_proteins_db: Path) -> Path:
    """Three databases with their FASTA files, one of them in slices, and the database of all their sequences."""
    from swsearch.cli.app import main

    folder = tmp_path_factory.mktemp("several")
    (folder / "together").mkdir()
    records = (few_proteins_db.parent / "few.fasta").read_text().split(">")[1:]
    copies = [record.replace("|", "-copy|", 1) for record in records[::3]]
    parts = {"a": records[:30], "b": copies, "c": records[30:]}
    for name, part in parts.items():
        (folder / f"{name}.fa").write_text("".join(f">{record}" for record in part))
        slices = ["--slices", "2"] if name == "b" else []
        assert main(["index", str(folder / f"{name}.fa"), "-o", str(folder / f"{name}.db"), "-q", *slices]) == 0
    files = [str(folder / f"{name}.fa") for name in parts]
    assert main(["index", *files, "-o", str(folder / TOGETHER), "-q"]) == 0
    return folder


@pytest.fixture
def folder(swsearch, tmp_path: Path, made: Path) -> Path:
    """The working folder with these databases; files are shared, and no test changes them."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, copy_function=os.link)
    (tmp_path / "q.fa").symlink_to(QUERIES)
    return tmp_path


def first_queries(n: int) -> str:
    return "".join(f">{record}" for record in QUERIES.read_text().split(">")[1 : n + 1])


def rows(outcome: Outcome) -> list[str]:
    return outcome.printed.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ["q.fa", "a.db", "b.db", "c.db"],
        ["q.fa", "a.db", "b.db", "--db", "c.db"],
        ["q.fa", "a.db", "--db", "b.fa", "--db", "c.db"],
        ["q.fa", "--db", "a.fa", "--db", "b.fa", "--db", "c.fa"],
        ["--db", "a.db", "q.fa", "--db=b.db", "--db", "c.db"],
        ["-query", "q.fa", "-db", "a.db b.db c.db"],
        ["-db", "a.fa  b.db 'c.db'", "-query", "q.fa"],
    ],
    ids=" ".join,
)
def test_databases_are_named_in_several_ways(swsearch, folder, words):
    """Packed databases that stand last, --db, and BLAST's -db; their order is that of equal hits."""
    options = [*LOOK, "--top", "5", "--ties", "all", "--format", "blast6", "--store", "none"]
    expected = rows(swsearch("query", "q.fa", TOGETHER, *options))
    assert len(expected) > 35
    assert rows(swsearch("query", *words, *options)) == expected


@pytest.mark.thorough
def test_a_database_whose_name_has_a_blank_is_one(swsearch, folder):
    options = [*LOOK, "--format", "blast6", "--store", "none"]
    expected = rows(swsearch("query", "q.fa", TOGETHER, *options))
    assert rows(swsearch("query", "-query", "q.fa", "-db", TOGETHER, *options)) == expected


@pytest.mark.thorough
def test_two_query_files_and_two_databases(swsearch, folder):
    """With --db, a sequence file that stands last is a query file."""
    (folder / "r.fa").write_text((folder / "c.fa").read_text()[:400])
    options = [*LOOK, "--format", "blast6", "--store", "none"]
    expected = rows(swsearch("query", "q.fa", "r.fa", "a.db", "b.db", *options))
    assert rows(swsearch("query", "q.fa", "r.fa", "--db", "a.db", "--db", "b.db", *options)) == expected
    alone = rows(swsearch("query", "q.fa", "a.db", "b.db", *options))
    assert expected[: len(alone)] == alone
    assert len(expected) > len(alone)


@pytest.mark.parametrize("form", ["xml", "xml2", "json2", "table", "pairwise", "html", "tsv", "sam", "blast7"])
def test_reports_are_those_of_the_concatenation(swsearch, folder, form):
    """Whole bytes, with the names of the databases side by side as BLAST prints them."""
    (folder / "three.fa").write_text(first_queries(3))
    found = []
    for databases in ([TOGETHER], ["a.db", "b.db", "c.db"]):
        assert swsearch("query", "three.fa", *databases, *LOOK, "--format", form, "--out", "out").code == 0
        found.append((folder / "out").read_bytes())
        assert swsearch("report", "latest", "--format", form, "--out", "out").code == 0
        assert (folder / "out").read_bytes() == found[-1]
    assert found[0] == found[1]


@pytest.mark.thorough
def test_a_profile_searches_several_databases(swsearch, folder):
    """The checkpoints of rounds in several databases are those of the rounds in all their sequences."""
    (folder / "two.fa").write_text(first_queries(2))
    checkpoints = []
    for databases in ([TOGETHER], ["a.db", "b.db", "c.db"]):
        rounds = ["--iterations", "2", "--save-pssm", "found.asn", "--store", "none", "--quiet"]
        assert swsearch("query", "two.fa", *databases, *rounds).code == 0
        checkpoints.append((folder / "found.asn").read_bytes())
    assert checkpoints[0] == checkpoints[1]
    options = ["--in-pssm", "found.asn", *LOOK, "--format", "blast6", "--store", "none"]
    expected = rows(swsearch("query", TOGETHER, *options))
    assert expected
    assert rows(swsearch("query", "a.db", "b.db", "c.db", *options)) == expected
    assert rows(swsearch("query", *options, "--db", "a.db", "--db", "b.db", "--db", "c.db")) == expected
    assert rows(swsearch("query", "-in_pssm", "found.asn", "-db", "a.db b.db c.db", *options[2:])) == expected


@pytest.mark.thorough
def test_scores_of_several_databases_are_plotted_and_the_plan_is_shown(swsearch, folder):
    for number, databases in enumerate(([TOGETHER], ["a.db", "b.db", "c.db"])):
        plotted = swsearch("query", "q.fa", *databases, "--plot", f"{number}.png", "--store", "none", "--format", "xml")
        assert plotted.code == 0, plotted.err
    assert (folder / "0.png").read_bytes() == (folder / "1.png").read_bytes()
    assert rows(swsearch("query", "q.fa", "a.db", "b.db", "--explain"))


# --- the store ---


@pytest.mark.thorough
def test_a_stored_run_says_which_databases_it_searched(swsearch, folder):
    """By hand: a path and a digest for each, as `db info` prints them; the store has its old schema."""
    assert swsearch("query", "q.fa", "a.db", "b.db", *LOOK, "--store", "s.sqlite").code == 0
    digests = [json.loads(swsearch("db", "info", name, "--format", "json").out)["digest"] for name in ("a.db", "b.db")]
    shown = rows(swsearch("runs", "show", "1", "--store", "s.sqlite"))
    first = shown.index(f"database      {folder}/a.db")
    assert shown[first : first + 5] == [
        f"database      {folder}/a.db",
        f"digest        {digests[0]}",
        f"database      {folder}/b.db",
        f"digest        {digests[1]}",
        "together      50 protein sequences",
    ]
    assert "  a.db b.db  swsearch query q.fa a.db b.db" in rows(swsearch("runs", "list", "--store", "s.sqlite"))[1]
    found = json.loads(swsearch("runs", "show", "1", "--store", "s.sqlite", "--format", "json").out)["run"]
    assert found["databases"] == [
        {"name": f"{name}.db", "digest": digest, "path": f"{folder}/{name}.db"}
        for name, digest in zip("ab", digests, strict=True)
    ]
    assert found["database"]["name"] == "a.db b.db"
    assert found["database"]["n_subjects"] == 50
    report = json.loads(swsearch("report", "1", "--store", "s.sqlite", "--format", "json").out)
    assert report["databases"] == [{key: one[key] for key in ("name", "digest")} for one in found["databases"]]
    with sqlite3.connect(folder / "s.sqlite") as store:
        stored = store.execute("SELECT database_paths, database_digests FROM runs").fetchall()
    store.close()
    assert stored == [(json.dumps([f"{folder}/a.db", f"{folder}/b.db"]), json.dumps(digests))]


@pytest.mark.thorough
def test_a_run_is_resumed_with_its_databases_alone(swsearch, folder):
    """In their order; a compaction of one of them changes nothing."""
    shutil.rmtree(folder / "c.db")
    assert swsearch("index", "c.fa", "-o", "c.db", "-q").code == 0
    last = (folder / "c.fa").read_text().split(">")[-1].split()[0]
    assert swsearch("db", "remove", "c.db", last).code == 0
    batch = ["batch", "q.fa", "--store", "s.sqlite", *LOOK]
    assert swsearch(*batch, "a.db", "c.db", "--shard", "1/2").code == 0
    assert swsearch("db", "compact", "c.db").code == 0
    done = swsearch(*batch, "a.db", "c.db", "--resume", "1")
    assert done.out == "run 1 in s.sqlite: 3 queries done, 4 were there before, 0 failed\n"
    for databases in (["c.db", "a.db"], ["a.db"], ["a.db", "b.db"], ["a.db", "c.db", "b.db"]):
        refused = swsearch(*batch, *databases, "--resume", "1")
        assert "run 1 of s.sqlite is of another search: database differs" in refused.refusal
    fresh = swsearch(*batch, "c.db", "a.db", "--resume", "latest")
    assert fresh.out.startswith("run 2 in s.sqlite: 7 queries done")


@pytest.mark.thorough
def test_reports_read_subjects_from_several_databases(swsearch, folder):
    """Whole sequences of hits, while the databases are where they were and after they were moved."""
    for databases, name in ((["a.db", "b.db", "c.db"], "s"), ([TOGETHER], "t")):
        assert swsearch("query", "q.fa", *databases, *LOOK, "--store", f"{name}.sqlite").code == 0
    report = ["report", "latest", "--format", "fasta", "--store", "s.sqlite"]
    expected = rows(swsearch("report", "latest", "--format", "fasta", "--store", "t.sqlite"))
    assert len(expected) > 100
    assert rows(swsearch(*report)) == expected
    (folder / "b.db").rename(folder / "moved.db")
    lost = swsearch(*report)
    assert "run 1: this report needs the databases of the run; " in lost.error
    assert "b.db does not exist; name each database with --database, in this order" in lost.error
    named = ["--database", "a.db", "--database", "moved.db", "--database", "c.db"]
    assert rows(swsearch(*report, *named)) == expected
    assert (
        "moved.db has other content than the database that was searched"
        in swsearch(*report, *named[2:], *named[:2]).error
    )
    assert "moved.db: the search was of 3 databases; name each" in swsearch(*report, *named[2:4]).error
    unused = swsearch("report", "latest", "--store", "s.sqlite", *named)
    assert "--database a.db: this report is written from the store alone" in unused.error


# --- databases of the configuration file ---


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "searched"),
    [
        ("q.fa", "q.fa a.db b.db"),
        ("q.fa r.fa", "q.fa r.fa --db a.db --db b.db"),
        ("q.fa c.db", "q.fa c.db"),
        ("q.fa --db c.fa", "q.fa c.db"),
        ("-query q.fa -db c.fa", "q.fa c.db"),
        ("q.fa c.db --db a.db", "q.fa c.db a.db"),
    ],
)
def test_databases_of_the_command_line_replace_those_of_the_configuration(
    swsearch, folder, monkeypatch, words, searched
):
    """Expected values: the same search with all databases on the command line, without a configuration."""
    (folder / "r.fa").write_text((folder / "c.fa").read_text()[:400])
    options = [*LOOK, "--format", "blast6", "--store", "none"]
    expected = rows(swsearch("query", *searched.split(), *options))
    (folder / "mine.toml").write_text("[query]\ndb = ['a.db', 'b.db']\n")
    monkeypatch.setenv("SWSEARCH_CONFIG", str(folder / "mine.toml"))
    assert rows(swsearch("query", *words.split(), *options)) == expected


@pytest.mark.thorough
def test_the_command_of_a_refusal_names_no_database_of_the_configuration(swsearch, folder, monkeypatch):
    (folder / "mine.toml").write_text("[query]\ndb = ['a.db']\n")
    monkeypatch.setenv("SWSEARCH_CONFIG", str(folder / "mine.toml"))
    refused = swsearch("query", "c.db", "q.fa", *LOOK, "--store", "none")
    assert refused.error == "swsearch: error: c.db is a database, which stands behind the query files: " + (
        "swsearch query q.fa c.db"
    )


# --- what is refused ---


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("q.fa a.db a.db", 1, "a.db is named twice; its subjects would count twice: name each database once"),
        ("q.fa a.db ./a.db", 1, "a.db is named twice; its subjects would count twice"),
        ("q.fa a.db --db a.fa", 1, "a.fa has the content of a.db"),
        ("q.fa a.db dna.db", 1, "dna.db is dna, a.db is protein; databases of one alphabet are searched together"),
        ("a.db q.fa b.db", 2, "a.db is a database, which stands behind the query files: swsearch query q.fa a.db b.db"),
        ("q.fa a.db --db - --in-pssm -", 1, "<stdin> is named twice and can be read only once"),
        ("q.fa --db a --db b --server http://127.0.0.1:9", 2, "a server searches one database at a time"),
    ],
)
def test_what_cannot_be_searched_together_is_one_line(swsearch, folder, words, code, message):
    assert swsearch("index", DATA / "lambda_phage.fasta", "-o", "dna.db", "-q").code == 0
    refused = swsearch("query", *words.split(), "--store", "none")
    assert (refused.code, refused.out) == (code, "")
    assert message in refused.error
