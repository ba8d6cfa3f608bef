"""The options of a search, as one immutable object, :class:`SearchOptions`.

The names of its fields are also the names of the command-line options, of function arguments, and of the parameters
stored with a run. Their defaults and ranges are those of :data:`swsearch.options.SEARCH_OPTIONS`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from swsearch.arguments import whole_number
from swsearch.errors import InputError, ScoringError, WrongType
from swsearch.hits.limits import Limits, SubjectFilters
from swsearch.options import INCLUSION_EVALUE, SEARCH_OPTIONS
from swsearch.scoring.matrix import (
    SubstitutionMatrix,
    is_matrix_name,
    match_mismatch,
    matrix_file,
    matrix_name,
    named_matrix,
)
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_gap, default_scheme
from swsearch.scoring.ungapped import matrix_lambda
from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet
from swsearch.sequences.genetic_code import FRAMES, STANDARD_CODE, GeneticCode, frames_of_strand, genetic_code
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.query.contexts import Contexts


def _taxids(given: Any) -> str:
    """Taxonomy ids as one string: they are given as a string, a number, or several of these."""
    if isinstance(given, str):
        return given
    several = given if isinstance(given, Iterable) and not isinstance(given, (bytes, bytearray)) else [given]
    try:
        return ",".join(one if isinstance(one, str) else str(whole_number("taxid", one)) for one in several)
    except WrongType as error:
        raise WrongType(f"{option('taxid', given)}: give NCBI taxonomy ids, such as 9606 or '9606,10090'") from error


def _default(name: str) -> Any:
    """The default of the table."""
    return SEARCH_OPTIONS[name].default


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
        protein queries) or ``both``; ``none`` is the default.
    genetic_code : int, optional
        NCBI's number of the genetic code; 1 by default.
    max_hsps : int, optional
        Largest number of alignments reported for one subject, at least 1; no two share a pair of residues. By default
        one; but all with E-values up to 10 of a translated subject, or of a DNA subject of 10,000 bases or more.
    count_hsps : bool
        Whether the alignments of each reported subject that meet all limits but ``max_hsps`` are counted
        (:attr:`swsearch.hits.hit.Hit.n_hsps`). It does not change which alignments are reported.
    max_intron : int, optional
        Largest number of bases between two alignments of a protein with a translated subject that are joined to a chain
        (:mod:`swsearch.hits.chains`), whose E-value they have; by default, there are no chains.
    matrix : str or path, optional
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
        Lowest percentages, 0 to 100, of a reported alignment (:mod:`swsearch.hits.limits`).
    min_alignment_length : int, optional
        Smallest number of columns of a reported alignment, at least 1.
    min_length, max_length : int, optional
        Smallest and largest number of residues of a subject that is searched, at least 1.
    id_pattern : str, optional
        Regular expression that must match somewhere in the first word of a subject's header
        (:func:`swsearch.filters.subject_filters.identifier_pattern` states its syntax).
    include, exclude : path, optional
        Files with the identifiers of the only subjects to search, or of subjects to leave out
        (:mod:`swsearch.sequences.headers`).
    taxid : str, int or sequence of these, optional
        NCBI taxonomy ids; subjects of other organisms are not searched. The field has them as a string, separated by
        commas.
    taxid_map, taxonomy : path, optional
        Files for ``taxid`` (:mod:`swsearch.taxonomy.taxon_filter`) and for the columns of taxa in reports: the taxonomy
        ids of the subjects, and NCBI's taxdump. By default, those that the database has stored.
    iterations : int
        Largest number of rounds of an iterated search (:mod:`swsearch.search.rounds`), 1 to 100; 1 does not iterate.
        For protein queries only.
    inclusion_evalue : float
        Largest E-value of a subject that is included in the profile of the next round, above 0 and at most ``evalue``;
        the default stands for ``evalue`` if that is smaller.
    sensitive : bool
        Whether proteins are scored with columns that are predicted from their context, and subjects are ranked by the
        sum over all alignments (:mod:`swsearch.search.rescoring`).
    contexts : path, optional
        File with the library of contexts of a sensitive search (:func:`swsearch.query.contexts.read_contexts`); by
        default that of the program.

    Raises
    ------
    InputError
        A value is out of its range; a WrongType if it is of a type that the field does not take.
    ScoringError
        There is no matrix of this name.
    """

    top: int = _default("top")
    evalue: float = _default("evalue")
    ties: str = _default("ties")
    strand: str = _default("strand")
    matrix: str | None = None
    match: int | None = None
    mismatch: int | None = None
    gap_open: int | None = None
    gap_extend: int | None = None
    dbsize: int | None = None
    mask: str = _default("mask")
    mask_mode: str = _default("mask_mode")
    composition: str = _default("composition")
    translate: str | None = None
    genetic_code: int | None = None
    max_hsps: int | None = None
    count_hsps: bool = _default("count_hsps")
    max_intron: int | None = None
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
    iterations: int = _default("iterations")
    inclusion_evalue: float = _default("inclusion_evalue")
    sensitive: bool = _default("sensitive")
    contexts: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            row, value = SEARCH_OPTIONS[field.name], getattr(self, field.name)
            is_several = row.name == "taxid" and value is not None
            object.__setattr__(self, row.name, _taxids(value) if is_several else row.check(value))
        if self.translate == "none":
            object.__setattr__(self, "translate", None)
        self._check_translation()
        self._check_iterations()
        self._check_sensitive()
        self._check_chains()
        self._check_filters()
        self._check_matrix()
        if self.mask != "none":
            from swsearch.query.masking import parse_maskers

            parse_maskers(self.mask)
        if self.mask_mode == "hard" and self.mask == "none":
            raise InputError(f"{self._given('mask_mode')}: say with {option('mask')} what is to be masked")

    def _given(self, name: str) -> str:
        """The option with its value, for a message."""
        return option(name, getattr(self, name))

    def _check_matrix(self) -> None:
        """Refuse what is neither the name of a matrix nor a path; a path has a folder, or its file is there.

        Files are read by :meth:`scheme`.
        """
        name = self.matrix
        if name is not None and os.sep not in name and not os.path.exists(name):
            matrix_name(name)

    def _check_filters(self) -> None:
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise InputError(f"{self._given('min_length')} is above {self._given('max_length')}; no subject fits")
        if self.taxid is not None:
            from swsearch.taxonomy.taxon_filter import parse_taxids  # its import takes a few milliseconds

            parse_taxids(self.taxid)
        if self.id_pattern is not None:
            from swsearch.filters.subject_filters import identifier_pattern

            identifier_pattern(self.id_pattern)

    def _check_chains(self) -> None:
        if self.max_intron is None:
            return
        if self.translate != "subject":
            advice = f"say {option('translate', 'subject')}"
            raise InputError(f"{self._given('max_intron')} is for proteins against a genome; {advice}")
        if self.max_hsps is not None:
            raise InputError(
                f"{self._given('max_intron')} joins all significant alignments; leave {option('max_hsps')} out"
            )
        if self.count_hsps:
            problem = f"{self._given('max_intron')} reports all significant alignments"
            raise InputError(f"{problem}; leave {option('count_hsps', True)} out")
        if self.iterations > 1:
            raise InputError(f"{self._given('max_intron')}: an iterated search has no chains; leave one out")

    def _check_iterations(self) -> None:
        if self.iterations == 1:
            if self.inclusion_evalue != INCLUSION_EVALUE:
                advice = f"say how many {option('iterations')}"
                raise InputError(f"{self._given('inclusion_evalue')} is for iterated searches; {advice}")
            return
        if self.evalue < self.inclusion_evalue != INCLUSION_EVALUE:
            problem = f"{self._given('inclusion_evalue')} is above {self._given('evalue')}"
            raise InputError(f"{problem}; only reported subjects can be included")
        if self.translate in ("query", "both"):
            raise InputError(f"{self._given('iterations')}: no profile is made of a translated query")

    def _check_sensitive(self) -> None:
        if not self.sensitive:
            if self.contexts is not None:
                raise InputError(f"{self._given('contexts')} is for {option('sensitive', True)}; give both")
            return
        usual = {"translate": (None,), "mask": ("none",), "composition": ("adjust",)}
        for name, values in usual.items():
            if getattr(self, name) not in values:
                raise InputError(
                    f"{self._given(name)} and {option('sensitive', True)} exclude each other; leave one out"
                )
        if self.max_hsps not in (None, 1):
            raise InputError(f"{self._given('max_hsps')}: {option('sensitive', True)} lists one alignment of a subject")
        if self.count_hsps:
            problem = f"{option('count_hsps', True)}: {option('sensitive', True)} has E-values of subjects"
            raise InputError(f"{problem}, not of their alignments; leave one out")

    @property
    def subject_filters(self) -> SubjectFilters:
        """The conditions that a subject must meet to be aligned."""
        return SubjectFilters(**{field.name: getattr(self, field.name) for field in fields(SubjectFilters)})

    def limits(self, alphabet: Alphabet) -> Limits:
        """Which alignments are listed, what a round includes, and where a list ends, for a database of ``alphabet``."""
        return Limits.of_run(self.as_parameters(), alphabet.name)

    def _check_translation(self) -> None:
        if self.genetic_code is not None:
            genetic_code(self.genetic_code)
            if self.translate is None:
                advice = f"say with {option('translate')} what is to be translated"
                raise InputError(f"{self._given('genetic_code')}: {advice}")

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
            raise ScoringError(
                f"{option('matrix')} and {option('match')}/{option('mismatch')} exclude each other; give one of them"
            )
        matrix = default_scheme(alphabet).matrix
        if self.matrix is not None:
            matrix = self._matrix(self.matrix, alphabet)
        elif self.match is not None or self.mismatch is not None:
            if alphabet is PROTEIN:
                raise ScoringError(
                    f"{option('match')} and {option('mismatch')} are for DNA; choose a {option('matrix')} for protein"
                )
            matrix = match_mismatch(
                2 if self.match is None else self.match, -3 if self.mismatch is None else self.mismatch
            )
        usual = default_gap(matrix)
        gap = GapPenalty(
            usual.open if self.gap_open is None else self.gap_open,
            usual.extend if self.gap_extend is None else self.gap_extend,
        )
        if self.iterations > 1 and alphabet is not PROTEIN:
            advice = f"say {option('iterations', 1)}"
            raise InputError(f"{self._given('iterations')}: only searches with proteins can be iterated; {advice}")
        if self.sensitive and alphabet is not PROTEIN:
            raise InputError(f"{option('sensitive', True)} is for proteins, not for {alphabet.name}; leave it out")
        if (self.iterations > 1 or self.sensitive) and matrix_lambda(matrix) is None:
            given = option("sensitive", True) if self.sensitive else self._given("iterations")
            raise ScoringError(
                f"{given}: matrix {matrix.name} scores random residues 0 or more on average, so no profile can be "
                "estimated; choose another matrix"
            )
        scheme = ScoringScheme(matrix, gap)
        if local:
            scheme.check_local()
        return scheme

    def context_library(self) -> Contexts | None:
        """The contexts by which queries are scored; None if the search is not sensitive.

        Raises
        ------
        InputError
            The file of ``contexts`` is not a library.
        """
        if not self.sensitive:
            return None
        from swsearch.query.contexts import program_contexts, read_contexts  # only here: few searches have contexts

        return program_contexts() if self.contexts is None else read_contexts(self.contexts)

    @staticmethod
    def _matrix(name: str, alphabet: Alphabet) -> SubstitutionMatrix:
        """A matrix by its name, or from a file; a file takes precedence over a matrix of the same name."""
        is_file = os.path.isfile(name)
        if is_file or not is_matrix_name(name):
            if os.path.exists(name) and not is_file and not os.path.isdir(name):
                raise ScoringError(f"matrix {name} is a pipe or a device, which cannot be read twice; give a file")
            return matrix_file(name, alphabet)
        matrix = named_matrix(name)
        if matrix.alphabet is not alphabet:
            if alphabet is DNA:
                instead = f"{option('match')} and {option('mismatch')}"
                advice = f"for DNA give {instead}, another matrix such as NUC.4.4, or a matrix file"
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
                raise InputError(f"{self._given('strand')}: queries are proteins, which have one strand; leave it out")
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
        parameters = {field.name: getattr(self, field.name) for field in fields(self)}
        if math.isinf(self.evalue):
            parameters["evalue"] = "inf"
        if self.iterations == 1:  # as in runs that were stored before searches could be iterated
            del parameters["iterations"], parameters["inclusion_evalue"]
        else:
            parameters["inclusion_evalue"] = min(self.inclusion_evalue, self.evalue)
        if self.max_intron is None:  # as in runs that were stored before there were chains
            del parameters["max_intron"]
        if not self.sensitive:  # as in runs that were stored before there was this option
            del parameters["sensitive"]
        if self.contexts is None:
            del parameters["contexts"]
        return parameters
