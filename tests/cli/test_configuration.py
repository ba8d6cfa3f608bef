"""Defaults of options: command line before environment before file before built-in, and what is refused.

Expected values: by hand, and commands with the same values on the command line.
"""

import json

import pytest

from tests.cli.conftest import DATA, QUERIES


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Write a configuration file and let the program use it."""

    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        monkeypatch.setenv("SWSEARCH_CONFIG", str(path))
        return path

    return write


@pytest.fixture
def sources(swsearch):
    """The value, the source and the place of each option of a command."""

    def of(*command):
        document = json.loads(swsearch("config", *command, "--format", "json").out)
        return {row["option"]: (row["value"], row["source"], row["place"]) for row in document["options"]}

    return of


def test_the_command_line_precedes_the_environment_the_file_and_the_default(
    swsearch, configured, sources, monkeypatch, few_proteins_db
):
    def n_hits(*options):
        found = json.loads(swsearch("query", QUERIES, few_proteins_db, "-f", "json", "-q", *options).out)
        top = found["parameters"]["top"]
        assert min(top, found["database"]["n_subjects"]) == max(len(query["hits"]) for query in found["queries"])
        return top

    monkeypatch.setenv("SWSEARCH_EVALUE", "1e9")
    assert n_hits() == 100
    path = configured("# mine\ntop = 4\n")
    assert n_hits() == 4
    assert sources()["--top"] == (4, "file", f"{path}, line 2")
    configured("top = 4\n[query]\ntop = 3\n")
    assert n_hits() == 3
    assert sources()["--top"] == (3, "file", f"{path}, line 3")
    assert sources("batch")["--top"] == (4, "file", f"{path}, line 1")
    monkeypatch.setenv("SWSEARCH_TOP", "2")
    assert n_hits() == 2
    assert sources()["--top"] == (2, "environment", "SWSEARCH_TOP")
    assert n_hits("--top", 1) == 1
    assert sources()["--ties"] == ("cut", "built-in", None)


def test_defaults_of_searches_do_not_narrow_reports(swsearch, configured, few_proteins_db):
    searched = swsearch("query", QUERIES, few_proteins_db, "--top", 5, "-f", "blast6", "-q").out
    configured("top = 1\nevalue = 1e-30\nmin-identity = 90\n[report]\nformat = 'blast6'\n")
    assert swsearch("report", "latest").out == searched


def test_a_default_taxonomy_counts_where_taxa_are_needed(swsearch, configured, tmp_path, few_proteins_db):
    """Expected: what the command without this default prints; on the command line, the option is refused."""
    search = ("query", QUERIES, few_proteins_db, "--store", tmp_path / "s.sqlite", "-f", "blast6", "-q")
    usual = swsearch(*search)
    missing = tmp_path / "missing.tar.gz"
    tables = "".join(f'[{name}]\ntaxonomy = "{missing}"\ntaxid_map = "{missing}"\n' for name in ("query", "report"))
    configured(tables)
    assert swsearch(*search) == usual
    assert swsearch("report", "latest", "--store", tmp_path / "s.sqlite", "-f", "blast6").out == usual.out
    for needed in (["--taxid", "9606"], ["--fields", "std sscinames"]):
        assert str(missing) in swsearch(*search, *needed).error
    assert "leave them out" in swsearch(*search, "--taxonomy", missing).error


DEPENDENT = [
    ("inclusion_evalue = 0.001", "--inclusion-evalue 0.001", "--format json --iterations 2"),
    ("mask_mode = 'hard'", "--mask-mode hard", "--format json --mask seg"),
    ("genetic_code = 11", "--genetic-code 11", "--format json --translate query --alphabet dna"),
    ("max_intron = 5000", "--max-intron 5000", ""),
    (f"[query]\ncontexts = '{DATA / 'contexts.lib'}'", f"--contexts {DATA / 'contexts.lib'}", "--sensitive"),
    ("[query]\nfields = 'sseqid'", "--fields sseqid", "--format blast6"),
    ("[query]\nlca_top = 5", "--lca-top 5", ""),
    ("[query]\naligned = true", "--aligned", "--format fasta"),
    ("[query]\nflank = 3", "--flank 3", "--format fasta"),
    ("[query]\nmsa_max_identity = 20", "--msa-max-identity 20", "--format a3m"),
]
"""A default, the same on the command line, and an option with which it counts, unless that needs other data."""


@pytest.mark.parametrize(("text", "given", "needed"), DEPENDENT)
def test_a_default_that_needs_another_option_counts_only_with_it(
    swsearch, configured, tmp_path, few_proteins_db, text, given, needed
):
    """Expected: the command without the default, and with the same on the command line, which alone is refused."""
    (tmp_path / "q.fa").write_text(f">q\n{'ATGAAAGTTCTGGCTGCTGGTATCGTTGGTCTGCTGCTGGCTCAATGG' * 2}\n")
    query = tmp_path / "q.fa" if "dna" in needed else QUERIES
    search = ("query", query, few_proteins_db, "--store", "none", "-q", "--evalue", 1000, "--top", 3)
    other = "tsv" if "lca" in text else "jsonl"
    plain = ("query", QUERIES, few_proteins_db, "--store", "none", "-q", "--format", other)
    usual, with_given = swsearch(*plain), swsearch(*search, *needed.split(), *given.split())
    assert given[:5] in swsearch(*plain, *given.split()).refusal
    configured(text)
    assert swsearch(*plain) == usual
    if needed:
        assert swsearch(*search, *needed.split()) == with_given
        configured("")
        assert swsearch(*search, *needed.split()).printed != with_given.printed


def test_a_run_is_not_resumed_with_another_default(swsearch, configured, few_proteins_db):
    """The run stores the value that it was searched with."""
    configured("evalue = 0.001\n")
    assert swsearch("batch", QUERIES, few_proteins_db, "-q").code == 0
    shown = json.loads(swsearch("runs", "show", 1, "-f", "json").out)
    assert shown["run"]["parameters"]["evalue"] == 0.001
    configured("evalue = 0.01\n")
    assert "--evalue differs" in swsearch("batch", QUERIES, few_proteins_db, "--resume", 1).error


def test_flags_and_stores_have_defaults(swsearch, configured, tmp_path, few_proteins_db):
    configured(f"quiet = true\nstore = '{tmp_path / 'mine.sqlite'}'\n")
    assert swsearch("query", QUERIES, few_proteins_db, "--format", "blast6").err == ""
    assert json.loads(swsearch("runs", "list", "-f", "json").out)["store"] == str(tmp_path / "mine.sqlite")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\nthread = 2", "line 2: no default 'thread' can stand outside of a command's table; 'threads' is similar"),
        ("format = 'tsv'", "line 1: no default 'format' can stand outside of a command's table"),
        ("[db.info]\nfromat = 1", "line 2: `swsearch db info` has no option 'fromat'; 'format' is similar"),
        ("[quary]\ntop = 1", "line 1: there is no command 'quary'; 'query' is similar"),
        ("threads = 'many'", "line 1: 'many' is not a value of --threads: 'many' is not a whole number"),
        ("threads = true", "line 1: 'True' is not a value of --threads"),
        ("threads = [1]", "line 1: '[1]' is not a value of --threads"),
        ("threads =", "mine.toml is not TOML"),
    ],
)
def test_what_does_not_exist_is_refused_with_file_and_line(swsearch, configured, few_proteins_db, text, answer):
    path = configured(text)
    outcome = swsearch("db", "verify", few_proteins_db)
    assert answer in outcome.error
    assert str(path) in outcome.error
    assert outcome.out == ""


def test_an_error_about_a_default_names_its_place(swsearch, configured, monkeypatch, few_proteins_db):
    """Also where the program finds the error late; an option of the command line has no other place."""
    search = ("query", QUERIES, few_proteins_db, "--store", "none")
    path = configured("min-identity = 200\n[query]\nformat = 'docx'\n")
    problem = "--min-identity 200: choose a percentage, 0 to 100"
    assert swsearch(*search, "-f", "table").error == f"swsearch: error: {path}, line 1: {problem}"
    assert swsearch(*search, "-f", "table", "--min-identity", 200).error == f"swsearch: error: {problem}"
    configured("")
    for name, value, rest in (("THREADS", "0", "at least 1 thread"), ("STAGE_STORE", "x", "choose auto, always,")):
        monkeypatch.setenv(f"SWSEARCH_{name}", value)
        said = swsearch(*search).error
        assert said.startswith(f"swsearch: error: SWSEARCH_{name}: --{name.lower().replace('_', '-')} ")
        assert rest in said
        monkeypatch.delenv(f"SWSEARCH_{name}")
    monkeypatch.setenv("SWSEARCH_STORE", "s.sqlite")
    assert swsearch(*search[:3], "-q").code == 0
    assert swsearch("report", 7).error.startswith(
        "swsearch: error: s.sqlite has no run '7'; `swsearch runs list --store "
    )


def test_one_database_is_a_list_too(swsearch, configured):
    path = configured("[query]\ndb = 'a.db'")
    answer = f"{path}, line 2: 'a.db' is not a value of --db; give a list, such as [\"a.db\"]"
    assert answer in swsearch("query", QUERIES).error


def test_a_missing_file_that_was_named_and_a_wrong_variable_are_answered(swsearch, monkeypatch, few_proteins_db):
    monkeypatch.setenv("SWSEARCH_THREADS", "0.5")
    assert "SWSEARCH_THREADS: '0.5' is not a value of --threads" in swsearch("db", "verify", few_proteins_db).error
    monkeypatch.delenv("SWSEARCH_THREADS")
    monkeypatch.setenv("SWSEARCH_TREADS", "1")
    assert "warning: SWSEARCH_TREADS is not a variable of this program" in swsearch("config").err
    monkeypatch.setenv("SWSEARCH_CONFIG", "none.toml")
    assert "SWSEARCH_CONFIG=none.toml: No such file or directory" in swsearch("engines").error


def test_the_file_of_the_user_is_found_by_xdg(swsearch, tmp_path, monkeypatch, sources):
    """Source: the XDG Base Directory Specification."""
    monkeypatch.delenv("SWSEARCH_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert sources()["--threads"] == (None, "built-in", None)
    path = tmp_path / "config" / "swsearch" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("threads = 3\n")
    assert sources()["--threads"] == (3, "file", f"{path}, line 1")
