"""Records whose reports are known: pairs that NCBI BLAST+ 2.12 searched, with its hits and its output for them.

The protein pairs were searched with ``blastp -comp_based_stats 0 -seg no``, the DNA pairs with ``blastn -task
blastn -reward 2 -penalty -3 -gapopen 5 -gapextend 2``; coordinates, counts, raw scores and E-values are BLAST's.
"""

import io

import pytest

from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.report.base import ReportContext
from swsearch.report.formats import FORMATS, Use, new_report
from swsearch.scoring.matrix import match_mismatch, matrix_text, named_matrix

OF_TAXA = {name for name in FORMATS if name != "parquet" and new_report(name).taxonomy_use is Use.NEEDED}
"""The formats that need a taxonomy."""
STATS = SearchStats(cells=57_888, score_seconds=0.5, total_seconds=1.0, n_rescored=0)

LEGHEMOGLOBIN = (
    "MGAFTEKQEALVNSSYEAFKANVPQYSVVFYTSILEKAPAAKDLFSFLANGVDPTNPKLTGHAEKLFALVRDSAGQLKASGTVVADAALGSVHAQKAVTDPQFVVVKE"
    "ALLKTIKAAVGDKWSDELSRAWEVAYDELAAAIKKA"
)
SHORTENED = "MGAFTEKQEALVNSSYEAFKANVPQYSVAAFLANGVDPTNPKLTGHAEKLFALVRDSAGQLRASGTVVADAWWWALGSVHAQKAVTDPQFVVVKEALLKTIKAA"
BASES = "ACGTGACCTGATCGATTACGGCATGCATCGATCGATTTAGCGCGATATCGGGATCTAGCTAGGCTA"
TURNED = "TAGCCTAGCTAGATCCCGATATCGCGCTAAATCGATGCATGCCGTAATCGATCAGGTCACGT"


def make_run(alphabet: str, **changes: object) -> RunInfo:
    matrix = named_matrix("BLOSUM62") if alphabet == "protein" else match_mismatch(2, -3)
    protein = alphabet == "protein"
    values: dict[str, object] = {
        "command": "swsearch query q.fa d.fa --threads 2",
        "parameters": {"top": 25, "evalue": 10.0, "ties": "cut", "matrix": None},
        "matrix": matrix.name,
        "matrix_scores": matrix_text(matrix),
        "gap_open": 11 if protein else 5,
        "gap_extend": 1 if protein else 2,
        "lam": 0.267 if protein else 0.625,
        "k": 0.041 if protein else 0.41,
        "statistics": "table",
        "search_space": 402 if protein else 143,
        "database": DatabaseInfo(("d.fa",), ("0af3",), 0, alphabet, 3 if protein else 2, 402 if protein else 143),
        "program": "swsearch 0.1.0",
        "engine": "cpu",
        "threads": 2,
    }
    return RunInfo(**{**values, **changes})  # type: ignore[arg-type]


PROTEIN_RUN = make_run("protein")
DNA_RUN = make_run("dna")

SELF = Hit(
    1, 0, "s1 leghemoglobin desc one", 144, 715, 280.03, 2.58e-103, "plus",
    Alignment(0, 144, 0, 144, "144=", 144, 144, 144, 0, 0, LEGHEMOGLOBIN),
)  # fmt: skip
GAPPED = Hit(
    2, 2, "s3", 104, 444, 175.64, 1.42e-62, "plus",
    Alignment(0, 117, 0, 104, "28=1X16I1X31=1X9=3D30=", 98, 100, 120, 2, 19, SHORTENED),
)  # fmt: skip


class Subjects:
    """The letters of subjects by their index, as a database gives them."""

    def __init__(self, known: dict[int, str]) -> None:
        self._known = known

    def letters(self, subject_index: int, start: int = 0, stop: int | None = None) -> str:
        return self._known[subject_index][start:stop]


PROTEINS = Subjects({0: LEGHEMOGLOBIN, 2: SHORTENED})
GENOMES = Subjects({0: f"ggta{BASES}ttag", 1: f"ggt{TURNED}ttaN"})
PROTEIN_QUERIES = (
    QueryResult(0, "q1 some query protein", LEGHEMOGLOBIN, (SELF, GAPPED), 2, STATS),
    QueryResult(1, "q2 short nothing", "WCWCHHW", (), 0, STATS),
)
PLUS = Hit(1, 0, "m1 plus", 74, 132, 120.3, 4.47e-33, "plus", Alignment(0, 66, 4, 70, "66=", 66, 66, 66, 0, 0, BASES))
MINUS = Hit(
    2, 1, "m2 minus", 69, 111, 101.39, 4.19e-27, "minus",
    Alignment(0, 66, 3, 65, "30=4I32=", 62, 62, 66, 1, 4, TURNED),
)  # fmt: skip
DNA_QUERIES = (QueryResult(0, "n1 dna query", BASES, (PLUS, MINUS), 2, STATS),)


def context_of(run, taxonomy=None, subjects=...):
    """Return what a report reads beside the results, with the subjects of the run's alphabet."""
    return ReportContext(run, (GENOMES if run is DNA_RUN else PROTEINS) if subjects is ... else subjects, taxonomy)


@pytest.fixture
def written():
    """Return a function that writes a report of a run and its queries and returns its text, or bytes if binary."""

    def write(name, run=PROTEIN_RUN, queries=PROTEIN_QUERIES, fields=None, taxonomy=None, subjects=...):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="\n")
        report = new_report(name, fields)
        report.write_all(context_of(run, taxonomy, subjects), iter(queries), stream)
        stream.flush()
        content = stream.buffer.getvalue()
        return content if report.binary else content.decode("utf-8", "surrogateescape")

    return write
