"""Translation, compared with Biopython, and frames, compared with BLAST's names for them."""

from itertools import product

import numpy as np
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Seq import Seq
from hypothesis import given
from hypothesis import strategies as st

from swsearch.errors import InputError
from swsearch.sequences.alphabet import DNA, IUPAC_BASES, PROTEIN
from swsearch.sequences.genetic_code import (
    FRAMES,
    base_range,
    frame_length,
    frames_of_strand,
    genetic_code,
    genetic_code_numbers,
)
from tests.translated_data import biopython_frame

pytestmark = pytest.mark.filterwarnings("ignore:This table contains")  # codons that are stops and amino acids

ALL_CODONS = list(map("".join, product("ACGT", repeat=3)))


def test_every_codon_of_every_code_is_biopythons():
    """Source: Biopython's translation of the 64 codons, one after the other."""
    letters = "".join(ALL_CODONS)
    for number in genetic_code_numbers():
        found = PROTEIN.decode(genetic_code(number).translate(DNA.encode(letters), 1))
        assert found == str(Seq(letters).translate(number)), number


@pytest.mark.parametrize("number", [1, 2, 11, 31])
def test_an_ambiguous_codon_is_what_all_it_stands_for_share(number):
    """Source: Biopython's translation of each unambiguous codon that one of the 4,096 stands for."""
    code = genetic_code(number)
    plain = {codon: str(Seq(codon).translate(number)) for codon in ALL_CODONS}
    for codon in map("".join, product(DNA.letters, repeat=3)):
        read = {plain["".join(bases)] for bases in product(*(IUPAC_BASES[letter] for letter in codon))}
        expected = read.pop() if len(read) == 1 else "X"
        assert PROTEIN.decode(code.translate(DNA.encode(codon), 1)) == expected, codon


@given(dna=st.text("ACGTUNRYacgt", max_size=40))
def test_frames_are_biopythons(dna):
    """Source: Biopython's translation of the sequence or of its reverse complement, from the frame's first base."""
    for frame in FRAMES:
        found = genetic_code(11).translate(DNA.encode(dna), frame)
        assert PROTEIN.decode(found).upper() == biopython_frame(dna, frame, 11)
        assert len(found) == frame_length(len(dna), frame)


@given(dna=st.text("ACGTN", min_size=3, max_size=40), data=st.data())
def test_residues_lie_where_their_bases_are(dna, data):
    """Source: Biopython's translation of the bases in the reported range."""
    frame = data.draw(st.sampled_from(FRAMES))
    whole = biopython_frame(dna, frame)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    first, last = base_range(start, end, frame, len(dna))
    assert biopython_frame(dna[first:last], 1 if frame > 0 else -1) == whole[start:end]


def test_a_residue_is_soft_masked_where_one_of_its_bases_is():
    """Expected by hand: codons ATG, gCC, AAa, TTT."""
    bases = DNA.encode("ATGgCCAAaTTT")
    assert PROTEIN.decode(genetic_code(1).translate(bases, 1)) == "MakF"
    assert PROTEIN.decode(genetic_code(1).translate(bases, -1)) == "KfgH"


def test_short_sequences_have_empty_frames():
    """Expected by hand."""
    assert [frame_length(4, frame) for frame in FRAMES] == [1, 1, 0, 1, 1, 0]
    for length in range(3):
        assert all(len(genetic_code(1).translate(np.zeros(length, np.uint8), frame)) == 0 for frame in FRAMES)


def test_the_frames_of_a_strand():
    """Expected by hand."""
    assert frames_of_strand("plus") == (1, 2, 3)
    assert frames_of_strand("minus") == (-1, -2, -3)
    assert frames_of_strand("both") == FRAMES


def test_the_codes_are_ncbis():
    """Source: Biopython's tables, which are NCBI's; there is no code 7."""
    assert genetic_code_numbers() == sorted(unambiguous_dna_by_id)
    assert genetic_code(11).name == "Bacterial"
    with pytest.raises(InputError, match=r"genetic_code=7: NCBI's codes are 1, 2, 3, 4, 5, 6, 9"):
        genetic_code(7)
