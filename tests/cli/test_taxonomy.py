"""Organisms on the command line: stored with a database, in filters and in the reports of searches and stored runs.

Expected names are those of the excerpt of NCBI's taxonomy in ``data/``, by hand.
"""

import json

import pytest

from tests.cli.conftest import DATA
from tests.taxonomy.dumps import EXCERPT, with_changes

LETTERS = "MKVLAAGIVGLLLAQWERTYMKVLAAGIVGLLLAQWERTYHHEDKN"
COLUMNS = "sseqid staxids sscinames scomnames"
HUMAN = "h 9606 Homo sapiens human"
MOUSE = "m 10090 Mus musculus house mouse"


@pytest.fixture
def inputs(tmp_path):
    """A query; subjects of human, mouse and an unknown organism; their map; a taxdump with merged ids."""
    (tmp_path / "q.fa").write_text(f">q\n{LETTERS}\n")
    (tmp_path / "s.fa").write_text(f">h\n{LETTERS}\n>m\n{LETTERS[2:]}\n>x OX=562\n{LETTERS[5:]}\n")
    (tmp_path / "map").write_text("h 4000010\nm 10090\n")
    with_changes(tmp_path / "dump")
    return tmp_path


def lines(outcome):
    """Return the rows of a table, with blanks for tabs."""
    return [line.replace("\t", " ") for line in outcome.printed.splitlines()]


def test_a_database_with_a_taxonomy_needs_no_other_file(swsearch, inputs):
    made = swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map")
    # 32 taxa from the root to human, and 9 more to mouse
    assert "db: 41 taxa; 2 of 3 sequences with a taxonomy id" in made.err
    assert "1 taxonomy id was merged into others, which are used: 4000010 into 9606" in made.err
    assert "taxonomy    41 taxa; 2 of 3 sequences with a taxonomy id" in swsearch("db", "info", "db").out
    asked = swsearch("query", "q.fa", "db", "--format", "blast6", "--fields", COLUMNS)
    assert lines(asked) == [HUMAN, MOUSE, "x N/A N/A N/A"]
    assert lines(swsearch("report", "latest", "--format", "blast6", "--fields", COLUMNS)) == lines(asked)
    report = ["query", "q.fa", "db", "--format", "tsv", "--fields", COLUMNS, "--store", "none"]
    assert lines(swsearch(*report, "--taxid", "9989"))[1:] == [MOUSE]
    found = json.loads(swsearch("report", "latest", "--format", "json").out)
    assert found["queries"][0]["hits"][0]["organisms"] == ["Homo sapiens"]
    assert len(found["parameters"]["taxonomy_digest"]) == 64
    assert swsearch("batch", "q.fa", "db", "--store", "b.sqlite", "--fields", COLUMNS, "--format", "csv").code == 0


def test_a_taxonomy_is_stored_and_replaced_later(swsearch, inputs):
    assert swsearch("index", "s.fa", "-o", "db").code == 0
    assert "taxonomy    none" in swsearch("db", "info", "db").out
    assert swsearch("query", "q.fa", "db").code == 0
    stored = swsearch("db", "taxonomy", "db", "dump", "--taxid-map", "map")
    assert (stored.code, stored.out) == (0, "")
    again = swsearch("report", "latest", "--format", "blast6", "--fields", COLUMNS)
    assert lines(again) == [HUMAN, MOUSE, "x N/A N/A N/A"]
    assert swsearch("db", "taxonomy", "db", "dump", "--quiet").err == ""
    assert lines(swsearch("report", "latest", "--format", "blast6", "--fields", COLUMNS))[2] == (
        "x 562 Escherichia coli Escherichia coli"
    )
    added = swsearch("db", "add", "db", "q.fa")
    assert "what was added has the taxonomy ids of its headers" in added.err


def test_a_run_without_its_database_is_told_and_reported_from_headers(swsearch, inputs):
    assert swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map").code == 0
    assert swsearch("query", "q.fa", "db").code == 0
    (inputs / "db").rename(inputs / "moved")
    report = ["report", "latest", "--format", "blast6", "--fields"]
    gone = swsearch(*report, "sseqid staxids")
    assert lines(gone) == ["h N/A", "m N/A", "x 562"]
    assert "db does not exist; taxonomy ids are those that headers state; --database names" in gone.err
    assert "needs the database of the run" in swsearch(*report, COLUMNS).error
    assert lines(swsearch(*report, COLUMNS, "--database", "moved"))[0] == HUMAN
    given = swsearch(*report, COLUMNS, "--taxonomy", "dump")
    assert lines(given)[2] == "x 562 Escherichia coli Escherichia coli"
    assert "leave it out" in swsearch("report", "latest", "--database", "moved").error


def test_a_map_and_a_taxdump_serve_a_search_and_its_report(swsearch, inputs, monkeypatch):
    assert swsearch("index", "s.fa", "-o", "db").code == 0
    query = ["query", "q.fa", "db", "--format", "blast6", "--fields", COLUMNS]
    assert "needs a taxonomy; --taxonomy or SWSEARCH_TAXONOMY names one" in swsearch(*query).error
    assert lines(swsearch(*query, "--taxonomy", "dump"))[0] == "h N/A N/A N/A"
    mapped = swsearch(*query, "--taxonomy", "dump", "--taxid-map", "map")
    assert lines(mapped) == [HUMAN, MOUSE, "x N/A N/A N/A"]
    assert "4000010 into 9606" in mapped.err
    assert "4000010" not in swsearch(*query, "--taxonomy", "dump", "--taxid-map", "map", "--quiet").err
    monkeypatch.setenv("SWSEARCH_TAXONOMY", str(inputs / "dump"))
    assert lines(swsearch(*query, "--taxid-map", "map")) == lines(mapped)
    report = ["report", "latest", "--format", "blast6", "--fields", COLUMNS]
    assert lines(swsearch(*report, "--taxid-map", "map")) == lines(mapped)
    filtered = swsearch(*query, "--taxid-map", "map", "--taxid", "40674")
    assert lines(filtered) == [MOUSE, HUMAN] or lines(filtered) == [HUMAN, MOUSE]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("report latest --taxonomy dump", "format table has none, leave them out"),
        ("report latest --format blast6 --taxid-map map", "format blast6 with these columns has none"),
        ("batch q.fa db --taxonomy dump --store s.sqlite", "there is no report, leave them out"),
        ("msa q.fa db --taxonomy dump", "serve --taxid"),
        ("index s.fa -o new --taxid-map map", "give the taxdump that has its ids with --taxonomy"),
        ("index s.fa -o new --taxonomy map", "line 1: a node's line is"),
        ("db taxonomy nosuch dump", "nosuch does not exist"),
        ("db taxonomy db nosuch", "error: TAXDUMP nosuch: No such file"),
    ],
)
def test_options_that_cannot_be_are_one_clear_line(swsearch, inputs, command, words):
    assert swsearch("index", "s.fa", "-o", "db").code == 0
    assert swsearch("query", "q.fa", "db").code == 0
    before = sorted(inputs.iterdir())
    outcome = swsearch(*command.split())
    assert words in outcome.refusal
    assert sorted(inputs.iterdir()) == before


def test_the_real_proteins_have_the_organisms_of_their_map(swsearch):
    """Source: the names after OS= in the headers of UniProt, for the species of the excerpt."""
    index = ["index", DATA / "proteins.fasta.gz", "-o", "db", "--taxonomy", EXCERPT]
    assert "158 of 1,500 sequences" in swsearch(*index, "--taxid-map", DATA / "taxids.tsv").err
    query = ["query", DATA / "queries.fasta", "db", "--taxid", "7711", "--format", "tsv", "--top", "40"]
    rows = lines(swsearch(*query, "--fields", "sscinames stitle"))[1:]
    assert len(rows) > 10
    for row in rows:
        name = row.split(" tr|")[0].split(" sp|")[0]
        assert f"OS={name}" in row


def test_the_variable_counts_only_where_a_taxonomy_is_needed(swsearch, inputs, monkeypatch):
    """A search without taxa is made as before, and a stored taxonomy precedes the variable."""
    assert swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map").code == 0
    monkeypatch.setenv("SWSEARCH_TAXONOMY", str(inputs / "nosuch"))
    assert swsearch("query", "q.fa", "db").code == 0
    assert lines(swsearch("query", "q.fa", "db", "--format", "blast6", "--fields", COLUMNS))[0] == HUMAN
    assert swsearch("batch", "q.fa", "db", "--store", "b.sqlite").code == 0
    assert "SWSEARCH_TAXONOMY" in swsearch("query", "q.fa", "s.fa", "--format", "blast6", "--fields", COLUMNS).error


# --- the taxon of a query ---


def test_queries_are_assigned_to_the_taxon_of_their_best_hits(swsearch, inputs):
    """By hand: human and mouse are Euarchontoglires, with the third subject they are cellular organisms."""
    assert swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map").code == 0
    (inputs / "map").write_text("h 9606\nm 10090\nx 562\n")
    asked = swsearch("query", "q.fa", "db", "--format", "lca")
    (line,) = lines(asked)
    assert line.split()[:2] == ["q", "314146"]
    assert lines(swsearch("report", "latest", "--format", "lca")) == [line]
    names = ["--format", "lca", "--fields", "qseqid,lca,lcaname"]
    assert lines(swsearch("report", "latest", *names, "--lca-top", "0")) == ["q 9606 Homo sapiens"]
    mapped = ["--taxonomy", "dump", "--taxid-map", "map", "--lca-top", "50"]
    assert lines(swsearch("report", "latest", *names, *mapped)) == ["q 131567 cellular organisms"]
    batch = swsearch("batch", "q.fa", "db", "--store", "b.sqlite", *names, *mapped)
    assert lines(batch) == ["q 131567 cellular organisms"]
    table = swsearch("report", "latest", "--format", "blast6", "--fields", "sseqid lca lcarank")
    assert lines(table) == ["h 314146 superorder", "m 314146 superorder", "x 314146 superorder"]


def test_a_list_that_is_cut_among_the_hits_that_count_is_told(swsearch, inputs):
    assert swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map").code == 0
    cut = swsearch("query", "q.fa", "db", "--top", "1", "--format", "lca")
    assert lines(cut)[0].split()[:2] == ["q", "9606"]
    assert "warning: 1 list was cut at --top 1 where hits still counted for the query's taxon" in cut.err
    assert "was cut" not in swsearch("report", "latest", "--format", "blast6").err
    assert "was cut" in swsearch("report", "latest", "--format", "csv", "--fields", "lca").err
    assert "was cut" not in swsearch("query", "q.fa", "db", "--format", "lca").err


def test_the_longer_sequence_of_a_pair_has_the_taxon_of_the_shorter_ones(swsearch, inputs):
    """By hand: the best pair of h is that with m; that with x, which is 3 of 44 residues shorter, is within 10 %."""
    (inputs / "map").write_text("h 9606\nm 10090\nx 562\n")
    assert swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map").code == 0
    asked = ["allpairs", "db", "--store", "none", "--format", "lca", "--fields", "qseqid lca"]
    assert lines(swsearch(*asked)) == ["h 131567", "m 562", "x 0"]
    assert lines(swsearch(*asked, "--lca-top", "0")) == ["h 10090", "m 562", "x 0"]


def test_reciprocal_best_hits_have_one_taxon_each_and_no_list_to_cut(swsearch, inputs):
    """By hand: q and h are equal, so each is the best hit of the other. There are no further hits to choose from."""
    assert swsearch("index", "s.fa", "-o", "db", "--taxonomy", "dump", "--taxid-map", "map").code == 0
    found = swsearch("rbh", "q.fa", "db", "--format", "lca", "--fields", "qseqid lca", "--store", "none")
    assert lines(found) == ["q 9606"]
    assert "was cut" not in found.err
    refused = swsearch("rbh", "q.fa", "db", "--format", "lca", "--lca-top", "5")
    assert refused.code == 2
    assert "no such option: --lca-top" in refused.error


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("report latest --lca-top 5", 1, "format table has no taxa of queries; give it with --format lca"),
        ("report latest --format tsv --lca-top 5", 1, "format tsv with these columns has no taxa of queries"),
        ("batch q.fa db --store b.sqlite --lca-top 5", 1, "--lca-top 5 is that of a report; say --format lca"),
        ("report latest --format lca --lca-top 101", 2, "101.0 is not in the range 0<=x<=100"),
        ("report latest --format lca", 1, "format lca with these columns needs a taxonomy"),
        ("report latest --format lca --fields sseqid", 1, "which has no sseqid; choose from qseqid"),
    ],
)
def test_taxa_of_queries_that_cannot_be_are_one_clear_line(swsearch, inputs, command, code, words):
    assert swsearch("index", "s.fa", "-o", "db").code == 0
    assert swsearch("query", "q.fa", "db").code == 0
    outcome = swsearch(*command.split())
    assert (outcome.code, outcome.out) == (code, "")
    assert words in outcome.error
