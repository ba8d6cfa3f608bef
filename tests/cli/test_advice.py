"""Messages for requests that cannot be fulfilled: what was given, what is wrong with it, and what would work.

The expected words are written by hand.
"""

import gzip

import pytest

from swsearch.cli.command import all_commands
from swsearch.engine.cuda.runtime.presence import look_for_gpus
from swsearch.options import offered
from tests.cli.conftest import DATA, QUERIES

# --- engines ---


def test_a_machine_without_a_gpu_hears_nothing_of_gpus(swsearch, protein_db):
    outcome = swsearch("query", QUERIES, protein_db, "--store", "none")
    assert outcome.code == 0
    missing = look_for_gpus().missing
    if missing == "there is no NVIDIA GPU":
        assert "swsearch: cpu engine (" in outcome.err
        for word in ("pip install", "PyCUDA", "cuda", "GPU"):
            assert word not in outcome.err
    shown = swsearch("engines").out.splitlines()
    assert not missing or shown[0].split(None, 1)[1] == f"{'built, not usable here':<24} {missing}"


# --- options of a few values ---


@pytest.mark.parametrize("command", [name for name in all_commands() if offered(name.split()[-1])])
def test_another_word_is_answered_with_the_choices(swsearch, command):
    """Source: the table of options; the words are checked before anything is opened."""
    for row in offered(command.split()[-1]):
        if row.choices:
            refused = swsearch(*command.split(), row.flags[0], "nonsense").refusal
            assert refused.startswith(f"swsearch: error: {row.flags[0]} nonsense: choose {row.choices[0]}")
            assert all(word in refused for word in row.choices)


# --- the order of queries and database ---


@pytest.mark.parametrize("command", ["query", "batch"])
@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ("p.db q.fa", "p.db is a database, which stands behind the query files: swsearch {} q.fa p.db"),
        (
            "q.fa p.db q.fa",
            "p.db is a database, which stands behind the query files: swsearch {} q.fa q.fa p.db; "
            "with q.fa as a database: swsearch {} q.fa p.db --db q.fa",
        ),
        ("p.db p.db", "p.db is a database, and there is no query file: swsearch {} QUERY… p.db"),
        ("p.db", "p.db is a database; give query files, or - for standard input, before it: swsearch {} QUERY… p.db"),
        ("q.fa", "give query files, or - for standard input, and then the database: swsearch {} q.fa DB"),
    ],
)
def test_the_right_order_is_shown(swsearch, tmp_path, few_proteins_db, command, files, advice):
    (tmp_path / "p.db").symlink_to(few_proteins_db)
    (tmp_path / "q.fa").symlink_to(QUERIES)
    outcome = swsearch(command, *files.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error == "swsearch: error: " + advice.replace("{}", command)


# --- environment ---


@pytest.mark.parametrize("none", ["none", "None"])
@pytest.mark.parametrize(
    "command",
    [
        ["runs", "list"],
        ["runs", "show", "latest"],
        ["runs", "delete", "1"],
        ["runs", "upgrade"],
        ["runs", "export", "latest", "--out", "copy.sqlite"],
        ["runs", "merge", "shard.sqlite"],
        ["report", "latest"],
        ["batch", QUERIES, "{db}"],
    ],
)
def test_no_store_is_no_store_where_one_is_needed(swsearch, tmp_path, monkeypatch, protein_db, command, none):
    arguments = [protein_db if argument == "{db}" else argument for argument in command]
    given = swsearch(*arguments, "--store", none)
    assert "--store none keeps no hits" in given.refusal
    assert "--store FILE" in given.error
    monkeypatch.setenv("SWSEARCH_STORE", none)
    from_environment = swsearch(*arguments)
    assert "SWSEARCH_STORE=none keeps no hits" in from_environment.refusal
    assert "--store FILE" in from_environment.error
    assert not list(tmp_path.iterdir())


def test_the_environment_may_say_that_queries_are_not_stored(swsearch, tmp_path, monkeypatch, protein_db):
    monkeypatch.setenv("SWSEARCH_STORE", "None")
    assert swsearch("query", QUERIES, protein_db).code == 0
    assert not list(tmp_path.iterdir())
    assert swsearch("query", QUERIES, protein_db, "--store", "hits.sqlite").code == 0
    assert "1,500" not in swsearch("runs", "list", "--store", "hits.sqlite").err
    assert (tmp_path / "hits.sqlite").exists()
    copied = swsearch("runs", "export", "latest", "--store", "hits.sqlite", "--out", "none")
    assert "--out 'none' keeps nothing" in copied.error


def test_an_empty_store_is_refused_and_an_empty_variable_counts_as_unset(
    swsearch, tmp_path, monkeypatch, user_store, protein_db
):
    for command in (["query", QUERIES, protein_db], ["runs", "list"]):
        assert "--store: the name is empty" in swsearch(*command, "--store", "").error
    monkeypatch.setenv("SWSEARCH_STORE", "")
    assert f"there is no store {user_store}; `swsearch query` makes one" in swsearch("runs", "list").error
    assert not list(tmp_path.iterdir())


# --- names of outputs ---


def test_the_name_of_a_file_chooses_the_format(swsearch, few_proteins_db, tmp_path):
    """The reports are those with ``--format``, whose value takes precedence; other names leave the table."""
    query = ["query", QUERIES, few_proteins_db, "--top", "1", "--quiet"]
    for name, form in (
        ("a.html", "html"),
        ("a.tsv.gz", "tsv"),
        ("A.JSON", "json"),
        ("a.jsonl", "jsonl"),
        ("a", "table"),
    ):
        assert swsearch(*query, "--format", form, "--out", "asked").code == 0
        asked = (tmp_path / "asked").read_bytes()
        for command in (query, ["report", "latest"]):
            assert swsearch(*command, "--out", name).code == 0
            content = (tmp_path / name).read_bytes()
            assert (gzip.decompress(content) if name.endswith("gz") else content) == asked
    assert swsearch(*query, "--out", "b.html", "--format", "table").code == 0
    assert (tmp_path / "b.html").read_bytes() == asked


def test_the_name_of_a_file_chooses_the_format_of_pairs(swsearch, tmp_path):
    """The default of these commands is not that of a query, and blast6 is tab-separated."""
    (tmp_path / "a.fa").write_text(">a\nMKVLLAWYRKNDCQEHGI\n>b\nMKVLLAWYRKNDCQEHGI\n")
    for words in ("allpairs a.fa", "rbh a.fa a.fa", "cluster a.fa"):
        command = [*words.split(), "--evalue", "1e6", "--store", "none"]
        assert swsearch(*command, "--out", "a.jsonl").code == 0
        assert (tmp_path / "a.jsonl").read_text().startswith("{")
        assert swsearch(*command, "--out", "a.tsv").code == 0
        assert (tmp_path / "a.tsv").read_text() == swsearch(*command).out


# --- what was left out ---


@pytest.mark.parametrize("number", ["-3", "many"])
def test_the_number_of_a_list_is_refused_with_its_range(swsearch, few_proteins_db, number):
    """Zero and all are the same list."""
    outcome = swsearch("query", QUERIES, few_proteins_db, "--top", number)
    assert outcome.code == 2
    assert f"{number}: choose a number of subjects, 1 to 2,147,483,647, or all (0); see" in outcome.error
    lists = [swsearch("query", QUERIES, few_proteins_db, "--top", top).out for top in ("0", "all")]
    assert lists[0] == lists[1] != ""
    shown = [swsearch("runs", "show", run).out.splitlines() for run in ("1", "2")]
    assert all("--top         all" in lines for lines in shown)


def test_a_list_that_is_cut_says_so_in_every_format(swsearch, few_proteins_db):
    """The number left out is that of the same search with ``--top all``, in scores without composition."""
    query = ["query", QUERIES, few_proteins_db, "--composition", "none"]
    whole = swsearch(*query, "--top", "all", "--format", "blast6")
    assert "--top" not in whole.err
    queries = [line.split("\t")[0] for line in whole.out.splitlines()]
    counts = [queries.count(name) for name in dict.fromkeys(queries)]
    n_cut, n_left_out = sum(n > 3 for n in counts), sum(max(0, n - 3) for n in counts)
    assert n_cut > 1
    for form in ("table", "blast6", "json", "fasta"):
        said = swsearch(*query, "--top", "3", "--format", form).err
        lists = f"{n_cut} of {len(counts)} lists end at --top 3"
        assert f"{lists}; {n_left_out} further subjects pass, and --top all lists them\n" in said
        assert said.count("--top") == 2
    assert (
        f"{n_left_out} further subjects pass, and a search with --top all lists them"
        in swsearch("report", "latest").err
    )
    of_whole = swsearch("report", "1", "--top", "3").err  # whose run has them all
    assert f"{n_left_out} further subjects pass, and --top all lists them" in of_whole
    assert "--top" not in swsearch(*query, "--top", "3", "--quiet").err


def test_all_is_what_a_report_and_a_configuration_understand(swsearch, few_proteins_db, tmp_path, monkeypatch):
    (tmp_path / "config.toml").write_text('[query]\ntop = "all"\n')
    monkeypatch.setenv("SWSEARCH_CONFIG", str(tmp_path / "config.toml"))
    found = swsearch("query", QUERIES, few_proteins_db, "--format", "blast6")
    assert "--top" not in found.err
    assert swsearch("report", "latest", "--top", "all", "--format", "blast6").out == found.out


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("-q query a.fa a.db", "options follow the command: swsearch query a.fa a.db -q"),
        ("--top 3 query a.fa a.db", "options follow the command: swsearch query a.fa a.db --top 3"),
        ("-query a.fa -db db", "the command is missing; here it is: swsearch query a.fa db"),
        (
            "allpairs a.db --top 3",
            "no such option: --top (Possible options: --lca-top); see `swsearch allpairs --help`",
        ),
        (
            "completion",
            "missing argument 'bash|zsh|fish'. Choose from: bash, zsh, fish; see `swsearch completion --help`",
        ),
    ],
)
def test_options_have_their_place(swsearch, words, advice):
    assert swsearch(*words.split()).error == f"swsearch: error: {advice}"


@pytest.mark.parametrize(("words", "path"), [("query a.fa a.db -k", "query"), ("db fetch a.db --range", "db fetch")])
def test_an_option_without_its_value_names_the_help_of_its_command(swsearch, words, path):
    assert f"requires an argument; see `swsearch {path} --help`" in swsearch(*words.split()).error


def test_an_alignment_is_no_database(swsearch):
    refused = swsearch("index", DATA / "obg.sto", "-o", "x.db")
    problem = "this is a Stockholm file, whose alignments can be queries; a database takes FASTA or FASTQ"
    assert f"obg.sto, line 1, column 1: {problem}" in refused.error


# --- lists of identifiers ---


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("query {queries} {db} --store none --include {list}", "--include"),
        ("query {queries} {db} --store none --exclude {list}", "--exclude"),
        ("db fetch {db} --ids {list}", "--ids"),
        ("db remove {db} --from-file {list}", "--from-file"),
    ],
)
def test_a_sequence_file_is_no_list_of_identifiers(swsearch, tmp_path, few_proteins_db, words, option):
    """Until now, an option such as --exclude took '>P02232' and the residues for identifiers that no subject has."""
    (tmp_path / "list.fa").write_text("# globins\n>P02232 leghemoglobin\nMGAFTEKQEALVNSSFEAFK\n")
    for name, content in (("list.fa", None), ("list.fa.gz", gzip.compress((tmp_path / "list.fa").read_bytes()))):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        given = words.format(queries=QUERIES, db=few_proteins_db, list=name).split()
        refused = swsearch(*given)
        problem = "a header of FASTA; give identifiers without '>', one a line, and no sequences"
        assert refused.refusal == f"swsearch: error: {option} {name}, line 2: {problem}"
    (tmp_path / "list.fq").write_text("@P02232 leghemoglobin\nMGAF\n+\nIIII\n")
    refused = swsearch(*words.format(queries=QUERIES, db=few_proteins_db, list="list.fq").split())
    assert (refused.code, refused.out) == (1, "")
    problem = "this is FASTQ; give identifiers, one a line, and no sequences"
    assert refused.error == f"swsearch: error: {option} list.fq: {problem}"


# --- stores without what is asked for ---


def test_a_store_without_runs_or_tokens_says_so(swsearch, few_proteins_db):
    store = ["--store", "my hits.sqlite"]
    assert swsearch("query", QUERIES, few_proteins_db, *store, "--quiet").code == 0
    line = "my hits.sqlite has no run '7'; `swsearch runs list --store 'my hits.sqlite'` lists them"
    assert swsearch("report", "7", *store).error.endswith(line)
    assert swsearch("runs", "delete", "latest", *store).code == 0
    line = "my hits.sqlite has no run; `swsearch query --store 'my hits.sqlite'` stores one"
    assert swsearch("report", "latest", *store).error.endswith(line)
    listed = swsearch("tokens", "list", *store)
    assert (listed.code, listed.out) == (0, "")
    assert (
        listed.err
        == "swsearch: no token in my hits.sqlite; `swsearch tokens add NAME --store 'my hits.sqlite'` makes one\n"
    )
