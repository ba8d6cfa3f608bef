"""What a search is asked to do, as one frozen object made at the edge. Flags, function arguments and stored parameters
carry the names of its fields.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from swsearch.errors import InputError, ScoringError
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import match_mismatch, matrix_file, matrix_names, named_matrix
from swsearch.scoring.scheme import ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet
from swsearch.sequences.genetic_code import FRAMES, STANDARD_CODE, GeneticCode, frames_of_strand, genetic_code

STRANDS: Final = ("both", "plus", "minus")
TIES: Final = ("cut", "all")
TRANSLATE: Final = ("query", "subject", "both")


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
        Strands of a DNA query that are searched: ``both``, ``plus`` or ``minus``; where it is translated, their
        frames. Protein has ``plus`` alone.
    translate : str, optional
        What is DNA and searched as protein, in six frames: ``query`` (against a protein database), ``subject`` (with
        protein queries) or ``both``.
    genetic_code : int, optional
        NCBI's number of the code to translate with; 1 where it is not given.
    max_hsps : int
        Alignments reported of one subject, at least 1; no two use the same pair of residues.
    matrix : str, optional
        Name of an NCBI matrix, or a file; BLOSUM62 for protein where it is not given.
    match, mismatch : int, optional
        Scores of equal and of different bases in DNA; 2 and -3 where they are not given.
    gap_open, gap_extend : int, optional
        A gap of k residues costs ``gap_open + k * gap_extend``; 11/1 for protein, 5/2 for DNA where not given.
    dbsize : int, optional
        Residues that E-values are scaled to, bases for a DNA database; those of the database where it is not given.

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
    translate: str | None = None
    genetic_code: int | None = None
    max_hsps: int = 1

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
        if self.translate not in (None, *TRANSLATE):
            raise InputError(f"--translate {self.translate!r}: choose {', '.join(TRANSLATE)}")
        if self.genetic_code is not None:
            genetic_code(self.genetic_code)
            if self.translate is None:
                raise InputError(f"--genetic-code {self.genetic_code}: say with --translate what is to be translated")
        if self.max_hsps < 1:
            raise InputError(f"--max-hsps {self.max_hsps}: at least 1 alignment of a subject must be asked for")

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

    @property
    def code(self) -> GeneticCode | None:
        """The genetic code to translate with; None where nothing is translated."""
        return None if self.translate is None else genetic_code(self.genetic_code or STANDARD_CODE)

    @property
    def query_frames(self) -> tuple[int, ...]:
        """The frames that queries are searched in; 0 alone where they are not translated."""
        return frames_of_strand(self.strand) if self.translate in ("query", "both") else (0,)

    @property
    def subject_frames(self) -> tuple[int, ...]:
        """The frames that subjects are searched in; 0 alone where they are not translated."""
        return FRAMES if self.translate in ("subject", "both") else (0,)

    def query_alphabet(self, of_database: Alphabet) -> Alphabet:
        """What queries must be for a database of that alphabet."""
        return of_database if self.translate is None else PROTEIN if self.translate == "subject" else DNA

    def as_parameters(self) -> dict[str, str | int | float | bool | None]:
        """The fields as a run keeps them; an infinite E-value is the word ``inf``, which JSON can hold."""
        fields = asdict(self)
        if math.isinf(self.evalue):
            fields["evalue"] = "inf"
        return fields
