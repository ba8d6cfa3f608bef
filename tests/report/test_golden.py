"""Complete reports, compared byte for byte with golden files.

The golden files of the BLAST formats are the output of NCBI BLAST+ 2.12 for these pairs (``-outfmt 7`` and ``0``),
except for the program's name and the lines on database and query in ``pairwise``; the others were written by hand from
the records.
"""

from pathlib import Path

import pytest

from tests.report.conftest import DNA_QUERIES, DNA_RUN

GOLDEN = Path(__file__).parent / "golden"

MORE_PROTEIN = [
    "qlen", "slen", "score", "nident", "positive", "gaps", "ppos", "qcovs", "qcovhsp", "stitle", "salltitles",
    "sallseqid", "qseq", "sseq", "btop", "sstrand", "qframe", "sframe", "frames",
]  # fmt: skip
MORE_DNA = ["std", "sstrand", "qframe", "sframe", "frames", "btop", "qseq", "sseq"]


def golden(name: str) -> str:
    return (GOLDEN / name).read_bytes().decode()


@pytest.mark.parametrize("name", ["table", "blast6", "blast7", "tsv", "pairwise", "a3m", "sto", "afasta"])
def test_protein_reports_are_the_golden_files(written, name):
    """Source: BLAST's output for the BLAST formats, hand calculation for the others."""
    assert written(name) == golden(f"protein.{name}")


@pytest.mark.parametrize("name", ["table", "pairwise", "a3m", "sto"])
def test_dna_reports_are_the_golden_files(written, name):
    """Source: BLAST's output for the blocks of ``pairwise``, hand calculation for the rest."""
    assert written(name, DNA_RUN, DNA_QUERIES) == golden(f"dna.{name}")


def test_more_fields_are_as_blast_prints_them(written):
    """Source: ``blastp -outfmt '6 …'`` with these fields, on these pairs."""
    assert written("blast6", fields=MORE_PROTEIN) == golden("protein.more.blast6")


def test_minus_strand_is_as_blast_prints_it(written):
    """Source: ``blastn -outfmt '7 …'`` with these fields, on these pairs."""
    assert written("blast7", DNA_RUN, DNA_QUERIES, MORE_DNA) == golden("dna.blast7")
