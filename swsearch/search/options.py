"""The options of a search, as one immutable object, :class:`SearchOptions`.

The names of its fields are also the names of the command-line options, of function arguments, and of the parameters
stored with a run.
"""

from __future__ import annotations

import math
import operator
import os
import re
from dataclasses import asdict, dataclass, fields
from typing import Final

from swsearch.errors import InputError, ScoringError
from swsearch.filters.alignment_filter import AlignmentFilter
from swsearch.filters.subject_filters import SubjectFilters
from swsearch.hits.limits import Limits
from swsearch.query.composition import COMPOSITIONS
from swsearch.query.masking import MODES, parse_maskers
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import SubstitutionMatrix, is_matrix_name, match_mismatch, matrix_file, named_matrix
from swsearch.scoring.scheme import ScoringScheme, default_gap, default_scheme
from swsearch.search import defaults
from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet
from swsearch.sequences.genetic_code import FRAMES, STANDARD_CODE, GeneticCode, frames_of_strand, genetic_code
from swsearch.statistics.ungapped import matrix_lambda

STRANDS: Final = ("both", "plus", "minus")
TIES: Final = ("cut", "all")
TRANSLATE: Final = ("query", "subject", "both")
_LARGEST: Final = defaults.EVERY_SUBJECT
"""Largest accepted score, length and number of subjects."""
_MOST_ITERATIONS: Final = 100
_LARGEST_DBSIZE: Final = 10**17
"""Largest accepted ``dbsize``. Its product with the comparisons of a query with a subject, at most 36, fits 64 bits."""
TRANSLATE_ADVICE: Final = "to translate it say --translate query; "
"""Advice for a query file that looks like DNA although queries must be protein."""


def _is_missing_path(name: str) -> bool:
    """Whether a name is a path to a missing file: a path has a folder, the name of a matrix has none."""
    return os.sep in name and not os.path.exists(name)


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; the defaults are those of the command line.

    Attributes
    ----------
    top : int
        Number of subjects reported for each query, at least 1: the best ones of the complete database.
    evalue : float
        Largest E-value reported, above 0; ``inf`` reports every subject with a score above 0.
    ties : str
        ``cut`` reports exactly ``top`` subjects, ``all`` also those that equal the last in E-value and score.
    strand : str
        Strands of a DNA query that are searched: ``both``, ``plus`` or ``minus``; of a translated query, the strands
        whose frames are searched. Protein queries allow only ``both``, the default.
    translate : str, optional
        Which side is DNA and translated in six frames: ``query`` (against a protein database), ``subject`` (with
        protein queries) or ``both``.
    genetic_code : int, optional
        NCBI's number of the genetic code; 1 by default.
    max_hsps : int
        Largest number of alignments reported for one subject, at least 1; no two share a pair of residues.
    matrix : str, optional
        Name of a matrix (:func:`swsearch.scoring.matrix.matrix_names`), or a file; BLOSUM62 for protein by default.
    match, mismatch : int, optional
        Scores of equal and of different bases in DNA; 2 and -3 by default.
    gap_open, gap_extend : int, optional
        A gap of k residues costs ``gap_open + k * gap_extend``; by default the costs of the matrix
        (:func:`swsearch.scoring.scheme.default_gap`), 11/1 with BLOSUM62 and 5/2 for match and mismatch scores.
    dbsize : int, optional
        Database size to which E-values refer, in residues, or in bases for a DNA database; by default the actual size
        of the database.
    mask : str
        How queries are masked: ``none``, or names of maskers separated by commas (:mod:`swsearch.query.masking`).
    mask_mode : str
        ``soft``: masked residues do not contribute to the decision which subjects are reported, but have their usual
        scores in the reported alignments; ``hard``: masked residues are replaced by X or N.
    composition : str
        ``bias`` lowers the scores of letters that are frequent around a query position
        (:mod:`swsearch.query.composition`); ``none`` does not change scores. For protein only.
    min_score : int, optional
        Lowest raw score reported, at least 1.
    min_bits : float, optional
        Lowest bit score reported; requires a scoring scheme with statistics.
    min_identity, min_query_coverage, min_subject_coverage : float, optional
        Lowest percentages, 0 to 100, of a reported alignment (:mod:`swsearch.filters.alignment_filter`).
    min_alignment_length : int, optional
        Smallest number of columns of a reported alignment, at least 1.
    min_length, max_length : int, optional
        Smallest and largest number of residues of a subject that is searched, at least 1.
    id_pattern : str, optional
        Python regular expression that must match somewhere in the first word of a subject's header.
    include, exclude : str, optional
        Files with the identifiers of the only subjects to search, or of subjects to leave out
        (:mod:`swsearch.sequences.identifiers`).
    taxid : str, optional
        NCBI taxonomy ids separated by commas; subjects of other organisms are not searched.
    taxid_map, taxonomy : str, optional
        Files for ``taxid`` (:mod:`swsearch.filters.taxonomy`) and for the columns of taxa in reports: the taxonomy ids
        of the subjects, and NCBI's taxdump. By default, those that the database has stored.
    iterations : int
        Largest number of rounds of an iterated search (:mod:`swsearch.search.rounds`), 1 to 100; 1 does not iterate.
        For protein queries only.
    inclusion_evalue : float
        Largest E-value of a subject that is included in the profile of the next round, above 0 and at most ``evalue``.

    Raises
    ------
    InputError
        A value is out of its range.
    """

    top: int = defaults.TOP
    evalue: float = defaults.EVALUE
    ties: str = defaults.TIES
    strand: str = defaults.STRAND
    matrix: str | None = None
    match: int | None = None
    mismatch: int | None = None
    gap_open: int | None = None
    gap_extend: int | None = None
    dbsize: int | None = None
    mask: str = defaults.MASK
    mask_mode: str = defaults.MASK_MODE
    composition: str = defaults.COMPOSITION
    translate: str | None = None
    genetic_code: int | None = None
    max_hsps: int = defaults.MAX_HSPS
    min_score: int | None = None
    min_bits: float | None = None
    min_identity: float | None = None
    min_query_coverage: float | None = None
    min_subject_coverage: float | None = None
    min_alignment_length: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    id_pattern: str | None = None
    include: str | None = None
    exclude: str | None = None
    taxid: str | None = None
    taxid_map: str | None = None
    taxonomy: str | None = None
    iterations: int = defaults.ITERATIONS
    inclusion_evalue: float = defaults.INCLUSION_EVALUE

    def __post_init__(self) -> None:
        self._check_types()
        if self.top < 1:
            raise InputError(f"--top {self.top}: at least 1 subject must be asked for")
        if self.top > _LARGEST:
            raise InputError(f"--top {self.top}: {_LARGEST:,} at most; that is every subject of any database")
        if math.isnan(self.evalue) or self.evalue <= 0:
            raise InputError(f"--evalue {self.evalue}: choose a number above 0")
        if self.ties not in TIES:
            raise InputError(f"--ties {self.ties!r}: choose {' or '.join(TIES)}")
        if self.strand not in STRANDS:
            raise InputError(f"--strand {self.strand!r}: choose {', '.join(STRANDS)}")
        if self.dbsize is not None and not 1 <= self.dbsize <= _LARGEST_DBSIZE:
            raise InputError(f"--dbsize {self.dbsize}: choose a number of residues, at least 1, at most 10^17")
        self._check_translation()
        self._check_iterations()
        self._check_filters()
        parse_maskers(self.mask)
        if self.mask_mode not in MODES:
            raise InputError(f"--mask-mode {self.mask_mode!r}: choose {' or '.join(MODES)}")
        if self.mask_mode == "hard" and self.mask == "none":
            raise InputError("--mask-mode hard: say with --mask what is to be masked")
        if self.composition not in COMPOSITIONS:
            raise InputError(f"--composition {self.composition!r}: choose {' or '.join(COMPOSITIONS)}")

    def _check_types(self) -> None:
        """Refuse fields that must be numbers and are not; convert numbers of NumPy to those of Python, for JSON."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or "str" in str(field.type):
                continue
            try:
                if isinstance(value, bool):
                    raise TypeError
                number = float(value) if "float" in str(field.type) else operator.index(value)
                if isinstance(value, str):
                    raise TypeError
            except (TypeError, ValueError, OverflowError) as error:
                kind = "a number" if "float" in str(field.type) else "a whole number"
                raise InputError(f"--{field.name.replace('_', '-')} {value!r}: {kind} is needed") from error
            object.__setattr__(self, field.name, number)

    def _check_filters(self) -> None:
        for name in ("min_score", "min_alignment_length", "min_length", "max_length"):
            count = getattr(self, name)
            if count is not None and not 1 <= count <= _LARGEST:
                raise InputError(f"--{name.replace('_', '-')} {count}: choose a whole number, 1 to {_LARGEST:,}")
        for name in ("min_identity", "min_query_coverage", "min_subject_coverage"):
            percent = getattr(self, name)
            if percent is not None and not 0 <= percent <= 100:
                raise InputError(f"--{name.replace('_', '-')} {percent}: choose a percentage, 0 to 100")
        if self.min_bits is not None and not 0 <= self.min_bits <= _LARGEST:
            raise InputError(f"--min-bits {self.min_bits}: choose a number, 0 to {_LARGEST:,}")
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise InputError(f"--min-length {self.min_length} is above --max-length {self.max_length}; no subject fits")
        if self.id_pattern is not None:
            if not self.id_pattern:
                raise InputError("--id-pattern is empty, and so found in every identifier; leave it out")
            try:
                re.compile(self.id_pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise InputError(f"--id-pattern {self.id_pattern!r} is no regular expression: {error}") from error

    def _check_iterations(self) -> None:
        if not 1 <= self.iterations <= _MOST_ITERATIONS:
            raise InputError(f"--iterations {self.iterations}: choose a whole number, 1 to {_MOST_ITERATIONS}")
        if not 0 < self.inclusion_evalue < math.inf:
            raise InputError(f"--inclusion-evalue {self.inclusion_evalue}: choose a number above 0, and not inf")
        if self.iterations == 1:
            if self.inclusion_evalue != defaults.INCLUSION_EVALUE:
                raise InputError(
                    f"--inclusion-evalue {self.inclusion_evalue:g} is for iterated searches; say how many --iterations"
                )
            return
        if self.inclusion_evalue > self.evalue:
            problem = f"--inclusion-evalue {self.inclusion_evalue:g} is above --evalue {self.evalue:g}"
            raise InputError(f"{problem}; only reported subjects can be included")
        if self.translate in ("query", "both"):
            raise InputError(f"--iterations {self.iterations}: no profile is made of a translated query")

    @property
    def subject_filters(self) -> SubjectFilters:
        """The conditions that a subject must meet to be aligned."""
        return SubjectFilters(**{field.name: getattr(self, field.name) for field in fields(SubjectFilters)})

    @property
    def alignment_filter(self) -> AlignmentFilter:
        """The conditions on reported alignments; false as a bool if there are none."""
        return AlignmentFilter(
            self.min_identity or 0.0,
            self.min_query_coverage or 0.0,
            self.min_subject_coverage or 0.0,
            self.min_alignment_length or 0,
        )

    @property
    def limits(self) -> Limits:
        """Which alignments are listed, what a round includes, and where a list ends."""
        return Limits(
            self.top,
            self.ties,
            self.evalue,
            self.max_hsps,
            self.min_score,
            self.min_bits,
            self.inclusion_evalue if self.iterations > 1 else None,
        )

    def _check_translation(self) -> None:
        if self.translate not in (None, *TRANSLATE):
            raise InputError(f"--translate {self.translate!r}: choose {', '.join(TRANSLATE)}")
        if self.genetic_code is not None:
            genetic_code(self.genetic_code)
            if self.translate is None:
                raise InputError(f"--genetic-code {self.genetic_code}: say with --translate what is to be translated")
        if self.max_hsps < 1:
            raise InputError(f"--max-hsps {self.max_hsps}: at least 1 alignment of a subject must be asked for")
        if self.max_hsps > _LARGEST:
            raise InputError(f"--max-hsps {self.max_hsps}: {_LARGEST:,} alignments of a subject at most")

    def scheme(self, alphabet: Alphabet, *, local: bool = True) -> ScoringScheme:
        """The scoring scheme of these options for sequences of ``alphabet``.

        Parameters
        ----------
        alphabet : Alphabet
        local : bool
            Whether alignments are local, which requires a positive score.

        Raises
        ------
        ScoringError
            The options do not fit the alphabet, the matrix cannot be used, or the gap costs are invalid.
        InputError
            The search is to be iterated, and the alphabet is not that of proteins.
        """
        if self.matrix is not None and (self.match is not None or self.mismatch is not None):
            raise ScoringError("--matrix and --match/--mismatch exclude each other; give one of them")
        matrix = default_scheme(alphabet).matrix
        if self.matrix is not None:
            matrix = self._matrix(self.matrix, alphabet)
        elif self.match is not None or self.mismatch is not None:
            if alphabet is PROTEIN:
                raise ScoringError("--match and --mismatch are for DNA; choose a --matrix for protein")
            matrix = match_mismatch(
                2 if self.match is None else self.match, -3 if self.mismatch is None else self.mismatch
            )
        usual = default_gap(matrix)
        gap = GapPenalty(
            usual.open if self.gap_open is None else self.gap_open,
            usual.extend if self.gap_extend is None else self.gap_extend,
        )
        if self.iterations > 1:
            if alphabet is not PROTEIN:
                raise InputError(
                    f"--iterations {self.iterations}: only searches with proteins can be iterated; say --iterations 1"
                )
            if matrix_lambda(matrix) is None:
                raise ScoringError(
                    f"--iterations {self.iterations}: matrix {matrix.name} scores random residues 0 or more on "
                    "average, so no profile can be estimated; choose another matrix"
                )
        scheme = ScoringScheme(matrix, gap)
        if local:
            scheme.check_local()
        return scheme

    @staticmethod
    def _matrix(name: str, alphabet: Alphabet) -> SubstitutionMatrix:
        """A matrix by its name, or from a file; a file takes precedence over a matrix of the same name."""
        known = is_matrix_name(name)
        if os.path.isfile(name) or (not known and (os.path.isdir(name) or _is_missing_path(name))):
            return matrix_file(name, alphabet)
        if not known and os.path.exists(name):
            raise ScoringError(f"matrix {name} is a pipe or a device, which cannot be read twice; give a file")
        matrix = named_matrix(name)
        if matrix.alphabet is not alphabet:
            if alphabet is DNA:
                advice = "for DNA give --match and --mismatch, another matrix such as NUC.4.4, or a matrix file"
                raise ScoringError(f"matrix {name} is for protein; {advice}")
            raise ScoringError(
                f"matrix {name} is for DNA; for protein give another, such as BLOSUM62, or a matrix file"
            )
        return matrix

    def strands(self, alphabet: Alphabet) -> tuple[str, ...]:
        """The strands that are searched for sequences of ``alphabet``, in order of preference among equal scores.

        Raises
        ------
        InputError
            ``strand`` is ``plus`` or ``minus``, and queries are protein.
        """
        if alphabet is PROTEIN:
            if self.strand != "both" and self.query_frames == (0,):
                raise InputError(f"--strand {self.strand}: queries are proteins, which have one strand; leave it out")
            return ("plus",)
        return ("plus", "minus") if self.strand == "both" else (self.strand,)

    @property
    def code(self) -> GeneticCode | None:
        """The genetic code of the translation; None if neither side is translated."""
        return None if self.translate is None else genetic_code(self.genetic_code or STANDARD_CODE)

    @property
    def query_frames(self) -> tuple[int, ...]:
        """The frames in which queries are searched; ``(0,)`` if they are not translated."""
        return frames_of_strand(self.strand) if self.translate in ("query", "both") else (0,)

    @property
    def subject_frames(self) -> tuple[int, ...]:
        """The frames in which subjects are searched; ``(0,)`` if they are not translated."""
        return FRAMES if self.translate in ("subject", "both") else (0,)

    def aligned_alphabet(self, database: Alphabet) -> Alphabet:
        """The alphabet of the aligned sequences, for a database of the alphabet ``database``."""
        return PROTEIN if self.translate else database

    def as_parameters(self) -> dict[str, str | int | float | bool | None]:
        """The fields as a run stores them; an infinite E-value is the string ``inf``, because JSON has no infinity."""
        parameters = asdict(self)
        if math.isinf(self.evalue):
            parameters["evalue"] = "inf"
        if self.iterations == 1:  # as in runs that were stored before searches could be iterated
            del parameters["iterations"], parameters["inclusion_evalue"]
        return parameters
