"""Every kind of query against both kinds of database, translated or not: searched, or refused with what would work.

The expected outcome of each combination comes from the tables below, which are written by hand.
"""

from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.scoring.matrix import named_matrix
from tests.cli.conftest import DATA

PROTEIN = "MKVLAAGIVGLLLAQWERTYMKWVTFISLLFLFSSAYSRG"
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
DATABASES = ("protein", "dna")
TRANSLATIONS = (None, "none", "query", "subject", "both")
PROTEIN_KINDS = ("protein.fasta", "pssm.txt", "protein.sto", "protein.afa", "protein.a3m")
PROFILE_FORMATS = {"pssm.txt": "pssm", "protein.sto": "stockholm", "protein.afa": "aligned", "protein.a3m": "a3m",
                   "dna.afa": "aligned", "dna.sto": "stockholm", "rna.sto": "stockholm"}  # fmt: skip
DNA_KINDS = ("dna.fasta", "dna.fastq")
DNA_PROFILES = ("dna.afa", "dna.sto", "rna.sto")

NO_FIT = {
    ("protein", "subject"): "with queries of protein leave it out, with queries of DNA say --translate query",
    ("protein", "both"): "with queries of protein leave it out, with queries of DNA say --translate query",
    ("dna", "query"): "with queries of protein say --translate subject, with DNA leave it out or say --translate both",
}
"""Combinations in which an option does not translate the database, whatever the queries are."""
ADVICE = {
    ("protein", "protein"): "to search with protein leave --translate out (protein.db is protein)",
    ("protein", "dna"): "to translate the database say --translate subject (dna.db is dna)",
    ("dna", "protein"): "to translate it say --translate query (protein.db is protein)",
    ("dna", "dna"): "to search with DNA leave --translate out, or say --translate both (dna.db is dna)",
}
"""The advice of the message, by the alphabets of queries and database."""
NEEDED = {"query": "dna", "subject": "protein", "both": "dna"}


def offered(queries: str, database: str) -> str:
    """Return the translation of a search without the option: that which queries of the other alphabet need."""
    return {("protein", "dna"): "subject", ("dna", "protein"): "query"}.get((queries, database), "none")


def expected(kind: str, database: str, translate: str | None) -> str | None:
    """Return the words of the refusal; None where the search is possible."""
    if (database, translate) in NO_FIT:
        return NO_FIT[database, translate]
    needed = NEEDED.get(translate or offered("dna" if kind in DNA_KINDS else "protein", database), database)
    if kind in DNA_PROFILES:
        return "search with the sequences themselves" if needed == "protein" else "profiles of DNA are not read"
    is_a = "protein" if kind in PROTEIN_KINDS else "dna"
    return None if is_a == needed else ADVICE[is_a, database]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Queries of every kind, and two databases. The letters are artificial; the DNA is the genome of phage lambda."""
    path = tmp_path_factory.mktemp("kinds")
    genome = "".join((DATA / "lambda_phage.fasta").read_text().splitlines()[1:])
    gene, gapped = genome[:240], f"{PROTEIN[:20]}-{PROTEIN[21:]}"
    scores = named_matrix("BLOSUM62")
    rows = [
        f"{i} {letter} {' '.join(str(scores.score(letter, other)) for other in AMINO_ACIDS)}"
        for i, letter in enumerate(PROTEIN, 1)
    ]
    for name, text in {
        "protein.fasta": f">p\n{PROTEIN}\n",
        "dna.fasta": f">d\n{gene}\n",
        "dna.fastq": f"@d\n{gene}\n+\n{'I' * len(gene)}\n",
        "pssm.txt": f"\nLast position-specific scoring matrix computed\n  {' '.join(AMINO_ACIDS)}\n" + "\n".join(rows),
        "protein.sto": f"# STOCKHOLM 1.0\na {PROTEIN}\nb {gapped}\n//\n",
        "protein.afa": f">a\n{PROTEIN}\n>b\n{gapped}\n",
        "protein.a3m": f">a\n{PROTEIN}\n>b\n{gapped}\n",
        "dna.afa": f">a\n{gene}\n>b\n{gene[:100]}-{gene[101:]}\n",
        "dna.sto": f"# STOCKHOLM 1.0\na {gene}\nb {gene[:100]}-{gene[101:]}\n//\n",
        "rna.sto": f"# STOCKHOLM 1.0\na {gene.replace('T', 'U')}\nb {gene.replace('T', 'U')}\n//\n",
        "db.fasta": f">s\n{PROTEIN}\n",
    }.items():
        (path / name).write_text(text)
    assert main(["index", str(path / "db.fasta"), "-o", str(path / "protein.db"), "--quiet"]) == 0
    assert main(["index", str(DATA / "lambda_phage.fasta"), "-o", str(path / "dna.db"), "--quiet"]) == 0
    return path


@pytest.fixture
def search(swsearch, folder, monkeypatch, tmp_path):
    """Search in the folder; commands with a store of their own use another folder."""
    monkeypatch.chdir(folder)

    def call(command, kind, database, translate, *more):
        store = "none" if command == "query" else tmp_path / "hits.sqlite"
        options = [] if translate is None else ["--translate", translate]
        return swsearch(command, kind, f"{database}.db", "--store", store, *options, *more)

    return call


CASES = [(d, t) for d in DATABASES for t in TRANSLATIONS]


@pytest.mark.parametrize("kind", [*PROTEIN_KINDS, *DNA_KINDS, *DNA_PROFILES])
@pytest.mark.parametrize(("database", "translate"), CASES)
def test_each_kind_is_searched_or_refused_with_the_option_that_works(search, kind, database, translate):
    form = ["--query-format", PROFILE_FORMATS[kind]] if kind in PROFILE_FORMATS else []
    outcome = search("query", kind, database, translate, *form)
    words = expected(kind, database, translate)
    if words is None:
        assert outcome.code == 0, outcome.err
        is_offered = translate is None and (database == "protein") is (kind in DNA_KINDS)
        assert (
            "translated in six frames; --translate none refuses" in outcome.err
            or "searched in six frames; --translate none refuses" in outcome.err
        ) is is_offered
        return
    assert words in outcome.refusal
    assert (f"{database}.db" if (database, translate) in NO_FIT else kind) in outcome.error


@pytest.mark.parametrize(("database", "translate"), CASES)
@pytest.mark.parametrize("alphabet", ["protein", "dna"])
def test_an_alphabet_that_is_given_fits_or_is_refused_with_the_option_that_works(search, database, translate, alphabet):
    outcome = search("query", "dna.fasta", database, translate, "--alphabet", alphabet)  # letters of both alphabets
    needed = NEEDED.get(translate or offered(alphabet, database), database)
    if (database, translate) in NO_FIT:
        assert NO_FIT[database, translate] in outcome.error
    elif alphabet == needed:
        assert outcome.code == 0, outcome.err
    else:
        assert f"--alphabet {alphabet}: with" in outcome.error
        assert ADVICE[alphabet, database] in outcome.error


@pytest.mark.parametrize("kind", DNA_PROFILES)
def test_profiles_that_read_like_dna_are_proteins_where_that_is_said(search, kind):
    more = ["--alphabet", "protein", "--query-format", PROFILE_FORMATS[kind]]
    assert search("query", kind, "protein", None, *more).code == 0


def test_a_format_that_is_not_the_files_is_named(search):
    for kind, form in (("pssm.txt", "pssm"), ("protein.sto", "stockholm")):
        assert (
            f"{kind} is not FASTA but in format {form}"
            in search("query", kind, "protein", None, "--query-format", "fasta").error
        )
    assert "is not a PSSM" in search("query", "protein.fasta", "protein", None, "--query-format", "pssm").error
    assert "# STOCKHOLM" in search("query", "protein.fasta", "protein", None, "--query-format", "stockholm").error
    gaps = search("query", "protein.afa", "protein", None).error
    advice = "search with the alignment as a profile (query --query-format aligned, or a3m)"
    assert f"'-' is a gap; remove it, or {advice}" in gaps
    assert search("query", "dna.afa", "dna", None).error.endswith("'-' is a gap; remove it")


def test_the_scale_of_several_profiles_is_told_once(search):
    """The scores of BLOSUM62 have another scale than BLOSUM45."""
    said = search("query", "pssm.txt", "protein", None, "--in-pssm", "pssm.txt", "--matrix", "BLOSUM45").err
    assert said.count("E-values may be far off") == said.count("; the same holds for 1 other profile\n") == 1
