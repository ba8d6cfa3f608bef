"""A query with all that a search needs for it: its frames with their profiles, and what limits its scores."""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.query.profile import QueryProfile
from swsearch.search.query_frames import QueryFrame
from swsearch.search.top_k_bound import TopKBound
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.composition import EvalueAdjustment


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
    bound : TopKBound or None
    provisional_evalue : float or None
        The E-value cut with which it is scored first (:mod:`swsearch.search.provisional_cut`), if it has one.
    adjustment : EvalueAdjustment or None
        The adjustment of its E-values for composition, if they are adjusted.
    """

    number: int
    query: SequenceRecord
    frames: list[QueryFrame]
    bound: TopKBound | None
    provisional_evalue: float | None
    adjustment: EvalueAdjustment | None

    @property
    def profiles(self) -> list[QueryProfile]:
        """The profiles that the engine scores: one per frame, then the screens of the frames that have one."""
        screens = [frame.screen for frame in self.frames if frame.screen is not None]
        return [frame.profile for frame in self.frames] + screens

    @property
    def rows(self) -> int:
        """Number of positions of all profiles."""
        return sum(profile.length for profile in self.profiles)
