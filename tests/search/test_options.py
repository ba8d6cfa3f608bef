"""Options define the scoring scheme that they state; invalid ones give one clear line.

The expected schemes come from the documentation, or are written by hand.
"""

import math

import pytest

from swsearch.errors import InputError, ScoringError
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import DNA, PROTEIN

MATRIX = """# a matrix of two letters and the rest
   A  C  G  T  N
A  5 -4 -4 -4 -2
C -4  5 -4 -4 -2
G -4 -4  5 -4 -2
T -4 -4 -4  5 -2
N -2 -2 -2 -2 -1
"""


def test_defaults_are_blosum62_11_1_and_2_3_5_2():
    """Source: the defaults that the README states."""
    protein, dna = SearchOptions().scheme(PROTEIN), SearchOptions().scheme(DNA)
    assert (protein.matrix.name, protein.gap.open, protein.gap.extend) == ("BLOSUM62", 11, 1)
    assert (dna.matrix.score("A", "A"), dna.matrix.score("A", "C"), dna.gap.open, dna.gap.extend) == (2, -3, 5, 2)


def test_one_of_match_and_mismatch_keeps_the_default_of_the_other():
    scheme = SearchOptions(match=1).scheme(DNA)
    assert (scheme.matrix.score("A", "A"), scheme.matrix.score("A", "C")) == (1, -3)


def test_a_matrix_file_serves_dna(tmp_path):
    """Hand-made file; U scores as T, and letters that the file lacks score as N."""
    path = tmp_path / "nuc.txt"
    path.write_text(MATRIX)
    matrix = SearchOptions(matrix=str(path)).scheme(DNA).matrix
    assert (matrix.score("U", "T"), matrix.score("A", "T"), matrix.score("R", "A")) == (5, -4, -2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top": -1}, "top=-1"),
        ({"evalue": 0.0}, "evalue=0"),
        ({"evalue": math.nan}, "evalue=nan"),
        ({"ties": "some"}, "cut or all"),
        ({"strand": "up"}, "both, plus, minus"),
        ({"dbsize": 0}, "dbsize=0"),
        ({"max_hsps": 0}, "max_hsps=0"),
        ({"mask_mode": "hard"}, "mask_mode='hard': say with mask what"),
    ],
)
def test_values_out_of_range_are_refused_by_name(changes, words):
    with pytest.raises(InputError, match=words):
        SearchOptions(**changes)


@pytest.mark.parametrize(
    ("changes", "alphabet", "words"),
    [
        ({"matrix": "BLOSUM61"}, PROTEIN, "there is no matrix 'BLOSUM61'"),
        ({"matrix": "BLOSUM62"}, DNA, "is for protein"),
        ({"matrix": "HOXD70"}, PROTEIN, "is for DNA"),
        ({"matrix": "nosuch.txt"}, DNA, "there is no matrix 'nosuch.txt'"),
        ({"match": 2}, PROTEIN, "are for DNA"),
        ({"matrix": "BLOSUM62", "match": 2}, PROTEIN, "exclude each other"),
        ({"match": 0}, DNA, "no pair of letters scores above 0, so nothing aligns locally"),
        ({"match": -1}, DNA, "choose 0 to 127"),
        ({"mismatch": 1}, DNA, "a penalty is negative"),
        ({"gap_open": -1}, PROTEIN, "gap open cost -1"),
        ({"gap_open": 0, "gap_extend": 0}, DNA, "cost nothing"),
    ],
)
def test_schemes_that_cannot_be_are_refused_with_advice(changes, alphabet, words):
    with pytest.raises(ScoringError, match=words):
        SearchOptions(**changes).scheme(alphabet)


def test_parameters_are_what_json_can_hold():
    assert SearchOptions(evalue=math.inf).as_parameters()["evalue"] == "inf"
    assert SearchOptions().as_parameters()["evalue"] == 10.0


@pytest.mark.parametrize("changes", [{}, {"translate": "subject"}])
def test_strands_of_proteins_cannot_be_chosen(changes):
    for strand in ("minus", "plus"):
        with pytest.raises(InputError, match=f"strand='{strand}': queries are proteins"):
            SearchOptions(strand=strand, **changes).strands(PROTEIN)
    assert SearchOptions(**changes).strands(PROTEIN) == ("plus",)
    assert SearchOptions(strand="minus", translate="query").query_frames == (-1, -2, -3)


def test_a_matrix_that_is_no_file_is_said_to_be_none(tmp_path, monkeypatch):
    """By hand: a folder, a path that does not exist, a device; a file named like a matrix takes precedence over it."""
    monkeypatch.chdir(tmp_path)
    for name, words in ((str(tmp_path), "Is a directory"), ("no/such", "No such file"), ("/dev/null", "a device")):
        for alphabet in (PROTEIN, DNA):
            with pytest.raises(ScoringError, match=words):
                SearchOptions(matrix=name).scheme(alphabet)
    (tmp_path / "BLOSUM62").mkdir()
    assert SearchOptions(matrix="BLOSUM62").scheme(PROTEIN).matrix.score("W", "W") == 11
    (tmp_path / "PAM30").write_text("  A X\nA 9 -1\nX -1 -1\n")
    assert SearchOptions(matrix="PAM30").scheme(PROTEIN).matrix.score("A", "A") == 9
