"""What a search is asked to do, as one frozen object made at the edge. Flags, function arguments and stored parameters
carry the names of its fields.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from swsearch.errors import InputError, ScoringError
from swsearch.query.composition import COMPOSITIONS
from swsearch.query.masking import MODES, parse_maskers
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import match_mismatch, matrix_file, matrix_names, named_matrix
from swsearch.scoring.scheme import ScoringScheme, default_scheme
from swsearch.sequences.alphabet import PROTEIN, Alphabet

STRANDS: Final = ("both", "plus", "minus")
TIES: Final = ("cut", "all")


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; the defaults are those of the command line.

    Attributes
    ----------
    top : int
        Subjects reported for each query, at least 1: the best ones of the whole database.
    evalue : float
        Largest E-value reported, above 0; ``inf`` reports every subject that scores at all.
    ties : str
        ``cut`` keeps exactly ``top`` subjects, ``all`` also those that equal the last in E-value and score.
    strand : str
        Strands of a DNA query that are searched: ``both``, ``plus`` or ``minus``. Protein has ``plus`` alone.
    matrix : str, optional
        Name of an NCBI matrix, or a file; BLOSUM62 for protein where it is not given.
    match, mismatch : int, optional
        Scores of equal and of different bases in DNA; 2 and -3 where they are not given.
    gap_open, gap_extend : int, optional
        A gap of k residues costs ``gap_open + k * gap_extend``; 11/1 for protein, 5/2 for DNA where not given.
    dbsize : int, optional
        Residues that E-values are scaled to; those of the database where it is not given.
    mask : str
        What masks queries: ``none``, or maskers separated by commas (:mod:`swsearch.query.masking`).
    mask_mode : str
        ``soft``: masked residues find nothing, but score and align in what the others find; ``hard``: they are X or N.
    composition : str
        ``bias`` lowers scores of letters that are frequent around a query position
        (:mod:`swsearch.query.composition`); ``none`` does not. For protein.

    Raises
    ------
    InputError
        A value is out of its range.
    """

    top: int = 25
    evalue: float = 10.0
    ties: str = "cut"
    strand: str = "both"
    matrix: str | None = None
    match: int | None = None
    mismatch: int | None = None
    gap_open: int | None = None
    gap_extend: int | None = None
    dbsize: int | None = None
    mask: str = "none"
    mask_mode: str = "soft"
    composition: str = "none"

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError(f"--top {self.top}: at least 1 subject must be asked for")
        if math.isnan(self.evalue) or self.evalue <= 0:
            raise InputError(f"--evalue {self.evalue}: choose a number above 0")
        if self.ties not in TIES:
            raise InputError(f"--ties {self.ties!r}: choose {' or '.join(TIES)}")
        if self.strand not in STRANDS:
            raise InputError(f"--strand {self.strand!r}: choose {', '.join(STRANDS)}")
        if self.dbsize is not None and self.dbsize < 1:
            raise InputError(f"--dbsize {self.dbsize}: choose a number of residues, at least 1")
        parse_maskers(self.mask)
        if self.mask_mode not in MODES:
            raise InputError(f"--mask-mode {self.mask_mode!r}: choose {' or '.join(MODES)}")
        if self.composition not in COMPOSITIONS:
            raise InputError(f"--composition {self.composition!r}: choose {' or '.join(COMPOSITIONS)}")

    def scheme(self, alphabet: Alphabet) -> ScoringScheme:
        """The scoring scheme these options mean for sequences of ``alphabet``.

        Raises
        ------
        ScoringError
            The options do not fit the alphabet, or name no usable matrix or gap cost.
        """
        default = default_scheme(alphabet)
        if self.matrix is not None and (self.match is not None or self.mismatch is not None):
            raise ScoringError("--matrix and --match/--mismatch exclude each other; give one of them")
        matrix = default.matrix
        if self.matrix is not None:
            if Path(self.matrix).is_file():
                matrix = matrix_file(self.matrix, alphabet)
            elif alphabet is PROTEIN:
                matrix = named_matrix(self.matrix)
            else:
                advice = "is for protein" if self.matrix.upper() in matrix_names() else "is no file"
                raise ScoringError(
                    f"matrix {self.matrix} {advice}; for DNA give --match and --mismatch, or a matrix file"
                )
        elif self.match is not None or self.mismatch is not None:
            if alphabet is PROTEIN:
                raise ScoringError("--match and --mismatch are for DNA; choose a --matrix for protein")
            matrix = match_mismatch(
                2 if self.match is None else self.match, -3 if self.mismatch is None else self.mismatch
            )
        gap = GapPenalty(
            default.gap.open if self.gap_open is None else self.gap_open,
            default.gap.extend if self.gap_extend is None else self.gap_extend,
        )
        return ScoringScheme(matrix, gap)

    def strands(self, alphabet: Alphabet) -> tuple[str, ...]:
        """The strands that are searched for sequences of ``alphabet``, in the order that breaks ties."""
        if alphabet is PROTEIN:
            return ("plus",)
        return ("plus", "minus") if self.strand == "both" else (self.strand,)

    def as_parameters(self) -> dict[str, str | int | float | bool | None]:
        """The fields as a run keeps them; an infinite E-value is the word ``inf``, which JSON can hold."""
        fields = asdict(self)
        if math.isinf(self.evalue):
            fields["evalue"] = "inf"
        return fields
