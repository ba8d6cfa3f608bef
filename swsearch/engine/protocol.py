"""What an engine is: it scores query profiles against a partition of the database. Nothing else.

Statistics, ranking and alignments come after and are the same for all engines; so an engine that returns the exact
scores gives the same bytes as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from swsearch.database.partition import Partition
from swsearch.hits.ends import Ends
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths, Scores

Progress = Callable[[int], None]
"""Called now and then from the calling thread with the cells scored since the last call."""


@dataclass(frozen=True)
class EngineInfo:
    """What is built, what is usable here, and why not.

    Attributes
    ----------
    name : str
        ``cuda``, ``cpu`` or ``reference``.
    built, usable : bool
        Two facts: the program has it; this machine can run it.
    detail : str
        Instruction set and threads, or device and memory.
    reason : str
        Why it is not usable and what would mend that; empty where it is.
    """

    name: str
    built: bool
    usable: bool
    detail: str
    reason: str = ""


@runtime_checkable
class ScoreEngine(Protocol):
    """Scores profiles against partitions. A context manager; not shared between threads.

    An engine returns for each profile the subjects that score at least the profile's floor, with their exact optimal
    local scores, in stored order. A floor is a promise of the caller that lower scores are of no use; an engine may use
    it to do less.

    Attributes
    ----------
    name : str
    """

    name: str

    @property
    def profiles_per_call(self) -> int:
        """Profiles that a call gains from being given together; one with fewer is as exact."""
        ...

    @property
    def rows_per_call(self) -> int:
        """Positions of all profiles together beyond which a call gains nothing from one profile more."""
        ...

    def score(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> list[ScoreBlock]:
        """Score every profile against every subject of the partition.

        Parameters
        ----------
        profiles : sequence of QueryProfile
            Queries, or both strands of one; an engine may work on several at once.
        partition : Partition
        floors : sequence of int, one a profile, optional
            Lowest score that is wanted, at least 1. Without it every subject is returned, 0 scores included.
        progress : callable, optional

        Returns
        -------
        list of ScoreBlock
            One a profile.

        Raises
        ------
        EngineError
            The engine failed; nothing is returned of a partition that was not finished.
        KeyboardInterrupt
            The user stopped the search; worker threads have ended when this is raised.
        """
        ...

    def close(self) -> None:
        """Give back threads and device memory; the engine cannot be used after."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Scored = tuple[int, ScoreBlock]
"""A profile's place in the caller's list, and its block."""


class TopKBound(Protocol):
    """Which subjects can be among the best of a query; what they score less than :meth:`lowest` is of no use."""

    @property
    def top(self) -> int:
        """How many the best are."""
        ...

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        """Lowest score that a subject may have, given the exact scores and the lengths of some; 1 if they are few."""
        ...


class Scoring(Protocol):
    """Scores on their way."""

    def wait_until_prepared(self) -> None:
        """Returns when the engine knows what it needs and is at work by itself, or when it failed.

        What a caller loads meanwhile holds it up less from then on.
        """
        ...

    def results(self, progress: Progress | None = None) -> Generator[Scored, None, None]:
        """Each profile's block as soon as it is there, in an order of the engine's; to be taken once.

        Raises what :meth:`ScoreEngine.score` raises. Where it ends early, the engine stops working on it.
        """
        ...

    def cancel(self) -> None:
        """Give up what is not done; on return the engine is idle. Does nothing where all is done."""
        ...


class Forecast(Protocol):
    """How an engine is going to do a search; prints as one line."""

    @property
    def seconds(self) -> float:
        """About how long the scores take."""
        ...

    def __str__(self) -> str: ...


@runtime_checkable
class BackgroundEngine(ScoreEngine, Protocol):
    """An engine that works beside this thread: what it has scored can be used while it scores the rest."""

    def begin(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int],
        rules: Sequence[TopKBound | None],
    ) -> Scoring:
        """Begin what :meth:`ScoreEngine.score` does. What was begun earlier is done first.

        Of a profile that has a rule, the blocks may leave out what the rule makes useless, and count it.
        """
        ...

    def forecast(
        self, batches: Iterable[Sequence[QueryProfile]], partitions: Sequence[Partition], n_cells: int
    ) -> Forecast:
        """How batches of profiles are going to be scored against all partitions, ``n_cells`` in all."""
        ...


@runtime_checkable
class EndsEngine(ScoreEngine, Protocol):
    """An engine that also tells where the best alignments of subjects end, given their scores."""

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """The ends of the best alignments of a profile with some subjects.

        May be called while the engine works on what was begun, by the thread that began it.

        Parameters
        ----------
        profile : QueryProfile
        subjects : Partition
            In any order, and as few as are reported: they are uploaded for this call.
        scores : int32 array, shape (n_subjects,)
            The best score of each, as the engine found it.

        Returns
        -------
        Ends or None
            None where the device has no memory left for this now.

        Raises
        ------
        InputError
            The arrays do not fit together.
        EngineError
            A score is not the subject's best, or the engine failed.
        """
        ...
