"""The CUDA engine: scores profiles against partitions on one GPU.

Inputs are query profiles, a partition and, optionally, the lowest score that is needed for each query; the output is
one :class:`swsearch.hits.score_block.ScoreBlock` per query. A batch is one query, or two of similar length that share
words. It is scored against a piece of the database in these steps:

1. Very long subjects, such as chromosomes, are scored in verified windows.
2. The inter-task kernel scores all other subjects except the longest, with one launch per strip of the query.
   Concurrently, the kernel for listed subjects scores the longest, with one warp for each.
3. Subjects whose score exceeds the narrow type, or passes the limit of a deferred kernel, are listed on the device and
   scored again in 16 bits and, if that is not enough, in 32 bits.
4. The scores are copied to the host.

Launches of one batch never overlap those of the next, and the host reads one count between the steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Final

import numpy as np

from swsearch.closeable import Closeable
from swsearch.database.partition import Partition
from swsearch.engine.cuda.batch_kernels import exceeds, expected_kernels, range_kernels
from swsearch.engine.cuda.device import (
    Argument,
    Buffer,
    Device,
    DeviceFacts,
    OutOfDeviceMemory,
    PyCudaDevice,
    Stream,
)
from swsearch.engine.cuda.diamonds import DiamondSweep
from swsearch.engine.cuda.end_positions import EndFinder
from swsearch.engine.cuda.kernels import (
    WARP,
    Arithmetic,
)
from swsearch.engine.cuda.launches import (
    DeviceProfile,
    IntraTaskLaunch,
    IntraTaskLauncher,
    Listed,
    Timing,
    address,
    signed,
    unsigned,
)
from swsearch.engine.cuda.plan import (
    Batch,
    deferred_limit,
    first_arithmetic,
    first_long,
    pair_queries,
    plan_inter_task,
    plan_intra_task,
)
from swsearch.engine.cuda.profile_cache import ProfileCache
from swsearch.engine.cuda.scratch import Scratch
from swsearch.engine.cuda.selection import ScoreFilter, Selector
from swsearch.engine.cuda.subjects import DeviceSubjects, SubjectStore, chunk_bytes, in_stored_order
from swsearch.engine.cuda.thresholds import Thresholds
from swsearch.engine.cuda.tiled_subjects import TiledSubjects
from swsearch.engine.cuda.verified_windows import VerifiedWindows, VerifiedWindowsRun
from swsearch.engine.protocol import Progress, Scored, TopKBound
from swsearch.hits.ends import Ends
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Scores

DATABASE_SHARE: Final = 0.05
"""Share of the device's free memory that databases may take: the boundaries between strips need up to sixteen bytes per
residue in addition."""
SIDES: Final = (Stream.SIDE, Stream.OTHER_SIDE)
"""Streams of the kernel for listed subjects, one for each query of a batch."""
MAX_DEFERRED_SHARE: Final = 1 / 16
"""If more than this share of the subjects passes a deferred kernel, the exact kernel scores all subjects again."""


def _boundary_halves(boundary: Buffer | None, strip: int) -> list[Argument]:
    """Addresses at which a strip reads and writes its boundary: the two halves of one buffer, alternately."""
    if boundary is None:
        return [np.uint64(0), np.uint64(0)]
    halves = [np.uint64(boundary.address), np.uint64(boundary.address + boundary.n_bytes // 32 * 16)]
    return [halves[1 - strip % 2], halves[strip % 2]]


class CudaEngine(Closeable):
    """Scores on one GPU; see :class:`swsearch.engine.protocol.ScoreEngine`.

    Parameters
    ----------
    device : Device, optional
        The first GPU by default.
    memory_limit : int, optional
        Bytes of device memory that databases may take; a database beyond it is streamed. By default
        :data:`DATABASE_SHARE` of the free memory.
    texture : bool
        Read profiles as textures rather than from global memory.
    pairs : bool
        Let two queries of similar length share words.
    deferred : bool
        Use the deferred maximum where the caller gives floors.
    thresholds : Thresholds, optional
        Sizes at which the engine changes its method; by default the measured ones.

    Attributes
    ----------
    windows : VerifiedWindows
        Scores long subjects in windows and counts the windows that were scored again.

    Raises
    ------
    EngineUnavailable
        No device can be used; the message names the remedy.
    """

    name = "cuda"
    profiles_per_call = 64
    rows_per_call = 2**31

    def __init__(
        self,
        device: Device | None = None,
        memory_limit: int | None = None,
        *,
        texture: bool = True,
        pairs: bool = True,
        deferred: bool = True,
        thresholds: Thresholds | None = None,
    ) -> None:
        thresholds = Thresholds() if thresholds is None else thresholds
        self._device: Device = PyCudaDevice() if device is None else device
        self._texture = texture
        self._pairs = pairs
        self._deferred = deferred
        self.timing = Timing()
        self._scratch = Scratch(self._device)
        self._selector = Selector(self._device, self._scratch)
        self._lists = IntraTaskLauncher(self._device, self._scratch, texture=texture)
        self._end_finder = EndFinder(
            self._device, self._scratch, self._lists,
            thresholds.end_group_bytes, thresholds.smallest_end_group_bytes,
        )  # fmt: skip
        self._packed = ProfileCache()
        if memory_limit is None:
            memory_limit = int(self._device.free_bytes() * DATABASE_SHARE)
        self._store = SubjectStore(self._device, memory_limit)
        # This sweep must not free cached memory, because the kernels of the windows may be using it.
        self.windows = VerifiedWindows(
            self._device, self._scratch, self._lists, DiamondSweep(self._device), self.timing,
            thresholds.window_overlap, thresholds.window_stride, thresholds.windowed_residues,
        )  # fmt: skip
        self._long_subjects = TiledSubjects(
            DiamondSweep(self._device, self.make_room), self.timing, self._device.facts.multiprocessors,
            thresholds.windowed_rows, thresholds.diamond_residues,
        )  # fmt: skip

    @property
    def description(self) -> str:
        """The device's name."""
        return self._device.facts.name

    def keeps(self, partition: Partition) -> bool:
        """Whether the partition fits the memory for databases, so that it is uploaded only once."""
        return chunk_bytes(partition) <= self._store.limit_bytes

    def n_pieces(self, partition: Partition, query_residues: int) -> int:
        """Number of pieces of the partition for queries of ``query_residues`` residues in total."""
        return self._store.n_pieces(partition, query_residues)

    def batches(self, profiles: Sequence[QueryProfile]) -> list[Batch]:
        """The profiles, grouped into batches that are scored together."""
        if self._pairs:
            return pair_queries(profiles, self._device.facts.architecture)
        return [Batch((index,)) for index in range(len(profiles))]

    def free_bytes(self) -> int:
        """Free device memory in bytes."""
        return self._device.free_bytes()

    @property
    def facts(self) -> DeviceFacts:
        """Properties of the device."""
        return self._device.facts

    def make_room(self) -> None:
        """Free all device memory that is cached between calls; databases are uploaded again when they are needed."""
        self._scratch.free()
        self._store.clear()

    # --- The protocol ---

    def score(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`.

        If the device runs out of memory, the memory for databases is halved, down to a megabyte, and the batches that
        have no result yet are scored again.
        """
        blocks = dict(self.score_each(profiles, partition, floors, progress))
        return [blocks[index] for index in range(len(profiles))]

    def score_each(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None = None,
        progress: Progress | None = None,
        rules: Sequence[TopKBound | None] | None = None,
    ) -> Generator[Scored, None, None]:
        """Like :meth:`score`, but yields each profile's block as soon as it is complete: short queries first.

        For ``rules`` see :meth:`swsearch.engine.protocol.BackgroundEngine.begin`; they need floors.
        """
        if len(partition):
            self._prepare(profiles, partition, floors, rules)
        return self._long_subjects.score_each(self._score_subjects, profiles, partition, floors, progress, rules)

    def _score_subjects(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None,
        progress: Progress | None,
        rules: Sequence[TopKBound | None] | None,
    ) -> Generator[Scored, None, None]:
        """Score subjects without diamonds."""
        if len(partition) == 0:
            yield from ((index, ScoreBlock.concatenate([])) for index in range(len(profiles)))
            return
        batches = self.batches(profiles)
        self._packed = ProfileCache()
        while batches:
            try:
                found = self._score_partition(profiles, tuple(batches), partition, floors, progress, rules)
                for batch, blocks in found:
                    batches.remove(batch)
                    yield from zip(batch.indices, blocks, strict=True)
            except OutOfDeviceMemory:
                self._scratch.free()
                if not self._store.halve_limit():
                    raise

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """See :class:`swsearch.engine.protocol.EndsEngine`."""
        return self._end_finder.ends(profile, subjects, scores)

    def _prepare(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None,
        rules: Sequence[TopKBound | None] | None,
    ) -> None:
        """Begin to compile the kernels of all queries while the first query is packed and uploaded."""
        facts = self._device.facts
        self._device.prepare(
            expected_kernels(
                profiles, self.batches(profiles), partition, floors, facts.architecture, facts.multiprocessors,
                deferred=self._deferred, texture=self._texture, ruled=any(rules or ()), windows=self.windows,
            )
        )  # fmt: skip

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        self._store.clear()
        self._scratch.free()
        self._device.close()

    # --- The pieces of a partition ---

    def _score_partition(
        self,
        profiles: Sequence[QueryProfile],
        batches: Sequence[Batch],
        partition: Partition,
        floors: Sequence[int] | None,
        progress: Progress | None,
        rules: Sequence[TopKBound | None] | None,
    ) -> Generator[tuple[Batch, list[ScoreBlock]], None, None]:
        """Yield each batch with its profiles' blocks as soon as it has been scored against the last piece."""
        earlier: dict[int, list[ScoreBlock]] = {index: [] for batch in batches for index in batch.indices}
        n_scored = 0
        query_residues = sum(profiles[index].length for batch in batches for index in batch.indices)
        with contextlib.closing(self._store.pieces(partition, query_residues)) as pieces:
            for subjects in pieces:
                n_scored += len(subjects)
                for number, batch in enumerate(batches):
                    chosen = [profiles[index] for index in batch.indices]
                    following = batches[(number + 1) % len(batches)]
                    self._plan_ahead(
                        [profiles[index] for index in following.indices], subjects, deferred=floors is not None
                    )
                    wanted = None if floors is None else [floors[index] for index in batch.indices]
                    of_batch = [None if rules is None else rules[index] for index in batch.indices]
                    scored = self._score_batch(chosen, subjects, wanted, of_batch)
                    for index, block in zip(batch.indices, scored, strict=True):
                        earlier[index].append(block)
                    cells = subjects.n_residues * sum(profile.length for profile in chosen)
                    self.timing.cells += cells
                    self._store.advance()
                    if progress is not None:
                        progress(cells)
                    if n_scored == len(partition):
                        whole = [ScoreBlock.concatenate(earlier.pop(index)) for index in batch.indices]
                        yield (
                            batch,
                            [in_stored_order(block, partition) for block in whole] if subjects.streamed else whole,
                        )

    # --- One batch against one piece ---

    def _score_batch(
        self,
        profiles: list[QueryProfile],
        subjects: DeviceSubjects,
        floors: list[int] | None,
        rules: list[TopKBound | None],
    ) -> list[ScoreBlock]:
        limits = [deferred_limit(p, None if floors is None else floors[i]) for i, p in enumerate(profiles)]
        deferred = self._deferred and all(limit is not None for limit in limits)
        plan = plan_inter_task(profiles, self._device.facts.architecture, deferred=deferred)
        scores = [self._scratch.buffer(f"scores {i}", len(subjects) * 4) for i in range(len(profiles))]
        whole = subjects.prefix(self.windows.first(subjects.partition, profiles))
        n_short, n_windowed_left = self._score_with_windows(profiles, subjects, whole, scores, deferred=plan.deferred)
        blocks = []
        for i, profile in enumerate(profiles):
            limit, floor = limits[i], None if floors is None else floors[i]
            if plan.deferred:
                assert limit is not None
                assert floor is not None
                beyond = plan.arithmetic.largest_exact(profile.max_score) + 1
                candidates = [ScoreFilter(0, n_short, limit), ScoreFilter(n_short, len(whole) - n_short, beyond)]
                n_passed = self._selector.collect(scores[i], candidates, "passed")
                if n_passed <= max(len(subjects) * MAX_DEFERRED_SHARE, WARP):
                    self._rescore(profile, whole, scores[i], Arithmetic.SHORT, listed="passed", n_listed=n_passed)
                    # The other entries are results of the deferred kernel: below the limit, and hence below the floor.
                    block = self._selector.at_least(subjects, scores[i], floor)
                    n_left = int((block.score >= beyond).sum())
                    blocks.append(ScoreBlock(block.subject_index, block.score, n_left))
                    continue
                self._score_all([profile], whole, [scores[i]], [], deferred=False)
            block = self._finish_exact(profile, subjects, whole, scores[i], plan.arithmetic, floor, rules[i])
            blocks.append(
                ScoreBlock(block.subject_index, block.score, block.n_rescored + n_windowed_left[i], block.n_left_out)
            )
        return blocks

    def _score_with_windows(
        self,
        profiles: list[QueryProfile],
        subjects: DeviceSubjects,
        whole: DeviceSubjects,
        scores: list[Buffer],
        *,
        deferred: bool,
    ) -> tuple[int, list[int]]:
        """Score the first subjects, ``whole``, with :meth:`_score_all` and the others exactly in windows.

        Returns the result of :meth:`_score_all` and, for each query, how many of the others exceed the narrow type.
        """
        if len(whole) == len(subjects):
            return self._score_all(profiles, whole, scores, [], deferred=deferred), [0] * len(profiles)
        with contextlib.ExitStack() as stack:
            runs = [
                self.windows.begin(profile, subjects, len(whole), self._packed.words, f"{i}", stack)
                for i, profile in enumerate(profiles)
            ]
            stack.callback(self._device.synchronize)
            if len(whole):
                n_short = self._score_all(profiles, whole, scores, runs, deferred=deferred)
            else:
                n_short = 0
                with self._measured():
                    for run in runs:
                        run.start()
            finished = [run.finish() for run in runs]
            for of_query, (found, _) in zip(scores, finished, strict=True):
                self._device.upload(of_query, found, Stream.COMPUTE, len(whole) * 4)
        return n_short, [n_left for _, n_left in finished]

    def _plan_ahead(self, profiles: list[QueryProfile], subjects: DeviceSubjects, *, deferred: bool) -> None:
        """Have the next batch packed while kernels run; only its first query if all subjects are scored in windows."""
        architecture = self._device.facts.architecture
        if self.windows.first(subjects.partition, profiles):
            plan = plan_inter_task(profiles, architecture, deferred=self._deferred and deferred)
            self._packed.ahead = (profiles, plan, plan.arithmetic)
        else:
            arithmetic = first_arithmetic(profiles[0])
            tile = plan_intra_task(profiles[0], architecture, arithmetic, windows=True)
            self._packed.ahead = (profiles[:1], tile, arithmetic)

    @contextlib.contextmanager
    def _measured(self) -> Iterator[None]:
        with self._device.timed(Stream.COMPUTE, self._packed.pack_ahead) as seconds:
            yield
        self.timing.seconds += seconds[0]

    def _score_all(
        self,
        profiles: list[QueryProfile],
        subjects: DeviceSubjects,
        scores: list[Buffer],
        runs: list[VerifiedWindowsRun],
        *,
        deferred: bool,
    ) -> int:
        """Write every subject's best score, or the result of a deferred kernel, to its entry of ``scores``.

        ``runs`` of longer subjects are launched first. Returns the index of the first subject with a warp of its own:
        scores from there on are exact within the type, even where deferred kernels ran.
        """
        device = self._device
        plan = plan_inter_task(profiles, device.facts.architecture, deferred=deferred)
        specs = range_kernels(plan, profiles[0].gap, texture=self._texture)
        resident = [
            min(device.resident_blocks(spec, strip.shape.tile.shared_bytes), strip.shape.blocks)
            for spec, strip in zip(specs, plan.strips, strict=True)
        ]
        groups_per_block = [strip.shape.threads // strip.shape.tile.group for strip in plan.strips]
        n_groups = device.facts.multiprocessors * max(
            n * groups for n, groups in zip(resident, groups_per_block, strict=True)
        )
        n_short = first_long(subjects.partition.lengths, subjects.n_residues, n_groups)
        long_indices = np.arange(n_short, len(subjects), dtype=np.uint32)[::-1]

        counters = self._scratch.buffer("counters", (len(plan.strips) + len(profiles)) * 4)
        device.clear(counters, counters.n_bytes, Stream.COMPUTE)
        boundary = None
        if len(plan.strips) > 1:
            words = max(strip.shape.tile.boundary_words for strip in plan.strips)
            boundary = self._scratch.buffer("boundary", 2 * subjects.residue_bytes * words * 4)
        queries = [plan.queries(strip) for strip in plan.strips]
        with contextlib.ExitStack() as stack:
            packed = self._lists.upload_profile("profile", self._packed.words(profiles, plan, plan.arithmetic), stack)
            alone = []
            if len(long_indices):
                alone = [self._list_profile(f"profile {i}", p, plan.arithmetic, stack) for i, p in enumerate(profiles)]
            if len(long_indices):
                indices = self._scratch.buffer("long subjects", len(long_indices) * 4)
                count = self._scratch.buffer("long count", 4)
                device.upload(indices, np.ascontiguousarray(long_indices), Stream.COMPUTE)
                device.upload(count, np.array([len(long_indices)], np.uint32), Stream.COMPUTE)
            lists = [
                self._plan_list(
                    profiles[i], profile_alone, subjects, scores[i], arithmetic=plan.arithmetic, indices=indices,
                    count=count, n_listed=len(long_indices), stream=SIDES[i],
                    counter=address(counters, (len(plan.strips) + i) * 4),
                )
                for i, profile_alone in enumerate(alone)
            ]  # fmt: skip
            stack.callback(device.synchronize)
            stack.enter_context(self._measured())
            for run in runs:
                run.start()
            # These launches precede the inter-task kernel, whose persistent blocks would occupy the multiprocessors.
            for launch in lists:
                device.follow(launch.stream, Stream.COMPUTE)
                launch.start()
            first_unit = 0
            for number, strip in enumerate(plan.strips if n_short else ()):
                arguments = [
                    *packed.arguments, signed(first_unit), signed(strip.has_strip_above), signed(strip.has_strip_below),
                    *_boundary_halves(boundary, number),
                    address(subjects.residues), address(subjects.starts), address(subjects.lengths), unsigned(n_short),
                    address(scores[queries[number][0]]), address(scores[queries[number][-1]]),
                    np.uint64(counters.address + number * 4),
                ]  # fmt: skip
                grid = min(device.facts.multiprocessors * resident[number], -(-n_short // groups_per_block[number]))
                device.launch(specs[number], grid, strip.shape.tile.shared_bytes, arguments, Stream.COMPUTE)
                first_unit += strip.shape.tile.strip_units
            for launch in lists:
                device.follow(Stream.COMPUTE, launch.stream)
        return n_short

    def _finish_exact(
        self,
        profile: QueryProfile,
        subjects: DeviceSubjects,
        whole: DeviceSubjects,
        scores: Buffer,
        arithmetic: Arithmetic,
        floor: int | None,
        rule: TopKBound | None,
    ) -> ScoreBlock:
        """Score subjects of ``whole`` that exceed the type again, and copy the needed scores of all to the host."""
        n_left = 0
        wider = arithmetic.wider
        if wider is not None and self._may_exceed(profile, whole, arithmetic):
            all_subjects = ScoreFilter(0, len(whole), arithmetic.largest_exact(profile.max_score) + 1)
            n_left = self._selector.collect(scores, [all_subjects], "left")
            self._rescore(profile, whole, scores, wider, listed="left", n_listed=n_left)
        if floor is not None:
            block = self._selector.best(subjects, scores, floor, rule)
            return ScoreBlock(block.subject_index, block.score, n_left, block.n_left_out)
        values = np.empty(len(subjects), dtype=np.int32)
        self._device.download(values, scores, Stream.COMPUTE)
        return ScoreBlock(subjects.partition.subject_index, values, n_left)

    @staticmethod
    def _may_exceed(profile: QueryProfile, subjects: DeviceSubjects, arithmetic: Arithmetic) -> bool:
        return exceeds(profile, subjects.longest, arithmetic)

    def _rescore(
        self,
        profile: QueryProfile,
        subjects: DeviceSubjects,
        scores: Buffer,
        arithmetic: Arithmetic,
        *,
        listed: str,
        n_listed: int,
    ) -> None:
        """Score the listed subjects in a wider type, and those that exceed it in the widest."""
        if n_listed == 0:
            return
        device = self._device
        counter = self._scratch.buffer("list counter", 4)
        device.clear(counter, 4, Stream.COMPUTE)
        with contextlib.ExitStack() as stack:
            on_device = self._list_profile("profile", profile, arithmetic, stack)
            launch = self._plan_list(
                profile, on_device, subjects, scores, arithmetic=arithmetic, indices=self._scratch[listed],
                count=self._scratch[f"{listed} count"], n_listed=n_listed, stream=Stream.COMPUTE,
                counter=address(counter),
            )  # fmt: skip
            stack.callback(device.synchronize)
            stack.enter_context(self._measured())
            launch.start()
        wider = arithmetic.wider
        if wider is not None and self._may_exceed(profile, subjects, arithmetic):
            same = ScoreFilter(0, n_listed, arithmetic.largest_exact(profile.max_score) + 1, listed)
            n_left = self._selector.collect(scores, [same], f"{listed} {wider.name}")
            self._rescore(profile, subjects, scores, wider, listed=f"{listed} {wider.name}", n_listed=n_left)

    def _plan_list(
        self,
        profile: QueryProfile,
        on_device: DeviceProfile,
        subjects: DeviceSubjects,
        scores: Buffer,
        *,
        arithmetic: Arithmetic,
        indices: Buffer,
        count: Buffer,
        n_listed: int,
        counter: np.uint64,
        stream: Stream,
    ) -> IntraTaskLaunch:
        listed = Listed(
            address(subjects.residues), address(subjects.starts), address(subjects.lengths),
            address(indices), address(count), n_listed, subjects.longest,
        )  # fmt: skip
        tile = plan_intra_task(profile, self._device.facts.architecture, arithmetic)
        return self._lists.plan(
            profile, on_device, listed, tile=tile, arithmetic=arithmetic, scores=address(scores), counter=counter,
            stream=stream, name=f"list {stream.name}",
        )  # fmt: skip

    # --- Profiles ---

    def _list_profile(
        self, name: str, profile: QueryProfile, arithmetic: Arithmetic, stack: contextlib.ExitStack
    ) -> DeviceProfile:
        tile = plan_intra_task(profile, self._device.facts.architecture, arithmetic)
        return self._lists.upload_profile(name, self._packed.words([profile], tile, arithmetic), stack)
