"""Masking of queries: residues of low complexity and repeats are identified and marked in the query's letters.

A query is masked after it is read and before it is scored. Maskers identify the residues; the mode determines how they
are treated:

``hard``
    Masked residues become ``X`` (protein) or ``N`` (DNA), as if the file contained these letters.
``soft``
    Masked residues are written in lower case. They have the scores of ``X`` or ``N`` in the decision which subjects are
    reported, and their own scores in the reported scores and alignments (:mod:`swsearch.search.frames`).

In both modes, the letters of a query show which residues were masked: all other letters are in upper case.

Maskers
-------
``tantan``
    Simple and tandem repeats of protein and DNA (Frith 2011, doi 10.1093/nar/gkq1212), through pydustmasker.
``dust``
    Symmetric DUST for DNA (Morgulis and others 2006, doi 10.1089/cmb.2006.13.1028), through pydustmasker.
``seg``
    SEG for protein (Wootton and Federhen 1993), through NCBI's program ``segmasker``.
``lower``
    The letters that are in lower case in the file.

Each masker is run with its published default parameters, so the same letters are masked on every machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from swsearch.errors import InputError
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import CODE_MASK, DNA, PROTEIN, SOFT_MASK_BIT, Alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Mask, ScoreTable
from swsearch.words import option

MIN_DUST_BASES: Final = 4
"""Smallest number of bases that can be of low complexity: DUST counts triplets that occur more than once."""


_SEG_INTERVAL: Final = re.compile(r"^(\d+) - (\d+)$", re.MULTILINE)


def _library() -> Any:
    try:
        import pydustmasker
    except ImportError as error:
        raise InputError(
            f"{option('mask', 'tantan')} and dust need pydustmasker; install it with: pip install 'swsearch[mask]'"
        ) from error
    return pydustmasker


def _tantan(letters: str, alphabet: Alphabet) -> Iterable[tuple[int, int]]:
    found: Iterable[tuple[int, int]] = _library().TantanMasker(letters, protein=alphabet is PROTEIN).intervals
    return found


def _dust(letters: str, alphabet: Alphabet) -> Iterable[tuple[int, int]]:
    if len(letters) < MIN_DUST_BASES:
        return ()
    found: Iterable[tuple[int, int]] = _library().DustMasker(letters).intervals
    return found


def _segmasker() -> str:
    program = shutil.which("segmasker")
    if program is None:
        raise InputError(
            f"{option('mask', 'seg')} needs NCBI's program segmasker on the PATH; "
            "install BLAST+ (on Debian: apt install ncbi-blast+)"
        )
    return program


def _seg(letters: str, alphabet: Alphabet) -> Iterable[tuple[int, int]]:
    ran = subprocess.run(
        [_segmasker(), "-in", "-", "-infmt", "fasta", "-outfmt", "interval"],
        input=f">query\n{letters}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        said = (ran.stderr.strip() or "it says nothing").splitlines()[0]
        raise InputError(f"{option('mask', 'seg')}: segmasker ended with exit code {ran.returncode}: {said}")
    return [(int(first), int(last) + 1) for first, last in _SEG_INTERVAL.findall(ran.stdout)]


@dataclass(frozen=True)
class _Masker:
    """A masker: its alphabets, a check that it is installed, and a function that returns its half-open intervals."""

    alphabets: tuple[Alphabet, ...]
    require: Callable[[], object]
    intervals: Callable[[str, Alphabet], Iterable[tuple[int, int]]]


_MASKERS: Final = {
    "tantan": _Masker((PROTEIN, DNA), _library, _tantan),
    "dust": _Masker((DNA,), _library, _dust),
    "seg": _Masker((PROTEIN,), _segmasker, _seg),
}
LOWER: Final = "lower"
MASKERS: Final = (*_MASKERS, LOWER)


def parse_maskers(text: str) -> tuple[str, ...]:
    """The maskers in the value of ``--mask``, separated by commas; a residue is masked if any of them masks it.

    Raises
    ------
    InputError
        A name is unknown, or ``none`` is combined with another name.

    >>> parse_maskers("tantan,lower"), parse_maskers("none")
    (('tantan', 'lower'), ())
    """
    names = tuple(part.strip() for part in text.split(","))
    if names == ("none",):
        return ()
    for name in names:
        if name not in MASKERS:
            raise InputError(
                f"{option('mask', text)}: choose none, or one or more of {', '.join(MASKERS)} separated by commas"
            )
    return names


def scored_letters(codes: Codes, alphabet: Alphabet) -> str:
    """The letters in upper case; each letter that has the scores of another letter is replaced by that letter.

    >>> scored_letters(PROTEIN.encode("MkUw"), PROTEIN)
    'MKXW'
    """
    letters = alphabet.decode(codes).upper()
    for letter, other in alphabet.scored_as.items():
        letters = letters.replace(letter, other)
    return letters


class Masking:
    """The masking of the queries of a search by ``--mask`` and ``--mask-mode``; immutable.

    Parameters
    ----------
    names : str
        As for :func:`parse_maskers`.
    mode : str
        ``soft`` or ``hard``.
    alphabet : Alphabet
        That of the aligned sequences.

    Raises
    ------
    InputError
        A masker is unknown, does not support the alphabet, or is not installed.

    >>> record = SequenceRecord("q", PROTEIN.encode("MKvlAA"), PROTEIN)
    >>> [Masking("lower", mode, PROTEIN).masked(record).letters for mode in ("hard", "soft")]
    ['MKXXAA', 'MKvlAA']
    """

    def __init__(self, names: str, mode: str, alphabet: Alphabet) -> None:
        self._maskers = parse_maskers(names)
        self._mode = mode
        self._alphabet = alphabet
        self._unknown = alphabet.code(alphabet.unknown)
        for name in self._maskers:
            if name == LOWER:
                continue
            if alphabet not in _MASKERS[name].alphabets:
                others = ", ".join(other for other, one in _MASKERS.items() if alphabet in one.alphabets)
                raise InputError(f"{option('mask', name)} is not for {alphabet.name}; choose {others} or {LOWER}")
            _MASKERS[name].require()

    def residues(self, codes: Codes) -> Mask:
        """The residues that any masker masks, as a bool array of shape (length,).

        ``codes``, uint8 of shape (length,), are residue codes with their soft-mask flags.

        Raises
        ------
        InputError
            segmasker fails.
        """
        masked: Mask = np.zeros(len(codes), dtype=bool)
        letters = scored_letters(codes, self._alphabet)
        for name in self._maskers:
            if name == LOWER:
                masked |= (codes & SOFT_MASK_BIT) != 0
                continue
            for start, stop in _MASKERS[name].intervals(letters, self._alphabet):
                masked[start:stop] = True
        return masked

    def masked(self, record: SequenceRecord) -> SequenceRecord:
        """The record as it is searched and reported, with its mask in its letters; itself if there are no maskers."""
        if not self._maskers:
            return record
        masked = self.residues(record.codes)
        codes = record.codes & np.uint8(CODE_MASK)
        if self._mode == "hard":
            codes[masked] = self._unknown
        else:
            codes[masked] |= SOFT_MASK_BIT
        return replace(record, codes=codes)

    def hidden(self, codes: Codes) -> Codes | None:
        """The codes that decide which subjects are reported for a softly masked query; None if no residue is.

        Masked residues have the code of ``X`` or ``N`` there.
        """
        masked = (codes & SOFT_MASK_BIT) != 0
        return np.where(masked, np.uint8(self._unknown), codes) if self._mode == "soft" and masked.any() else None

    def hidden_scores(self, codes: Codes, scores: ScoreTable, matrix: SubstitutionMatrix) -> ScoreTable | None:
        """The same for position-specific scores, one row per residue: masked residues have the scores of ``X``."""
        if self.hidden(codes) is None:
            return None
        is_masked = ((codes & SOFT_MASK_BIT) != 0)[:, None]
        return np.where(is_masked, matrix.scores[self._unknown], scores)
