"""The limits of a list of hits: which alignments are listed, which subjects a round includes, and where the list ends.

:class:`Limits` has the options of a search that cut its lists and filter alignments, :class:`SubjectFilters` those on
the subjects that are searched at all. A search (:mod:`swsearch.search.threshold`), the merging of its slices, its
rounds, and the reports of stored runs (:mod:`swsearch.report.narrowing`) ask them; nothing else compares a score or an
E-value with a limit.

The alignments of a subject are numbered by ascending E-value, then descending score, before any of them is left out.
Each limit is a condition on one alignment; ``max_hsps`` is one on its number. Without ``max_hsps``, a subject has one
alignment, but a long one, such as a chromosome, has all its significant ones; which subjects are long is decided by
:func:`shortest_long_subject`, and by the length of the subject alone. A subject is listed if an alignment
meets all conditions, and is ranked by the first that does. So limits may be applied in any order, or one by one: a
stored list that is narrowed is the list of a search with the narrower limits. Candidates are aligned in the order of
their rank until enough of them pass the filter on alignments. Its percentages are those that reports print
(``pident``, ``qcovs``), unrounded.

Subjects are ordered by ascending E-value, then descending raw score, then ascending subject index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.hit import Alignment, Hit
from swsearch.typing import Bools, Floats, Scores, SubjectIndex
from swsearch.words import option


@dataclass(frozen=True)
class SubjectFilters:
    """Conditions that a subject must meet to be aligned.

    Each field is the option of the same name, which :class:`swsearch.search.options.SearchOptions` describes.
    """

    min_length: int | None = None
    max_length: int | None = None
    id_pattern: str | None = None
    include: str | None = None
    exclude: str | None = None
    taxid: str | None = None
    taxid_map: str | None = None
    taxonomy: str | None = None

    def __bool__(self) -> bool:
        """Whether any condition is set; the two files for ``taxid`` are not conditions by themselves."""
        return bool(self._conditions())

    def __str__(self) -> str:
        """The conditions as options of the message of an error, separated by commas."""
        return ", ".join(option(name, value) for name, value in self._conditions().items())

    def _conditions(self) -> dict[str, str | int]:
        names = ("min_length", "max_length", "id_pattern", "include", "exclude", "taxid")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


LONG_SUBJECT_BASES: Final = 10_000
"""Length from which on an untranslated DNA subject is long: nearly all chromosomes are, and few transcripts."""
SIGNIFICANT_EVALUE: Final = 10.0
"""Largest E-value of the further alignments of a long subject; a smaller limit on E-values holds for them, too."""


def shortest_long_subject(alphabet: str, translate: str | None) -> int | None:
    """Length from which on a subject is long, in letters of the database; None if none is.

    Every translated subject is, because its genes may be in pieces or in several frames.

    Parameters
    ----------
    alphabet : str
        That of the database, ``protein`` or ``dna``.
    translate : str or None
        The translated side.

    >>> shortest_long_subject("dna", "subject"), shortest_long_subject("dna", None)
    (1, 10000)
    >>> shortest_long_subject("protein", None) is None
    True
    """
    if translate in ("subject", "both"):
        return 1
    return LONG_SUBJECT_BASES if alphabet == "dna" else None


MOST_INCLUDED: Final = 10_000
"""Largest number of subjects that a round of an iterated search includes (:mod:`swsearch.search.rounds`)."""

_OF_ALIGNMENTS: Final = ("min_identity", "min_query_coverage", "min_subject_coverage", "min_alignment_length")
"""The limits that :meth:`Limits.passes_alignment` compares."""
Rank = tuple[float, int, int]
"""The sort key of a subject: its E-value, or 0 without statistics, its negative score, and its index."""


@dataclass(frozen=True)
class Limits:
    """The limits of the lists of one search, or of a report.

    Attributes
    ----------
    top : int
        Number of subjects of a list, at least 1.
    ties : str
        ``cut`` ends the list after ``top`` subjects, ``all`` after those that equal the last in E-value and score.
    evalue : float
        Largest E-value of a listed alignment, and of the score of a softly masked query with its subject.
    max_hsps : int or None
        Largest number of an alignment among those of its subject; None if the subject decides it.
    min_score, min_bits : int or float, optional
        Lowest score and bit score of a listed alignment.
    min_identity : float
        Lowest percentage of equal letters among all columns of a listed alignment.
    min_query_coverage, min_subject_coverage : float
        Lowest number of residues between its ends, in percent of the length of the query or subject.
    min_alignment_length : float
        Lowest number of its columns, with those of gaps.
    inclusion_evalue : float, optional
        Largest E-value of a subject that a round of an iterated search includes; None if the search is not iterated.
    long_subject : int or None
        Length from which on a subject is long (:func:`shortest_long_subject`).
    """

    top: int
    ties: str
    evalue: float
    max_hsps: int | None = None
    min_score: int | None = None
    min_bits: float | None = None
    min_identity: float = 0.0
    min_query_coverage: float = 0.0
    min_subject_coverage: float = 0.0
    min_alignment_length: float = 0.0
    inclusion_evalue: float | None = None
    long_subject: int | None = None

    @classmethod
    def of_run(cls, parameters: Mapping[str, Any], alphabet: str) -> Limits:
        """The limits among the parameters of a run; values that old stores lack limit nothing.

        ``alphabet`` is that of its database.
        """
        is_iterated = int(parameters.get("iterations") or 1) > 1
        bits, score = parameters.get("min_bits"), parameters.get("min_score")
        return cls(
            top=int(parameters.get("top") or 2**31 - 1),
            ties=str(parameters.get("ties") or "cut"),
            evalue=float(parameters.get("evalue") or "inf"),
            max_hsps=None if (hsps := parameters.get("max_hsps")) is None else int(hsps),
            min_score=None if score is None else int(score),
            min_bits=None if bits is None else float(bits),
            **{name: parameters.get(name) or 0.0 for name in _OF_ALIGNMENTS},
            inclusion_evalue=float(parameters["inclusion_evalue"]) if is_iterated else None,
            long_subject=shortest_long_subject(alphabet, parameters.get("translate")),
        )

    @property
    def filter_alignments(self) -> bool:
        """Whether they bound more of an alignment than its score and E-value."""
        return any(getattr(self, name) for name in _OF_ALIGNMENTS)

    def passes_alignment(self, alignment: Alignment, query_length: int, subject_length: int) -> bool:
        """Whether an alignment of two sequences of these lengths meets the bounds on identity, coverage and length."""
        on_query = alignment.query_end - alignment.query_start
        on_subject = alignment.subject_end - alignment.subject_start
        return (
            alignment.columns >= self.min_alignment_length
            and 100 * alignment.identities >= self.min_identity * alignment.columns
            and 100 * on_query >= self.min_query_coverage * query_length
            and 100 * on_subject >= self.min_subject_coverage * subject_length
        )

    @overload
    def passes(self, score: int, bits: float | None, evalue: float | None, masked_evalue: float | None) -> bool: ...

    @overload
    def passes(
        self, score: Scores, bits: Floats | None, evalue: Floats | None, masked_evalue: Floats | None
    ) -> Bools: ...

    def passes(self, score: Any, bits: Any, evalue: Any, masked_evalue: Any) -> Any:
        """Whether alignments with these values, numbers or arrays, may be listed; a value of None has no limit.

        Parameters
        ----------
        score, bits, evalue
            Raw score, bit score and E-value; without statistics, the latter two are None.
        masked_evalue
            E-value of the score of the masked query with the subject; None if the query has no soft mask.
        """
        passed = score >= (self.min_score or 0)
        if bits is not None and self.min_bits is not None:
            passed &= bits >= self.min_bits
        if evalue is not None:
            passed &= evalue <= self.evalue
        if masked_evalue is not None:
            passed &= masked_evalue <= self.evalue
        return passed

    def admits(self, hit: Hit) -> bool:
        """Whether an alignment meets all limits, apart from the length of the list."""
        return self.admits_number(hit.number, hit.subject_length, hit.evalue) and self.passes(
            hit.score, hit.bits, hit.evalue, hit.masked_evalue
        )

    # --- how many alignments of a subject are listed ---

    def is_long(self, length: Any) -> Any:
        """Whether a subject of this length, or each of several, has its significant alignments listed."""
        return False if self.long_subject is None else length >= self.long_subject

    @property
    def significant_evalue(self) -> float:
        """Largest E-value of a further alignment of a long subject."""
        return min(self.evalue, SIGNIFICANT_EVALUE)

    def admits_number(self, number: Any, subject_length: Any, evalue: Any) -> Any:
        """Whether an alignment with this number and E-value is among the listed ones of a subject of this length.

        The arguments are numbers or arrays; without statistics, the E-value is None.
        """
        if self.max_hsps is not None:
            return number <= self.max_hsps
        is_further = False if evalue is None else (evalue <= self.significant_evalue) & self.is_long(subject_length)
        return (number == 1) | is_further

    # --- what a round includes ---

    def includes(self, hit: Hit) -> bool:
        """Whether a round of an iterated search includes an alignment; a soft mask decides it as it decides a list."""
        if self.inclusion_evalue is None or hit.evalue is None or hit.rank > MOST_INCLUDED:
            return False
        return hit.evalue <= self.inclusion_evalue and (
            hit.masked_evalue is None or hit.masked_evalue <= self.inclusion_evalue
        )

    def n_wanted(self, evalues: Floats | None) -> int:
        """Length of the list that a round needs: at least all subjects that it may include, whatever ``top`` is.

        ``evalues`` are those of all subjects that may be listed, each at most as large as its final one.
        """
        if self.inclusion_evalue is None or evalues is None:
            return self.top
        return max(self.top, min(int((evalues <= self.inclusion_evalue).sum()), MOST_INCLUDED))

    # --- the order and the end of the list ---

    def end(self, rank_at: Callable[[int], Rank], n_subjects: int, wanted: int) -> int:
        """Length of a list of ``wanted`` subjects, of ``n_subjects`` in order, with the ties of the last."""
        last = min(wanted, n_subjects)
        if self.ties == "all" and last:
            while last < n_subjects and rank_at(last)[:2] == rank_at(last - 1)[:2]:
                last += 1
        return last

    def is_complete(self, worst: Rank, following: Rank) -> bool:
        """Whether a full list with the last subject ``worst`` has no place for a subject at or after ``following``."""
        return worst < following and (self.ties == "cut" or worst[:2] < following[:2])

    def may_lack(self, listed: Sequence[Rank], last: Rank) -> bool:
        """Whether a list of subjects with these ranks may lack some that are ranked after ``last``."""
        is_full = len(listed) >= self.top and listed[self.top - 1] <= last
        return not is_full and last[0] <= self.evalue

    def first_subjects(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits of the subjects of the list; ``hits`` are all, in order."""
        firsts = [hit for hit in hits if hit.hsp == 1]
        n = self.end(lambda index: rank_of(firsts[index]), len(firsts), self.top)
        return [hit for hit in hits if hit.rank <= n]


def rank_of(hit: Hit) -> Rank:
    """The rank of a subject by its first alignment."""
    return 0.0 if hit.evalue is None else hit.evalue, -hit.score, hit.subject_index


def by_evalue(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Hits in the order of their own E-values and scores instead of those of their subjects.

    >>> by_evalue([])
    []
    """
    return sorted(hits, key=lambda hit: (*rank_of(hit), hit.hsp))


def ranked(subjects: Iterable[Sequence[Hit]]) -> list[Hit]:
    """The alignments of all subjects in the order of the subjects, with new ranks and numbers ``hsp``.

    >>> ranked([])
    []
    """
    in_order = sorted(subjects, key=lambda several: rank_of(several[0]))
    return [
        replace(hit, rank=rank, hsp=hsp)
        for rank, several in enumerate(in_order, 1)
        for hsp, hit in enumerate(several, 1)
    ]


@dataclass(frozen=True, eq=False)
class RankedCandidates:
    """Subjects that may be reported, each once, in any order; all arrays have the same length.

    Attributes
    ----------
    subject_index : uint32 array
    score : int32 array
        Score of the subject's best comparison.
    comparison : uint8 array
        Index of that comparison. Comparisons are numbered by query frame (or strand) and, within one, by subject frame.
    evalue : float64 array, optional
        E-value of the score; None if the scoring scheme has no statistics, or if they are not yet known.
    masked_evalue : float64 array, optional
        E-value of the best score of the masked query; None if it has no soft mask.
    forward_bits : float64 array, optional
        Forward score in bits; None if the search is not sensitive.
    """

    subject_index: SubjectIndex
    score: Scores
    comparison: NDArray[np.uint8]
    evalue: Floats | None = None
    masked_evalue: Floats | None = None
    forward_bits: Floats | None = None

    def __len__(self) -> int:
        return len(self.score)

    def rows(self, rows: NDArray[np.intp]) -> RankedCandidates:
        """The candidates at these rows, in the order of ``rows``."""
        known = {one.name: column[rows] for one in fields(self) if (column := getattr(self, one.name)) is not None}
        return replace(self, **known)

    def of_subjects(self, subjects: SubjectIndex) -> RankedCandidates:
        """The candidates with these indices, all of which are there, in the order of ``subjects``."""
        order = np.argsort(self.subject_index)
        return self.rows(order[np.searchsorted(self.subject_index, subjects, sorter=order)])

    def in_order(self) -> RankedCandidates:
        """The candidates, best first."""
        keys = (self.subject_index, -self.score)
        return self.rows(np.lexsort(keys if self.evalue is None else (*keys, self.evalue)))

    def n_up_to(self, evalue: float) -> int:
        """Number of candidates, which are in order, with E-values of at most this one; all without E-values."""
        return len(self) if self.evalue is None else int(np.searchsorted(self.evalue, evalue, side="right"))

    def rank(self, row: int) -> Rank:
        """The sort key of the candidate at a row."""
        evalue = 0.0 if self.evalue is None else float(self.evalue[row])
        return evalue, -int(self.score[row]), int(self.subject_index[row])
