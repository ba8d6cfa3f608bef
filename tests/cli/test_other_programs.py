"""The words of BLAST+, DIAMOND, MMseqs2 and SSEARCH: understood, or answered with the line of swsearch.

What an option of another program means is known from its manual; the expected lines are written by hand.
"""

import re
import shlex

import pytest
import typer

from swsearch.cli.app import commands
from swsearch.cli.command import PROGRAMS, replace_names
from swsearch.cli.command_line import words_of
from swsearch.cli.spellings import BLAST, DIAMOND, LINES, MMSEQS, OTHERS, PROGRAM_WORDS, SPELLINGS, SSEARCH
from swsearch.errors import UsageError
from tests.cli.conftest import DATA, QUERIES

UNDERSTOOD = {
    BLAST: {
        "-query q.fa -db d": "q.fa d",
        "-query q.fa -db 'd e'": "q.fa --db d --db e",
        """-db '"my d" e'""": "--db 'my d' --db e",
        "-in a.fa": "a.fa",
        "-subject s.fa -query q.fa": "q.fa s.fa",
        "-outfmt 7": "--format blast7",
        "-outfmt '6 std qlen'": "--format blast6 --fields 'std qlen'",
        "-outfmt 5": "--format xml",
        "-outfmt 0": "--format pairwise",
        "-outfmt '10 qseqid,sseqid'": "--format csv --fields 'qseqid sseqid'",
        "-outfmt 15": "--format json2",
        "-outfmt 16": "--format xml2",
        "-outfmt 17": "--format sam",
        "-html": "--format html",
        "-comp_based_stats 0": "--composition none",
        "-comp_based_stats 2": "--composition adjust",
        "-seg yes": "--mask seg",
        "-seg no": "--mask none",
        "-dust yes": "--mask dust",
        "-lcase_masking": "--mask lower",
        "-soft_masking true": "--mask-mode soft",
        "-soft_masking false": "--mask-mode hard",
        "-in_pssm p.asn": "--in-pssm p.asn",
        "-dbtype nucl": "--alphabet dna",
        "-dbtype prot": "--alphabet protein",
        "-evalue 1e-5 -matrix BLOSUM45 -dbsize 1000 -max_hsps 2 -strand plus -out o.txt": (
            "--evalue 1e-5 --matrix BLOSUM45 --dbsize 1000 --max-hsps 2 --strand plus --out o.txt"
        ),
    },
    DIAMOND: {
        "--query q.fa --db d": "q.fa d",
        "-q q.fa -d d": "q.fa d",
        "--in a.fa": "a.fa",
        "-k 5 -e 1e-5 -p 4 -o o.tsv": "-k 5 -e 1e-5 -p 4 -o o.tsv",
        "--outfmt 6 qseqid sseqid full_qseq --id 50": (
            "--format blast6 --fields 'qseqid sseqid full_qseq' --min-identity 50"
        ),
        "--outfmt '6 qseqid sseqid'": "--format blast6 --fields 'qseqid sseqid'",
        "-f 101": "--format sam",
        "-f 102": "--format lca",
        "--outfmt 102 --include-lineage": "--format lca --fields 'qseqid lca evalue lcalineage'",
        "--comp-based-stats 1": "--composition adjust",
        "--masking 0": "--mask none",
        "--masking tantan": "--mask tantan",
    },
    MMSEQS: {
        "--min-seq-id 0.35": "--min-identity 35",
        "-c 0.8": "--min-query-coverage 80 --min-subject-coverage 80",
        "--format-output query,target,bits,tstart": "--format blast6 --fields 'qseqid sseqid bitscore sstart'",
        "--format-mode 4": "--format tsv",
        "--alt-ali 2": "--max-hsps 3",
        "--comp-bias-corr 1": "--composition bias",
        "--comp-bias-corr 0": "--composition none",
        "--mask 1": "--mask tantan",
        "--gpu 1": "--engine cuda",
        "--strand 2": "--strand both",
        "-e 0.001 --threads 8": "-e 0.001 --threads 8",
    },
    SSEARCH: {
        "-m 8": "--format blast6",
        "-m 8C": "--format blast7",
        "-m 0": "--format pairwise",
        "-s BL62": "--matrix BLOSUM62",
        "-s my.mat": "--matrix my.mat",
        "-f -11 -g -1": "--gap-open 11 --gap-extend 1",
        "-r +5/-4": "--match 5 --mismatch -4",
        "-S": "--mask lower",
        "-3": "--strand plus",
        "-i": "--strand minus",
        "-n": "--alphabet dna",
        "-p": "--alphabet protein",
        "-q": "-q",
    },
}

REFUSED = {
    BLAST: {
        "-outfmt 11": "lists the formats", "-seg '12 2.2 2.5'": "--mask seg", "-dbtype both": "--alphabet protein",
        "-word_size 3": "exhaustive", "-task blastp": "no such option",
    },
    DIAMOND: {
        "-f 100": "lists the formats", "--top 10": "--lca-top PERCENT", "--log": "say --log FILE",
        "--fast": "exhaustive", "--mid-sensitive": "exhaustive", "--sensitive": "exhaustive",
        "--more-sensitive": "exhaustive", "--very-sensitive": "exhaustive", "--ultra-sensitive": "exhaustive",
    },
    MMSEQS: {
        "--format-output fident": "pident", "--min-seq-id half": "PERCENT", "--alt-ali x": "--max-hsps N",
        "--format-mode 5": "--format", "--gap-open 11": "--gap-open 10", "--gap-extend 1": "--gap-extend 1",
        "-k 6": "exhaustive", "-s 7.5": "exhaustive; leave it out (for remote relatives of proteins, say --sensitive)",
    },
    SSEARCH: {"-m 10": "lists the formats", "-k 500": "shuffled", "-z 11": "no such option: -z"},
    OTHERS: {"--pident 30": "no such option: --pident; say --min-identity PERCENT"},
}  # fmt: skip


def parsed(given, *programs):
    """What the parser of the command that has the options finds in words, as the words of swsearch."""
    is_index = any(word in given for word in ("-in ", "--in ", "-dbtype", "a.fa"))
    root, name = commands(), "index" if is_index else "query"
    parent = typer.Context(root, info_name="swsearch", **root.context_settings)
    command = root.commands[name]
    context = typer.Context(command, info_name=name, parent=parent)
    context.meta[PROGRAMS] = programs or None
    opts, _, _ = command.make_parser(context).parse_args(shlex.split(given))
    replace_names(context, opts)
    return words_of("", command.params, {key: value for key, value in opts.items() if value is not None})


@pytest.mark.parametrize("program", UNDERSTOOD)
def test_an_option_with_a_counterpart_is_understood(program):
    for given, own in UNDERSTOOD[program].items():
        assert parsed(given, program) == parsed(own), given


@pytest.mark.parametrize("program", REFUSED)
def test_an_option_without_a_counterpart_is_refused(program):
    for given, reason in REFUSED[program].items():
        with pytest.raises(Exception, match=f"(?i){re.escape(reason)}") as caught:
            parsed(given, program)
        assert hasattr(caught.value, "format_message") or isinstance(caught.value, UsageError)


def test_every_spelling_is_an_option_or_has_an_example_here():
    """Of those that are another name of an option, the page on names says which one."""
    shown = {
        (program, word.partition("=")[0])
        for rows in (UNDERSTOOD, REFUSED)
        for program, examples in rows.items()
        for given in examples
        for word in shlex.split(given)
    }
    options = {
        name for command in ("query", "index") for one in commands().commands[command].params for name in one.opts
    }
    for row in SPELLINGS:
        is_name = row.convert is None and row.here.startswith("-")
        assert row.here in options if is_name else (row.program, row.name) in shown, row
    assert len({(row.program, row.name) for row in SPELLINGS}) == len(SPELLINGS)


def test_the_reference_page_has_all_spellings_with_a_counterpart():
    """The message about any other spelling says what to do."""
    page = (DATA.parent / "docs" / "reference" / "names.md").read_text().replace("`", "")
    for row in SPELLINGS:
        lines = [line for line in page.splitlines() if line.endswith(f" | {row.meaning.replace('`', '')} |")]
        named = any(row.name in line.split("|")[1].replace(",", " ").split() for line in lines)
        assert named or not row.here, row


# --- words in place of a command ---

PROGRAM_LINES = {
    "blastp -query q.fa -db d -evalue 1e-5 -num_threads 4 -max_target_seqs 3 -outfmt '6 std qlen' -out 'x y.tsv'": (
        "swsearch query q.fa d --evalue 1e-5 --threads 4 --top 3 --format blast6 --fields 'std qlen' --out 'x y.tsv'"
    ),
    "blastp -query q.fa -db d -foo 3 -evalue 1e-5 -out o.tsv": (
        "swsearch query q.fa d --evalue 1e-5 --out o.tsv (no such option: -foo 3)"
    ),
    "blastn -db d -export_it -query q.fa -outfmt 11": (
        "swsearch query q.fa d (no such option: -export_it; -outfmt 11 of BLAST+ has no counterpart; `swsearch query "
        "--help` lists the formats under --format)"
    ),
    "easy-search q.fa s.fa r.m8 tmp --cov-mode 0 -c 0.5": (
        "swsearch query q.fa s.fa --min-query-coverage 50 --min-subject-coverage 50 --out r.m8 --format blast6 "
        "(no such option: --cov-mode 0)"
    ),
    "blastp -query q.fa -db d -evalue": "swsearch query q.fa d (option '-evalue' requires an argument)",
    "megablast -query q.fa -db d": "swsearch query q.fa d",
    "psiblast -query q.fa -db d -num_iterations 3": "swsearch query q.fa d --iterations 3",
    "blastx -query q.fa -db d": "swsearch query q.fa d --translate query",
    "tblastn -query q.fa -db d -db_gencode 11": "swsearch query q.fa d --translate subject --genetic-code 11",
    "tblastx -query q.fa -db d": "swsearch query q.fa d --translate both",
    "diamond blastx -q q.fa -d d -o o.tsv -f 6 qseqid sseqid": (
        "swsearch query q.fa d --translate query --out o.tsv --format blast6 --fields 'qseqid sseqid'"
    ),
    "makeblastdb -in a.fa -dbtype prot -out d": "swsearch index a.fa --alphabet protein --out d",
    "makeblastdb -in a.fa -dbtype nucl": "swsearch index a.fa --alphabet dna --out DB",
    "diamond makedb --in a.fa --db d": "swsearch index a.fa --out d",
    "createdb a.fa b.fa d": "swsearch index a.fa b.fa --out d",
    "search q.fa d --top 3": "swsearch query q.fa d --top 3",
    "search q d result tmp -e 1e-3": "swsearch query q d --evalue 1e-3 --out result --format blast6",
    "mmseqs easy-search q.fa s.fa r.m8 tmp --max-seqs 10": (
        "swsearch query q.fa s.fa --top 10 --out r.m8 --format blast6"
    ),
    "easy-rbh a.fa b.fa ab.m8 tmp": "swsearch rbh a.fa b.fa --out ab.m8 --format blast6",
    "mmseqs easy-cluster p.fa clusters tmp --min-seq-id 0.5 -c 0.8": (
        "swsearch cluster p.fa --min-identity 50 --min-query-coverage 80 --min-subject-coverage 80 "
        "--out clusters_cluster.tsv --representatives clusters_rep_seq.fasta"
    ),
    "easy-linclust p.fa clusters tmp": (
        "swsearch cluster p.fa --out clusters_cluster.tsv --representatives clusters_rep_seq.fasta"
    ),
    "easy-cluster": "swsearch cluster DB",
    "ssearch36 -s BL62 -f -11 -g -1 -E 1e-5 -m 8 -q q.fa lib.fa": (
        "swsearch query q.fa lib.fa --matrix BLOSUM62 --gap-open 11 --gap-extend 1 --evalue 1e-5 --format blast6 "
        "--quiet"
    ),
    "ssearch q.fa lib.fa": "swsearch query q.fa lib.fa",
    "fasta36 q.fa lib.fa": "swsearch query q.fa lib.fa",
    "blastp": "swsearch query QUERY… DB",
    "blastp -query q.fa": "swsearch query q.fa DB",
    "blastp -db d": "swsearch query QUERY… d",
    "blastp -db 'd e'": "swsearch query QUERY… --db d --db e",
    "blastp -help": "swsearch query --help",
    "makeblastdb": "swsearch index FASTA… --out DB",
    "diamond": "swsearch index FASTA… --out DB, then swsearch query QUERY… DB",
    "diamond view": "swsearch report latest --format blast6",
    "-query q.fa -db d -evalue 3": "swsearch query q.fa d --evalue 3",
    "q.fa d --top 3": "swsearch query q.fa d --top 3",
    **LINES,
}


@pytest.mark.parametrize("given", PROGRAM_LINES)
def test_the_word_of_a_program_is_answered_with_the_line_that_does_it(swsearch, tmp_path, given):
    (tmp_path / "q.fa").write_text(">a\nMKVLAAGIVG\n")
    outcome = swsearch(*shlex.split(given))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error.split("; here it is: ", 1)[1] == PROGRAM_LINES[given]
    assert outcome.err == outcome.error + "\n"


PROTEINS = ">p\n" + "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW" * 3 + "\n"
BASES = ">d\n" + "ACGGTCATTAGCCGATAATGCCGTACGATC" * 3 + "\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "blastn -query p.fa -db genome",
            "p.fa genome --translate subject (the queries are proteins, the database is DNA)",
        ),
        ("blastn -query d.fa -db genome", "d.fa genome"),
        ("blastp -query d.fa -db nr", "d.fa nr --translate query (the queries are DNA, the database is protein)"),
        ("diamond blastp -q d.fa -d nr", "d.fa nr --translate query (the queries are DNA, the database is protein)"),
        ("blastn -query p.fa -db p.db", "p.fa p.db"),
        ("blastp -query d.fa -db d.db", "d.fa d.db"),
        ("p.fa d.db", "p.fa d.db --translate subject (the queries are proteins, the database is DNA)"),
        ("d.fa p.fa", "d.fa p.fa --translate query (the queries are DNA, the database is protein)"),
        ("p.fa d.fa -k 3", "p.fa d.fa --top 3 --translate subject (the queries are proteins, the database is DNA)"),
        ("p.fa d.fa --translate none", "p.fa d.fa --translate none"),
        ("p.fa p.db", "p.fa p.db"),
        ("blastn -query - -db genome", "- genome"),
        ("blastn -query p.fa", "p.fa DB --translate subject (the queries are proteins, the database is DNA)"),
    ],
)
def test_the_answer_translates_queries_of_the_other_alphabet(swsearch, tmp_path, given, said):
    (tmp_path / "p.fa").write_text(PROTEINS)
    (tmp_path / "d.fa").write_text(BASES)
    for name in ("p", "d"):
        assert swsearch("index", f"{name}.fa", "-o", f"{name}.db").code == 0
    outcome = swsearch(*given.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error.split("; here it is: ", 1)[1] == f"swsearch query {said}"


def test_every_program_word_is_answered_above():
    assert {*PROGRAM_WORDS, *LINES} <= {word for given in PROGRAM_LINES for word in given.split()}


# --- within a command of swsearch ---


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (
            "query -query {q} -db {db} -evalue 1e-5 -num_threads 1 -max_target_seqs 2 -max_hsps 2 -outfmt '6 std qlen'",
            "query {q} {db} --evalue 1e-5 --threads 1 --top 2 --max-hsps 2 --format blast6 --fields 'std qlen'",
        ),
        (
            "query {q} {db} --outfmt 6 qseqid sseqid --max-target-seqs 2 --query-cover 50 --id 30",
            "query {q} {db} -f blast6 --fields 'qseqid sseqid' -k 2 --min-query-coverage 50 --min-identity 30",
        ),
        (
            "query {q} {db} --num_threads 1 --max_hsps 2 -top 2 -outfmt=7",
            "query {q} {db} -p 1 --max-hsps 2 -k 2 -f blast7",
        ),
        ("query {q} {db} -k2 -e1e-5 -p1 -f blast6", "query {q} {db} --top 2 --evalue 1e-5 --threads 1 --format blast6"),
    ],
)
def test_a_search_in_other_words_is_the_same_search(swsearch, few_proteins_db, given, own):
    """Source: the same search in the words of swsearch."""
    called = [
        swsearch(*shlex.split(line.format(q=QUERIES, db=few_proteins_db)), "--store", "none", "--quiet")
        for line in (given, own)
    ]
    assert called[0] == called[1]
    assert called[0].code == 0
    assert called[0].out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("-word 3", "no such option: -word; see"),
        ("-d x", "no such option: -d; that of DIAMOND is the last argument; that of SSEARCH is --top; see"),
        ("-s 7.5", "no such option: -s; that of MMseqs2 has no counterpart; every search is exhaustive; leave it out"),
        ("-c0.8", "no such option: -c; that of MMseqs2 is --min-query-coverage 80 --min-subject-coverage 80; see"),
        ("-m 8", "no such option: -m; that of SSEARCH is --format blast6; see"),
        (
            "-q out.tsv",
            "there is no out.tsv, and -q before it is --quiet, which takes no value; results go to a file with "
            "--out out.tsv",
        ),
        ("-seg yes -lcase_masking", "-lcase_masking: it means --mask, and so does -seg; say --mask once"),
        ("-outfmt", "option '-outfmt' requires an argument"),
        ("--toop 3", "no such option: --toop"),
        ("--evalue", "option '--evalue' requires an argument"),
        ("--top x", "invalid value for '--top' / '-k'"),
    ],
)
def test_a_word_that_cannot_be_followed_is_one_line(swsearch, tmp_path, protein_db, given, words):
    outcome = swsearch("query", QUERIES, protein_db, *given.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.error
    assert outcome.err == outcome.error + "\n"
    assert not list(tmp_path.iterdir())


def test_words_behind_two_dashes_and_values_are_left_alone(swsearch, tmp_path, few_proteins_db):
    (tmp_path / "-query").write_text(">a\nMKVLAAGIVG\n")
    found = swsearch("query", "--store", "none", "--id-pattern", "-word_size|.", "--", "-query", few_proteins_db)
    assert "Query:    a (10 residues)" in found.printed


@pytest.mark.parametrize("command", ["batch", "msa"])
def test_other_commands_understand_the_same_words(swsearch, tmp_path, few_proteins_db, command):
    found = swsearch(command, "-query", QUERIES, "-db", few_proteins_db, "-out", "o.txt", "-num_threads", 1, "-q")
    assert found.code == 0, found.err
    assert (tmp_path / "o.txt").stat().st_size > 0


def test_a_command_with_a_single_argument_keeps_it_beside_other_words(swsearch, few_proteins_db):
    found = swsearch("cluster", few_proteins_db, "--min-seq-id", 0.5, "--store", "none")
    assert found.code == 0, found.err
    assert found == swsearch("cluster", few_proteins_db, "--min-identity", 50, "--store", "none")


def test_an_option_of_a_search_is_unknown_to_a_command_without_it(swsearch, few_proteins_db):
    outcome = swsearch("db", "info", "-db", few_proteins_db)
    assert outcome.code == 2
    assert "no such option: -db; see" in outcome.error
    for command, option in (("runs list", "-n"), ("db info", "-s"), ("index", "-c")):
        assert f"no such option: {option}; see" in swsearch(*command.split(), option, 3).error
    assert "no such option: -d; that of SSEARCH is --top; see" in swsearch("report", "latest", "-d", 3).error


def test_a_report_says_that_an_option_belongs_to_the_search(swsearch):
    outcome = swsearch("report", "latest", "--matrix", "PAM30")
    assert outcome.code == 2
    assert "--matrix: it belongs to a search, and `swsearch report` computes nothing; search again" in outcome.error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["serach", "q.fa", "p.db"], "there is no command 'serach'; search is a command of MMseqs2; here it is: "
         "swsearch query q.fa p.db"),
        (["makeblastd", "-in", "p.fa"], "makeblastdb is a command of BLAST+; here it is: swsearch index p.fa --out DB"),
        (["querry", "q.fa", "p.db"], "Did you mean 'query'? See `swsearch --help`"),
    ],
)  # fmt: skip
def test_a_mistyped_word_is_answered_with_the_one_that_is_meant(swsearch, given, said):
    outcome = swsearch(*given)
    assert outcome.code != 0
    assert said in outcome.error
