"""A query with all that a search needs for it: its frames with their profiles, and how deep the search looks."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.query.profile import QueryProfile
from swsearch.search.query_frames import QueryFrame
from swsearch.search.threshold import Threshold
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.composition import EvalueAdjustment
from swsearch.typing import LengthRange


@dataclass(frozen=True, eq=False)
class PreparedQuery:
    """One query, ready to be scored.

    Attributes
    ----------
    number : int
        Its index in the run.
    query : SequenceRecord
        The query as it is searched and reported.
    frames : list of QueryFrame
    threshold : Threshold
    adjustment : EvalueAdjustment or None
        The adjustment of its E-values for composition, if they are adjusted.
    """

    number: int
    query: SequenceRecord
    frames: list[QueryFrame]
    threshold: Threshold
    adjustment: EvalueAdjustment | None

    @property
    def profiles(self) -> list[QueryProfile]:
        """The profiles that the engine scores: one per frame, then the masked profiles of the frames that have one."""
        return [frame.profile for frame in self.frames] + self._masked_profiles

    @property
    def _masked_profiles(self) -> list[QueryProfile]:
        return [frame.masked_profile for frame in self.frames if frame.masked_profile is not None]

    @property
    def rows(self) -> int:
        """Number of positions of all profiles."""
        return sum(profile.length for profile in self.profiles)

    def min_scores(self, lengths: LengthRange | None = None) -> list[int]:
        """The score threshold of each profile, for all subjects or those of some lengths."""
        of_frames = [self.threshold.min_score(lengths)] * len(self.frames)
        return of_frames + [self.threshold.min_score(lengths, of_mask=True)] * len(self._masked_profiles)
