"""Letters of long subjects come in pieces. Expected are those cut, and complemented by Biopython, in one piece."""

import io

import pytest
from Bio.Seq import reverse_complement
from hypothesis import given, settings
from hypothesis import strategies as st

import swsearch
from swsearch.sequences.alphabet import DNA
from swsearch.sequences.fasta_text import letters_in_pieces, write_pieces

LENGTH = 2_500_000


@pytest.fixture(scope="module")
def chromosome(tmp_path_factory):
    """A database of a short subject and one of 2.5 million bases, open, and the letters of the second."""
    folder = tmp_path_factory.mktemp("chromosome")
    letters = "".join("ACGTacgtNR"[place * place // 7 % 10] for place in range(10_007)) * (LENGTH // 10_007 + 1)
    letters = letters[:LENGTH]
    (folder / "c.fasta").write_text(f">short\nACGT\n>long\n{letters}\n")
    swsearch.build_database(folder / "c.fasta", folder / "c.db", alphabet=DNA)
    with swsearch.open_database(folder / "c.db") as database:
        yield database, letters


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("part", [(0, LENGTH), (3, 1_048_579), (3, 1_048_580), (1_499_999, LENGTH), (7, 7)])
def test_pieces_are_the_letters_of_the_part(chromosome, part, is_reversed):
    database, letters = chromosome
    pieces = list(letters_in_pieces(database, 1, *part, is_reversed=is_reversed))
    expected = letters[slice(*part)]
    assert "".join(pieces) == (reverse_complement(expected) if is_reversed else expected)
    assert all(0 < len(piece) <= 1 << 20 for piece in pieces)


def test_letters_are_parts_as_python_slices_them(chromosome):
    database, letters = chromosome
    for part in ((0, None), (LENGTH - 5, None), (10, 20), (20, 10), (LENGTH, LENGTH + 9)):
        assert database.letters(1, *part) == letters[slice(*part)]
    assert database.letters(0) == "ACGT"
    with pytest.raises(IndexError):
        database.letters(2)


@settings(deadline=None)
@given(st.lists(st.text("ACGT", max_size=9), max_size=5), st.integers(0, 7))
def test_lines_do_not_depend_on_the_pieces(pieces, width):
    """Source: the letters of all pieces, cut into lines by hand."""
    letters = "".join(pieces)
    stream = io.StringIO()
    write_pieces(stream, "P1", pieces, width)
    lines = [letters[at : at + width] for at in range(0, len(letters), width)] if width else [letters]
    assert stream.getvalue() == "".join(f"{line}\n" for line in [">P1", *lines])
