"""Numbers as text. The expected texts are those of blastp 2.12."""

import pytest

from swsearch.hits.formatting import blast_bits, blast_evalue, whole_percent


@pytest.mark.parametrize(
    ("evalue", "people", "tabular"),
    [
        (0.0, "0.0", "0.0"),
        (9.9e-181, "0.0", "0.0"),
        (1.0e-180, "1e-180", "1.00e-180"),
        (2.58e-103, "3e-103", "2.58e-103"),
        (1e-5, "1e-05", "1.00e-05"),
        (0.00089, "9e-04", "8.90e-04"),
        (0.0009, "0.001", "0.001"),
        (0.25, "0.25", "0.25"),
        (3.5, "3.5", "3.5"),
        (138.2, "138", "138"),
        (None, "N/A", "N/A"),
    ],
)
def test_evalues_are_written_as_blast_does(evalue, people, tabular):
    """Source: output of blastp 2.12 for 2.58e-103, 3.5 and 138; its ranges for the others."""
    assert blast_evalue(evalue) == people
    assert blast_evalue(evalue, digits=2) == tabular


@pytest.mark.parametrize(
    ("bits", "expected"), [(8.8, " 8.8"), (15.4, "15.4"), (175.6, "175"), (676.02, "676"), (1e6, "1.000e+06")]
)
def test_bit_scores_are_written_as_blast_does(bits, expected):
    """Source: output of blastp 2.12 for scores of 28, 444 and 1743; 444 gives 175.6, which BLAST truncates to 175."""
    assert blast_bits(bits) == expected


def test_only_whole_coverage_is_100_percent():
    """Source: blastp 2.12 printed a qcovs of 99 for 299 of 300 residues, and 5 for 16 of 300."""
    assert [whole_percent(part, 300) for part in (299, 300, 16)] == [99, 100, 5]
