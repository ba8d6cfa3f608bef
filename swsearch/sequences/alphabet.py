"""Alphabets: the letters that a sequence may contain, and their codes in memory, on disk and in the kernels.

A residue is one byte. Bits 0-4 are the letter's code, and bit 5 is set if the letter was in lower case (soft masking);
bits 6 and 7 are zero. Code 31 is padding: it is not a letter, and every engine scores it such that no alignment
contains it. A byte therefore decodes to exactly the letter that was read, and ``byte & 31`` is its column in a score
table.

Protein letters are those of the NCBI matrices, ``ARNDCQEGHILKMFPSTWYVBZX*``, followed by ``U``, ``O`` and ``J``, which
have the scores of ``X`` but are stored unchanged. DNA letters are ``ACGT``, the IUPAC codes for several bases, and
``U``, which has the scores of ``T`` but is stored unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import AlphabetMismatch, InputError
from swsearch.typing import Codes
from swsearch.words import option

CODE_MASK: Final = 0x1F
SOFT_MASK_BIT: Final = 0x20
PAD_CODE: Final = 31
N_CODES: Final = 32
INVALID: Final = 0xFF
MIN_TELLING_RESIDUES: Final = 30
"""Smallest number of residues by which DNA is distinguished from protein: GATTACA is a peptide as well."""


@dataclass(frozen=True)
class Alphabet:
    """An immutable set of letters with their codes; the two instances are :data:`PROTEIN` and :data:`DNA`.

    Attributes
    ----------
    name : str
        ``protein`` or ``dna``.
    letters : str
        Upper-case letters; a letter's code is its index.
    scored_as : mapping of str to str
        For each letter that has the scores of another letter, this other letter.
    """

    name: str
    letters: str
    scored_as: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __reduce__(self) -> tuple[Callable[[str], Alphabet], tuple[str]]:
        """Pickled by name, so that a record from another process has one of the two instances."""
        return _named, (self.name,)

    @property
    def unknown(self) -> str:
        """The letter that may be any amino acid or base, ``X`` or ``N``."""
        return "X" if self.name == "protein" else "N"

    @cached_property
    def encode_table(self) -> Codes:
        """The code of each byte with the soft-mask bit, and 255 for bytes that are not letters; uint8, shape (256,)."""
        table = np.full(256, INVALID, dtype=np.uint8)
        for code, letter in enumerate(self.letters):
            table[ord(letter.lower())] = code | SOFT_MASK_BIT
            table[ord(letter)] = code  # after the lower case, so that '*' is not flagged
        table.setflags(write=False)
        return table

    @cached_property
    def decode_table(self) -> Codes:
        """The byte of the letter of each code with soft-mask bit, and 0 for other bytes; uint8, shape (256,)."""
        table = np.zeros(256, dtype=np.uint8)
        for code, letter in enumerate(self.letters):
            table[code] = ord(letter)
            table[code | SOFT_MASK_BIT] = ord(letter.lower())
        table.setflags(write=False)
        return table

    @cached_property
    def is_letter(self) -> NDArray[np.bool_]:
        """Whether each byte is the code of a letter, softly masked or not; bool, shape (256,)."""
        table: NDArray[np.bool_] = self.decode_table != 0
        return table

    @cached_property
    def letter_codes(self) -> bytes:
        """The codes of all letters, softly masked or not, ascending."""
        return np.flatnonzero(self.is_letter).astype(np.uint8).tobytes()

    @cached_property
    def identity_table(self) -> Codes:
        """A number for each code; letters that are equal in a CIGAR have the same number; uint8, shape (32,).

        Each letter equals only itself, except that ``U`` of DNA equals ``T``.
        """
        table = np.arange(N_CODES, dtype=np.uint8)
        if self.name == "dna":
            table[self.code("U")] = self.code("T")
        table.setflags(write=False)
        return table

    def encode(self, letters: bytes | str) -> Codes:
        """Codes of a sequence of letters.

        Raises
        ------
        InputError
            A letter is not in the alphabet; the message names the letter and its position.

        >>> PROTEIN.encode("ARNd").tolist()
        [0, 1, 2, 35]
        """
        try:
            raw = letters.encode("utf-8", "surrogateescape") if isinstance(letters, str) else letters
        except UnicodeEncodeError as error:  # half of a pair of UTF-16, which is not a character
            wrong = f"{error.object[error.start]!r} is not in alphabet {self.name} ({self.letters})"
            raise InputError(f"residue {error.start + 1}: {wrong}; correct the record") from error
        codes: Codes = self.encode_table[np.frombuffer(raw, dtype=np.uint8)]
        if codes.size and int(codes.max()) == INVALID:
            index = int(np.argmax(codes == INVALID))
            raise InputError(f"residue {index + 1}: {self.reject(raw[index])}")
        return codes

    def decode(self, codes: Codes) -> str:
        """The letters, in the case in which they were written.

        >>> PROTEIN.decode(PROTEIN.encode("MKUo"))
        'MKUo'
        """
        # An array as index takes three times as long for a part of a few hundred residues.
        return codes.tobytes().translate(self.decode_table.data).decode("ascii")

    def code(self, letter: str) -> int:
        """Code of one upper-case letter."""
        return self.letters.index(letter)

    def reject(self, byte: int) -> str:
        """The message that states why ``byte`` cannot be in a sequence, with advice."""
        shown = repr(chr(byte)) if 0x20 < byte < 0x7F else f"byte 0x{byte:02X}"
        if chr(byte) in "-.":
            profile = ", or search with the alignment as a profile (query --query-format aligned, or a3m)"
            return f"{shown} is a gap; remove it{profile if self is PROTEIN else ''}"
        if self is DNA and PROTEIN.encode_table[byte] != INVALID:
            return f"{shown} is not in alphabet dna; correct the record, or if it is protein: {PROTEIN_ADVICE}"
        return f"{shown} is not in alphabet {self.name} ({self.letters}); correct the record"


PROTEIN: Final = Alphabet(
    "protein",
    "ARNDCQEGHILKMFPSTWYVBZX*UOJ",
    MappingProxyType({"U": "X", "O": "X", "J": "X"}),
)

DNA: Final = Alphabet("dna", "ACGTRYSWKMBDHVNU", MappingProxyType({"U": "T"}))

ALPHABETS: Final[Mapping[str, Alphabet]] = MappingProxyType({"protein": PROTEIN, "dna": DNA})


def _named(name: str) -> Alphabet:
    return ALPHABETS[name]


AMINO_ACIDS: Final = "ARNDCQEGHILKMFPSTWYV"
"""The letters of the 20 amino acids; their codes are 0 to 19."""
N_AMINO_ACIDS: Final = len(AMINO_ACIDS)
N_BASES: Final = 4
"""Their codes, those of A, C, G and T, are 0 to 3."""

IUPAC_AMINO_ACIDS: Final[Mapping[str, str]] = MappingProxyType({"B": "ND", "Z": "QE", "X": AMINO_ACIDS})
"""The amino acids that each protein letter for several stands for (IUPAC-IUB 1984)."""

IUPAC_BASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A": "A", "C": "C", "G": "G", "T": "T", "U": "T",
        "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
        "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
    }
)  # fmt: skip
"""The bases that each DNA letter stands for (IUPAC-IUB 1984)."""

PROTEIN_ADVICE: Final = (
    f"{option('alphabet', 'protein')} indexes proteins, {option('translate', 'subject')} searches DNA with them"
)
"""Advice for letters of protein in DNA; a caller that knows the search replaces it by more specific advice."""

COMPLEMENT: Final[Mapping[str, str]] = MappingProxyType(dict(zip(DNA.letters, "TGCAYRSWMKVHDBNA", strict=True)))
"""The complement of each DNA letter (IUPAC-IUB 1984)."""


def reverse_complement(codes: Codes) -> Codes:
    """The reverse complement of a DNA sequence; soft-mask flags stay with their residues.

    >>> DNA.decode(reverse_complement(DNA.encode("AACgN")))
    'NcGTT'
    """
    table = np.zeros(64, dtype=np.uint8)
    for letter, opposite in COMPLEMENT.items():
        table[DNA.code(letter)] = DNA.code(opposite)
        table[DNA.code(letter) | SOFT_MASK_BIT] = DNA.code(opposite) | SOFT_MASK_BIT
    return table[codes[::-1]]


def detect_alphabet(letters: bytes) -> Alphabet:
    """The most likely alphabet of a sample of letters.

    It is DNA if every letter is an IUPAC base code and at least nine in ten are ``ACGTUN``, and protein otherwise,
    including for an empty sample. Bytes that are not letters are ignored, because readers report them.
    """
    counts = np.bincount(np.frombuffer(letters.upper(), dtype=np.uint8), minlength=256)
    total = int(sum(counts[ord(letter)] for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"))
    bases = int(sum(counts[ord(letter)] for letter in "ACGTUN"))
    iupac = int(sum(counts[ord(letter)] for letter in DNA.letters))
    return DNA if total > 0 and iupac == total and bases * 10 >= total * 9 else PROTEIN


def refuse_dna(path: str | os.PathLike[str], letters: str, alphabet: Alphabet, *, advice: str = "") -> None:
    """Refuse letters of a file that look like DNA if ``alphabet`` is protein, which contains the same letters.

    Parameters
    ----------
    path : path
        Name of the file, for the message.
    letters : str
        A sample of the file's letters.
    alphabet : Alphabet
    advice : str
        Further advice, placed before the advice to give ``--alphabet protein``.

    Raises
    ------
    AlphabetMismatch
        There are 30 letters or more, and they look like DNA.
    """
    if alphabet is not PROTEIN or len(letters) < MIN_TELLING_RESIDUES:
        return
    found = detect_alphabet(letters.encode())
    if found is not alphabet:
        as_protein = f"if it holds proteins all the same, say {option('alphabet', 'protein')}"
        raise AlphabetMismatch(alphabet.name, found.name, os.fspath(path), advice + as_protein)
