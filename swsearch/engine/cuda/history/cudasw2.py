"""The kernels of CUDASW++ 2.0, for comparison with those of the default engine: their scores are exact, too.

Inputs are query profiles and partitions of the packed database; the output is the score of every subject.

=============  ==================================================================================
kernel         work
=============  ==================================================================================
simt           one thread per subject, in cell blocks of 16 rows by 4 columns (``cuda/history/simt.cu``)
striped        one warp per subject over a striped query, H and E in memory (``cuda/history/striped.cu``)
partitioned    the same in query partitions that stay in registers (``cuda/history/partitioned.cu``)
=============  ==================================================================================

One launch scores a query against all subjects of a piece of the database. ``simt`` and ``striped`` store H and E in 16
bits; the host lists subjects that score more than 65,535 and scores them again with 32 bits. ``partitioned`` uses 32
bits from the start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Buffer, Device, Stream, Timing, allocated, timed
from swsearch.engine.cuda.runtime.kernels import CODE_COLUMNS, UNIT_BYTES, WARP, KernelSpec
from swsearch.engine.cuda.runtime.parameters import CLASSIC, PARTITIONED, packed
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.subjects import DeviceSubjects, SubjectStore
from swsearch.engine.protocol import ScoreRequest
from swsearch.errors import EngineError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import PAD_SCORE
from swsearch.scoring.scheme import GapPenalty
from swsearch.typing import Closeable, Progress

CLASSIC_KERNELS: Final = ("simt", "striped", "partitioned")
THREADS: Final = 256
TEXEL_ROWS: Final = 16
"""One-byte scores in a texel of 16 bytes."""
LARGEST_NARROW: Final = 65_535
"""Largest score for which H and E fit 16 bits."""
DATABASE_SHARE: Final = 0.5
STATE_SHARE: Final = 0.25
"""Share of the device's free memory for subjects, and share for H, E and F between columns or partitions."""

_BLOCKS: Final = {"simt": 2, "striped": 4, "partitioned": 3}
"""Blocks per multiprocessor; they bound the registers of a thread."""

Texels = NDArray[np.int8]


def _column_scores(profile: QueryProfile, n_rows: int) -> Texels:
    """Scores by row and profile column, shape (n_rows, 32); column 0 and rows past the query are padding."""
    scores = np.full((n_rows, CODE_COLUMNS), PAD_SCORE, dtype=np.int8)
    scores[: profile.length, 1:] = profile.table[profile.rows, : CODE_COLUMNS - 1]
    return scores


def sequential_texels(profile: QueryProfile) -> Texels:
    """The sequential profile: the scores of 16 rows in each column, shape (blocks, 32 columns, 16 rows)."""
    blocks = -(-profile.length // TEXEL_ROWS)
    scores = _column_scores(profile, blocks * TEXEL_ROWS)
    return np.ascontiguousarray(scores.reshape(blocks, TEXEL_ROWS, CODE_COLUMNS).transpose(0, 2, 1))


def striped_texels(profile: QueryProfile, vectors: int) -> Texels:
    """The striped profile, int8 of shape (partitions, 32 columns, texels per lane, 32 lanes, 16).

    A partition has 32 times ``vectors`` rows; its row ``lane * vectors + i`` is entry i of that lane.
    """
    partitions = -(-profile.length // (WARP * vectors))
    texels = -(-vectors // TEXEL_ROWS)
    scores = _column_scores(profile, partitions * WARP * vectors)
    striped = np.full((partitions, CODE_COLUMNS, texels * TEXEL_ROWS, WARP), PAD_SCORE, dtype=np.int8)
    striped[:, :, :vectors] = scores.reshape(partitions, WARP, vectors, CODE_COLUMNS).transpose(0, 3, 2, 1)
    shaped = striped.reshape(partitions, CODE_COLUMNS, texels, TEXEL_ROWS, WARP)
    return np.ascontiguousarray(shaped.transpose(0, 1, 2, 4, 3))


@dataclass(frozen=True)
class ClassicPlan:
    """The launch that scores one query: the kernel, and the profile as it reads it.

    ``turns`` are the iterations of the kernel's loop over the query (cell blocks, vectors, or partitions). A block
    stores ``state_bytes`` of H, E and F in global memory, or ``column_bytes`` for each column of the longest subject.
    """

    spec: KernelSpec
    texels: Texels
    turns: int
    state_bytes: int = 0
    column_bytes: int = 0


def _spec(entry: str, gap: GapPenalty, **constants: object) -> KernelSpec:
    values = constants | {"gap_open": gap.open, "gap_extend": gap.extend, "threads": THREADS, "blocks": _BLOCKS[entry]}
    return KernelSpec("history", entry, tuple((name.upper(), str(value)) for name, value in values.items()), THREADS)


def partition_vectors(query_length: int) -> int:
    """Rows per lane of the partitioned kernel: the smallest multiple of 4 with as few partitions as 16 rows need."""
    partitions = -(-query_length // (WARP * TEXEL_ROWS))
    return -(-query_length // (partitions * WARP * 4)) * 4


def plan_classic(kernel: str, profile: QueryProfile, *, wide: bool) -> ClassicPlan:
    """The launch with which one of :data:`CLASSIC_KERNELS` scores a query; ``wide``: H and E in 32 bits."""
    if kernel == "partitioned":
        return plan_partitioned(profile, partition_vectors(profile.length))
    cell, cell_bytes = ("WideCell", 8) if wide else ("NarrowCell", 4)
    if kernel == "simt":
        texels = sequential_texels(profile)
        turns, rows = len(texels), len(texels) * TEXEL_ROWS
    else:
        turns = -(-profile.length // WARP)
        texels, rows = striped_texels(profile, turns), -(-turns // 4) * 4
    return ClassicPlan(_spec(kernel, profile.gap, cell=cell), texels, turns, state_bytes=rows * THREADS * cell_bytes)


def plan_partitioned(profile: QueryProfile, vectors: int) -> ClassicPlan:
    """The launch of the partitioned kernel with ``vectors`` rows per lane, 1 to 16."""
    texels = striped_texels(profile, vectors)
    spec = _spec("partitioned", profile.gap, vectors=vectors)
    column_bytes = 8 * (THREADS // WARP) if len(texels) > 1 else 0
    return ClassicPlan(spec, texels, len(texels), column_bytes=column_bytes)


class Cudasw2Engine(Closeable):
    """Scores on one GPU, by default the first, with one of :data:`CLASSIC_KERNELS`.

    See :class:`swsearch.engine.protocol.ScoreEngine`. What exceeds ``memory_limit`` bytes of device memory is streamed.
    Raises :class:`EngineUnavailable`, with the remedy, if no device can be used.
    """

    name = "cuda"
    profiles_per_call = 1
    rows_per_call = 1

    def __init__(self, kernel: str, device: Device | None = None, memory_limit: int | None = None) -> None:
        if kernel not in CLASSIC_KERNELS:
            raise EngineError(f"there is no kernel {kernel!r}; choose {', '.join(CLASSIC_KERNELS)}")
        self.kernel = kernel
        self._device: Device = PyCudaDevice() if device is None else device
        free = self._device.free_bytes()
        self._state_limit = int(free * STATE_SHARE)
        self._store = SubjectStore(self._device, int(free * DATABASE_SHARE) if memory_limit is None else memory_limit)
        self.timing = Timing()

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        blocks: list[list[ScoreBlock]] = [[] for _ in requests]
        with contextlib.closing(self._store.pieces(partition)) as pieces:
            for subjects in pieces if len(partition) else ():
                for number, request in enumerate(requests):
                    block = self._score_piece(request.profile, subjects)
                    blocks[number].append(block if request.floor is None else block.at_least(request.floor))
                    cells = request.profile.length * subjects.partition.n_residues
                    self.timing.cells += cells
                    self._store.advance()
                    if progress is not None:
                        progress(cells)
        return [ScoreBlock.concatenate(found) for found in blocks]

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        self._store.clear()
        self._device.close()

    def _score_piece(self, profile: QueryProfile, subjects: DeviceSubjects) -> ScoreBlock:
        """Every subject's score; subjects whose score exceeds 16 bits are scored again."""
        narrow = self.kernel != "partitioned"
        scores = self._launch(plan_classic(self.kernel, profile, wide=False), subjects, None)
        beyond = np.flatnonzero(scores > LARGEST_NARROW).astype(np.uint32) if narrow else np.empty(0, np.uint32)
        if len(beyond):
            again = self._launch(plan_classic(self.kernel, profile, wide=True), subjects, beyond)
            scores[beyond] = again[beyond]
        return ScoreBlock(subjects.partition.subject_index, scores, len(beyond))

    def _launch(
        self, plan: ClassicPlan, subjects: DeviceSubjects, indices: NDArray[np.uint32] | None
    ) -> NDArray[np.int32]:
        """Scores by subject index. If ``indices`` are given, only the scores of these subjects are computed."""
        device = self._device
        n_subjects = len(subjects) if indices is None else len(indices)
        subjects_per_block = THREADS if self.kernel == "simt" else THREADS // WARP
        resident = device.facts.multiprocessors * device.resident_blocks(plan.spec, 0)
        state_bytes = plan.state_bytes + plan.column_bytes * subjects.longest
        grid = max(1, min(resident, -(-n_subjects // subjects_per_block), self._state_limit // max(state_bytes, 1)))
        with contextlib.ExitStack() as stack:

            def on_device(values: NDArray[np.generic]) -> Buffer:
                buffer = allocated(device, stack, values.nbytes)
                device.upload(buffer, values, Stream.COMPUTE)
                return buffer

            texels = on_device(plan.texels)
            assert texels.n_bytes % UNIT_BYTES == 0
            listed = None if indices is None else on_device(indices)
            state = allocated(device, stack, grid * state_bytes)
            scores = allocated(device, stack, len(subjects) * 4)
            counter = allocated(device, stack, 4)
            device.clear(counter, 4, Stream.COMPUTE)
            common = {
                "texture": texels.texture(),
                "turns": plan.turns,
                "subjects": (*subjects.places, 0 if listed is None else listed.address, n_subjects),
                "scores": scores.address,
                "counter": counter.address,
            }  # fmt: skip
            if self.kernel == "partitioned":
                parameters = packed(PARTITIONED, **common, boundary=state.address, boundary_stride=subjects.longest)
            else:
                parameters = packed(CLASSIC, **common, cells=state.address)
            stack.callback(device.synchronize)
            with timed(device, self.timing):
                device.launch(plan.spec, grid, 0, parameters, Stream.COMPUTE)
            values = np.empty(len(subjects), dtype=np.int32)
            device.download(values, scores, Stream.COMPUTE)
            return values
