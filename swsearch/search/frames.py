"""From a query to what is scored: its strands or reading frames, with their profiles.

:class:`Preparer` masks a query and makes its :class:`Frame` objects. Each strand of a DNA query, and each reading frame
of a translated query, is searched separately; a protein query has one frame. All options that change the scores of a
query take effect here: masking (:mod:`swsearch.query.masking`) and the correction of composition
(:mod:`swsearch.query.composition`), which apply to the sequence that is aligned, so a translated query is
masked after its frames are made. All later steps treat strands and frames alike, because engines, ranking and traceback
use profiles only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch.query.composition import corrected_profile, corrected_scale, corrected_scores
from swsearch.query.profile import PositionSpecificQuery, QueryProfile, sequence_profile
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import PROTEIN, reverse_complement
from swsearch.sequences.genetic_code import frame_length
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes

if TYPE_CHECKING:
    from swsearch.query.masking import Masking


@dataclass(frozen=True, eq=False)
class Frame:
    """A query on one strand or in one reading frame.

    ``strand`` is ``plus`` or ``minus``, ``number`` is that of the frame, 1 to 3 or -1 to -3; 0 without translation.
    ``codes`` are uint8 residue codes in the alphabet that is aligned, ``profile`` has the reported scores. If residues
    are softly masked, ``masked_profile`` decides which subjects are reported.
    """

    strand: str
    number: int
    codes: Codes
    profile: QueryProfile
    masked_profile: QueryProfile | None = None


class Preparer:
    """Makes the frames of a search's queries, with their profiles; immutable.

    ``scheme`` is that of the aligned alphabet, ``threads`` predict the context of a query, by the library ``contexts``
    of a sensitive search. ``strands`` are those that
    are searched if queries are not translated, ``n_frames`` is the number of strands or frames of a query that is long
    enough for all.

    Raises :class:`InputError` if the strands or a masker do not fit the scheme's alphabet or a masker is not installed,
    and :class:`ScoringError` if composition cannot be corrected with this scheme.
    """

    def __init__(self, options: SearchOptions, scheme: ScoringScheme, threads: int = 1) -> None:
        self._options = options
        self._threads = threads
        self.contexts = options.context_library()
        self._scheme = scheme
        self._translates = options.query_frames != (0,)
        self.strands = options.strands(scheme.alphabet)
        self.n_frames = len(options.query_frames) if self._translates else len(self.strands)
        self._masking: Masking | None = None
        self._corrected_scale: float | None = None
        if options.mask != "none":
            from swsearch.query.masking import Masking

            self._masking = Masking(options.mask, options.mask_mode, scheme.alphabet)
        if options.composition == "bias":
            self._corrected_scale = corrected_scale(scheme)

    @property
    def changes_scores(self) -> bool:
        """Whether the scores of the profiles differ from those of the matrix."""
        return self._corrected_scale is not None

    @property
    def is_case_sensitive(self) -> bool:
        """Whether queries that differ only in case may have different hits."""
        return self._masking is not None

    def frame_lengths(self, n_letters: int) -> list[int]:
        """Length in residues of each strand or frame of a query of ``n_letters``, without frames without a codon."""
        if not self._translates:
            return [n_letters] * len(self.strands)
        return [length for frame in self._options.query_frames if (length := frame_length(n_letters, frame))]

    def as_searched(self, query: SequenceRecord) -> SequenceRecord:
        """The query as it is reported: with its mask in its letters, or unchanged if it is translated; in a sensitive
        search, with the scores that its context predicts.
        """
        if self._translates or isinstance(query, PositionSpecificQuery):
            return query
        if self.contexts is not None:
            from swsearch.query.estimation import estimated_query

            no_rows = np.empty((0, len(query)), dtype=np.uint8)
            return estimated_query(query, no_rows, self._scheme.matrix, self._threads, contexts=self.contexts)
        return self._masked(query)

    def frames(self, query: SequenceRecord) -> list[Frame]:
        """The frames of a query that :meth:`as_searched` returned, in order of preference among equal scores.

        Frames without a complete codon are left out.
        """
        if isinstance(query, PositionSpecificQuery):
            return [self._of_scores(query)]
        if not self._translates:
            return [self._frame(strand, 0, _along(query, strand)) for strand in self.strands]
        assert self._options.code is not None
        frames = []
        for number in self._options.query_frames:
            codes = self._options.code.translate(query.codes, number)
            if len(codes):
                masked = self._masked(SequenceRecord(query.header, codes, PROTEIN))
                frames.append(self._frame("plus" if number > 0 else "minus", number, masked.codes))
        return frames

    def profile(self, codes: Codes) -> QueryProfile:
        """The profile for the reported scores and alignments of a masked query, or of its other strand."""
        if self._corrected_scale is None:
            return sequence_profile(codes, self._scheme)
        return corrected_profile(codes, self._scheme.matrix, self._scheme.gap, self._corrected_scale)

    def _masked(self, query: SequenceRecord) -> SequenceRecord:
        return query if self._masking is None else self._masking.masked(query)

    def _frame(self, strand: str, number: int, codes: Codes) -> Frame:
        hidden = None if self._masking is None else self._masking.hidden(codes)
        return Frame(strand, number, codes, self.profile(codes), None if hidden is None else self.profile(hidden))

    def _of_scores(self, query: PositionSpecificQuery) -> Frame:
        """The frame of position-specific scores, as of a round of an iterated search."""
        profile = query.profile(self._scheme.gap)
        if self._corrected_scale is not None:
            scores = corrected_scores(query.scores, self._scheme.matrix, self._corrected_scale)
            profile = replace(profile, table=scores)
        hidden = None
        if self._masking is not None:
            hidden = self._masking.hidden_scores(query.codes, profile.table, self._scheme.matrix)
        return Frame("plus", 0, query.codes, profile, None if hidden is None else replace(profile, table=hidden))


def _along(query: SequenceRecord, strand: str) -> Codes:
    return reverse_complement(query.codes) if strand == "minus" else query.codes
