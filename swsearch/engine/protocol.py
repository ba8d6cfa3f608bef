"""The interface of an engine, which scores query profiles against partitions of the database.

Inputs are :class:`ScoreRequest` and :class:`Partition` objects; the output is one :class:`ScoreBlock` per request.
Statistics, ranking and alignments are computed from it in the same way for all engines. Every engine returns exact
scores, so results do not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from swsearch.database.partition import Partition
from swsearch.hits.score_block import Ends, ScoreBlock
from swsearch.query.profile import ProfileModel, QueryProfile
from swsearch.typing import Floats, Lengths, Progress, Scores


@dataclass(frozen=True)
class EngineInfo:
    """An engine, ``cuda``, ``cpu`` or ``reference``, and whether it can be used.

    ``built`` says whether this installation includes the engine, ``usable`` whether this machine can run it. ``detail``
    has the instruction set and threads, or device and memory; ``reason`` says why the engine is not usable, with the
    remedy, and is empty if it is usable.
    """

    name: str
    built: bool
    usable: bool
    detail: str
    reason: str = ""


class TopKBound(Protocol):
    """A lower bound on the scores of the subjects that can be among the best N of a query."""

    @property
    def top(self) -> int:
        """N, the number of subjects that are requested."""
        ...

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        """Lowest score with which a subject can be among the best N.

        The bound is derived from the exact scores and the lengths of some of the subjects; with fewer than N it is 1.
        """
        ...


@dataclass(frozen=True, eq=False)
class ScoreRequest:
    """One profile to score.

    Attributes
    ----------
    profile : QueryProfile
    floor : int or None
        Lowest score that is needed, at least 1; None if the scores of all subjects are needed, including scores of 0.
    bound : TopKBound or None
        If set, the block may omit subjects that score below the bound; it then counts them (``n_left_out``). A bound
        needs a floor.
    floors_by_length : tuple of (int, int)
        Pairs of a length, ascending, and the floor of the subjects of at least this length and less than the next one.
        Shorter subjects have the floor ``floor``, the lowest of all. The engine need not return a subject that scores
        less than its floor.
    """

    profile: QueryProfile
    floor: int | None = None
    bound: TopKBound | None = None
    floors_by_length: tuple[tuple[int, int], ...] = ()

    def floor_of(self, length: int) -> int:
        """The floor of subjects of a length; 0 if all scores are needed."""
        longer = (floor for shortest, floor in reversed(self.floors_by_length) if shortest <= length)
        return next(longer, self.floor or 0)


def score_requests(profiles: Sequence[QueryProfile], floors: Sequence[int] | None = None) -> list[ScoreRequest]:
    """Requests without bounds, one per profile; without floors, for the scores of all subjects."""
    wanted = [None] * len(profiles) if floors is None else floors
    return [ScoreRequest(profile, floor) for profile, floor in zip(profiles, wanted, strict=True)]


@runtime_checkable
class ScoreEngine(Protocol):
    """Scores profiles against partitions. A context manager; not shared between threads.

    An engine returns for each request the subjects that score at least its floor, with their exact optimal local
    scores, in stored order. The caller does not need scores below the floor; an engine may use this to save work.

    Attributes
    ----------
    name : str
        ``cuda``, ``cpu`` or ``reference``.
    """

    name: str

    @property
    def profiles_per_call(self) -> int:
        """Largest number of profiles in one call that still increases speed; scores do not depend on the number."""
        ...

    @property
    def rows_per_call(self) -> int:
        """Sum of all profiles' lengths beyond which further profiles in a call do not increase speed."""
        ...

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        """Score every request's profile against every subject of the partition.

        Parameters
        ----------
        requests : sequence of ScoreRequest
            Those of one or several queries; an engine may score several at once.
        partition : Partition
        progress : callable, optional

        Returns
        -------
        list of ScoreBlock
            One per request.

        Raises
        ------
        EngineError
            The engine failed; no scores of the partition are returned.
        KeyboardInterrupt
            The user stopped the search; worker threads have ended when this is raised.
        """
        ...

    def close(self) -> None:
        """Release threads and device memory; the engine cannot be used afterwards."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Scored = tuple[int, ScoreBlock]
"""A profile's index in the caller's list, and its block."""


class Scoring(Protocol):
    """Scores that an engine computes in the background."""

    def wait_until_prepared(self) -> None:
        """Return when the engine has finished its preparations and computes in the background, or when it has failed.

        Until then, other work of the calling process delays the preparations.
        """
        ...

    def results(self, progress: Progress | None = None) -> Generator[Scored, None, None]:
        """Each profile's block as soon as it is complete, in any order; may be called once.

        Raises the errors of :meth:`ScoreEngine.score`. If the generator is closed early, the engine stops this work.
        """
        ...

    def cancel(self) -> None:
        """Cancel the remaining work; on return the engine is idle. Has no effect if all work is complete."""
        ...


@dataclass(frozen=True)
class Forecast:
    """The plan by which ``n_devices`` GPUs are going to score a search; ``str`` formats it as one line.

    ``free_bytes`` are those of the device that has the least, ``database_bytes`` the size of the database, or of a
    device's share, in device memory, which is streamed in ``n_pieces``. With ``shared_subjects``, devices divide the
    subjects rather than the queries. ``n_profiles`` counts each strand; it is 0 if it is not known yet. ``seconds`` is
    the estimated time of scoring.
    """

    n_devices: int
    free_bytes: int
    database_bytes: int
    n_pieces: int
    shared_subjects: bool
    n_profiles: int
    n_pairs: int
    seconds: float

    def __str__(self) -> str:
        size = f"{self.database_bytes / 1e9:.2f} GB"
        what = f"{'a share' if self.shared_subjects else 'the database'} of {size}"
        room = f"{self.free_bytes / 1e9:.0f} GB free"
        where = "on the GPU" if self.n_devices == 1 else f"on each of {self.n_devices} GPUs"
        how = f"kept {where}" if self.n_pieces == 1 else f"streamed in {self.n_pieces} pieces"
        if self.n_profiles == 0:
            return f"{what} {how} ({room})"
        alone = self.n_profiles - 2 * self.n_pairs
        return f"{what} {how} ({room}); {self.n_pairs:,} pairs of queries and {alone:,} alone"


@runtime_checkable
class BackgroundEngine(ScoreEngine, Protocol):
    """An engine that works in the background: its first results can be used while it scores the other profiles.

    It has memory of its own, to which it copies the subjects.
    """

    @property
    def kept_bytes(self) -> int:
        """Size of the largest database that stays in its memory; a larger one is copied for each search."""
        ...

    def begin(self, requests: Sequence[ScoreRequest], partition: Partition) -> Scoring:
        """Start to score the requests; the work is executed after all work that was started earlier."""
        ...

    def preload(self, partition: Partition) -> None:
        """Begin to load a partition that is probably searched next; failures are reported by the search."""
        ...

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        """The plan by which the engine scores these requests in one call: the kernels, and why they were chosen."""
        ...

    def forecast(
        self,
        batches: Iterable[Sequence[QueryProfile]],
        partitions: Sequence[Partition],
        n_cells: int,
        *,
        floors: bool = True,
    ) -> Forecast:
        """The plan for scoring batches of profiles against all partitions, ``n_cells`` cells in total.

        ``floors`` states whether the requests will have floors.
        """
        ...

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """The ends of the best alignments of a profile with some subjects.

        May be called during background work, from the thread that started it.

        Parameters
        ----------
        profile : QueryProfile
        subjects : Partition
            Subjects in any order. They are uploaded for this call, so there should be few, such as the reported ones.
        scores : int32 array, shape (n_subjects,)
            The best score of each subject, as the engine computed it.

        Returns
        -------
        Ends or None
            None if the device has too little free memory at the moment.

        Raises
        ------
        InputError
            The arrays are inconsistent.
        EngineError
            A score is not the subject's best score, or the engine failed.
        """
        ...

    def forward(self, query: ProfileModel, subjects: Sequence[Partition]) -> Floats | None:
        """The local Forward scores of a query with some subjects, in nats (:mod:`swsearch.query.columns`).

        May be called from any thread, during background work too. Results are those of
        :meth:`swsearch.query.columns.SubjectOdds.forward`, bit by bit.

        Parameters
        ----------
        query : ProfileModel
        subjects : sequence of Partition
            Subjects in any order, which are uploaded for this call.

        Returns
        -------
        float64 array, shape (n_subjects,), or None
            The subjects of all partitions, one partition after the other. None if the device has too little free
            memory at the moment.
        """
        ...
