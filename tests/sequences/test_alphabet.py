"""Alphabets: every letter is decoded as it was written, and complements are those of IUPAC."""

import numpy as np
import pytest
from Bio.Seq import Seq
from hypothesis import given
from hypothesis import strategies as st

from swsearch.errors import InputError
from swsearch.sequences.alphabet import (
    CODE_MASK,
    DNA,
    PAD_CODE,
    PROTEIN,
    SOFT_MASK_BIT,
    detect_alphabet,
    reverse_complement,
)

PROTEIN_TEXT = st.text(alphabet=PROTEIN.letters + PROTEIN.letters.lower(), max_size=80)
DNA_TEXT = st.text(alphabet=DNA.letters + DNA.letters.lower(), max_size=80)


@given(PROTEIN_TEXT)
def test_protein_letters_come_back_as_written(text):
    assert PROTEIN.decode(PROTEIN.encode(text)) == text


@given(DNA_TEXT)
def test_dna_letters_come_back_as_written(text):
    assert DNA.decode(DNA.encode(text)) == text


def test_codes_follow_the_ncbi_order_and_leave_room_for_padding():
    """Source: the letter order of NCBI's matrix files."""
    assert PROTEIN.encode("ARNDCQEGHILKMFPSTWYVBZX*").tolist() == list(range(24))
    assert max(len(PROTEIN.letters), len(DNA.letters)) <= PAD_CODE
    assert PROTEIN.encode("a")[0] == SOFT_MASK_BIT
    assert PROTEIN.encode("*")[0] & CODE_MASK == 23


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("MK1", "residue 3: '1' is not in alphabet protein"),
        ("MK-", "residue 3: '-' is a gap"),
        ("M\0K", "residue 2: byte 0x00"),
        ("MÄ", "residue 2: byte 0xC3"),
    ],
)
def test_foreign_letters_are_named_with_their_place(letters, words):
    with pytest.raises(InputError, match=words):
        PROTEIN.encode(letters)


def test_protein_letters_in_dna_advise_the_other_alphabet():
    with pytest.raises(InputError, match="if it is protein: alphabet='protein' indexes"):
        DNA.encode("ACGTL")


@given(DNA_TEXT)
def test_the_reverse_complement_is_biopythons(text):
    """Source: Biopython's Seq.reverse_complement, which also converts U of a DNA sequence to A."""
    assert DNA.decode(reverse_complement(DNA.encode(text))) == str(Seq(text).reverse_complement())


@pytest.mark.parametrize(
    ("letters", "name"),
    [
        (b"ACGTACGTNNNN", "dna"),
        (b"acguuacg", "dna"),
        (b"ACGTRYKM", "protein"),  # half of the letters are ambiguity codes: more likely a peptide
        (b"MKVLAAGIV", "protein"),
        (b"ACGTL", "protein"),
        (b"", "protein"),
        (b"ACGT 12\nACGT", "dna"),
    ],
)
def test_alphabets_are_detected_from_the_letters(letters, name):
    assert detect_alphabet(letters).name == name


def test_u_counts_as_t_in_dna_and_nothing_else_is_confused():
    table = DNA.identity_table
    assert table[DNA.code("U")] == table[DNA.code("T")]
    assert len(np.unique(table)) == 31
    assert len(np.unique(PROTEIN.identity_table)) == 32
