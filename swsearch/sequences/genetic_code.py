"""Translation: NCBI's genetic codes, the six reading frames, and the conversion of residue coordinates to bases.

Frames 1, 2 and 3 begin at the first, second and third base of a sequence; frames -1, -2 and -3 begin at those of its
reverse complement, as in BLAST. A frame consists of complete codons. Stops are ``*``, and the first codon is translated
like any other. A codon with ambiguous bases is translated to the amino acid that all codons it represents encode, or
else to ``X``, as in BLAST. A residue is in lower case (softly masked) if at least one of its bases is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

import numpy as np

from swsearch.errors import InputError
from swsearch.sequences.alphabet import DNA, IUPAC_BASES, PROTEIN, SOFT_MASK_BIT, reverse_complement
from swsearch.typing import Codes
from swsearch.words import option

FRAMES: Final = (1, 2, 3, -1, -2, -3)
"""All frames, in order of preference among equal scores."""
STANDARD_CODE: Final = 1
CODON: Final = 3
"""Number of bases of a codon."""

_BASE_MASK: Final = 0x0F
_N_BASE_CODES: Final = 16


def frames_of_strand(strand: str) -> tuple[int, ...]:
    """The frames of ``both`` strands, of ``plus`` or of ``minus``.

    >>> frames_of_strand("minus")
    (-1, -2, -3)
    """
    return tuple(frame for frame in FRAMES if strand == "both" or (frame > 0) == (strand == "plus"))


def frame_length(n_bases: int, frame: int) -> int:
    """Number of residues of a frame of a sequence of ``n_bases`` bases.

    >>> [frame_length(8, frame) for frame in FRAMES]
    [2, 2, 2, 2, 2, 2]
    """
    return max(0, n_bases - (abs(frame) - 1)) // CODON


def base_range(start: int, end: int, frame: int, n_bases: int) -> tuple[int, int]:
    """The interval of bases of the forward sequence that residues ``start`` to ``end`` of a frame cover.

    Both intervals are 0-based and half-open.

    >>> base_range(0, 2, 2, 10), base_range(0, 2, -2, 10)
    ((1, 7), (3, 9))
    """
    offset = abs(frame) - 1
    first, last = offset + CODON * start, offset + CODON * end
    return (first, last) if frame > 0 else (n_bases - last, n_bases - first)


@dataclass(frozen=True, eq=False)
class GeneticCode:
    """A genetic code; immutable, and created by :func:`genetic_code`.

    Attributes
    ----------
    number, name : int, str
        Number and name in NCBI's list.
    residues : uint8 array, shape (4096,)
        Protein code of the codon with base codes a, b, c at index ``a << 8 | b << 4 | c``.
    """

    number: int
    name: str
    residues: Codes

    def codons(self, bases: Codes) -> Codes:
        """The residue of the codon that begins at each base except the last two; uint8, shape (max(0, n - 2),).

        Residues of codons that contain padding are undefined.
        """
        if len(bases) < CODON:
            return np.empty(0, dtype=np.uint8)
        letters = (bases & _BASE_MASK).astype(np.uint16)
        index = letters[:-2] << 8
        index |= letters[1:-1] << 4
        index |= letters[2:]
        masked = bases & SOFT_MASK_BIT
        translated: Codes = self.residues[index]
        translated |= masked[:-2] | masked[1:-1] | masked[2:]
        return translated

    def translate(self, bases: Codes, frame: int) -> Codes:
        """The translation of one frame of a DNA sequence, as protein codes.

        >>> PROTEIN.decode(genetic_code(1).translate(DNA.encode("ATGGCNTRATAa"), 1))
        'MA**'
        """
        along = bases if frame > 0 else reverse_complement(bases)
        return np.ascontiguousarray(self.codons(along)[abs(frame) - 1 :: CODON])


def genetic_code_numbers() -> list[int]:
    """The numbers that :func:`genetic_code` accepts, ascending."""
    from Bio.Data.CodonTable import unambiguous_dna_by_id

    return sorted(unambiguous_dna_by_id)


@cache
def genetic_code(number: int) -> GeneticCode:
    """NCBI's genetic code with this number, from Biopython's tables.

    A codon that may be either an amino acid or a stop is translated as the amino acid.

    Raises
    ------
    InputError
        NCBI has no genetic code with this number.
    """
    from Bio.Data.CodonTable import unambiguous_dna_by_id

    table = unambiguous_dna_by_id.get(number)
    if table is None:
        raise InputError(
            f"{option('genetic_code', number)}: NCBI's codes are {', '.join(map(str, genetic_code_numbers()))}"
        )
    residues = np.empty(_N_BASE_CODES**CODON, dtype=np.uint8)
    for index, codon in enumerate(product(DNA.letters, repeat=CODON)):
        translations = {table.forward_table.get(plain, "*") for plain in _plain_codons(codon)}
        residues[index] = PROTEIN.code(translations.pop() if len(translations) == 1 else "X")
    residues.setflags(write=False)
    return GeneticCode(number, str(table.names[0]), residues)


def _plain_codons(codon: tuple[str, ...]) -> Iterator[str]:
    """All codons of A, C, G and T that a codon with IUPAC letters represents."""
    return map("".join, product(*(IUPAC_BASES[letter] for letter in codon)))
