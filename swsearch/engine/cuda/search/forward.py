"""Local Forward scores of a query with some subjects on a GPU, for :mod:`swsearch.search.rescoring`.

Inputs are the model of a query, and partitions; the outputs are the scores that
:meth:`swsearch.query.columns.SubjectOdds.forward` computes, bit by bit. The kernel ``column_odds`` predicts the columns
of the subjects, whose residues lie in one array with padding between them. ``forward_totals`` then computes a strip of
512 rows of the query in each launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.runtime.kernels import COLUMN_ODDS_KERNEL, FORWARD_KERNEL, WARP
from swsearch.engine.cuda.runtime.parameters import COLUMN_ODDS, FORWARD, packed
from swsearch.engine.cuda.search.launches import address
from swsearch.engine.cuda.search.slots import Slot
from swsearch.query.columns import (
    BLOCK_ROWS,
    SUBJECT_ADMIXTURE,
    ColumnModel,
    column_model,
    forward_scores,
    inverse_background,
    powers_of_two,
)
from swsearch.query.profile import ProfileModel
from swsearch.sequences.alphabet import N_AMINO_ACIDS, PAD_CODE
from swsearch.typing import Codes, Floats

POSITIONS: Final = 64
"""Positions of a block of ``column_odds``."""
PAIRS: Final = N_AMINO_ACIDS // 2
ROW_WORDS: Final = PAIRS + 4
STRIP_ROWS: Final = WARP * BLOCK_ROWS
AHEAD: Final = FORWARD_KERNEL.threads // WARP - 1
"""Steps of ``forward_totals`` whose odds are computed together, by as many warps."""
FORWARD_SHARED_BYTES: Final = 4 * STRIP_ROWS * (ROW_WORDS + 2 * AHEAD)
_QUERY_UNITS: Final = np.float32(1 << 15)
_MOST_UNITS: Final = np.float32(32_767)
_ALIGNMENT: Final = 256
"""Of arrays in one buffer, in bytes."""


@dataclass(frozen=True, eq=False)
class ForwardWork:
    """A query and subjects as the kernels take them.

    ``rows``, of shape (n_strips, BLOCK_ROWS, ROW_WORDS, WARP), has pairs of shares as pairs of bytes
    (``cuda/search/forward_numbers.cuh``), then the factors of gaps as float32; there are ``n_blocks`` blocks of rows.
    ``codes`` are the residues of the subjects, with padding before, between and behind them. ``order`` has the
    subjects' numbers, the longest first; ``starts`` and ``lengths`` are in this order, and a start is an index in
    ``codes`` behind the first padding.
    """

    rows: NDArray[np.uint32]
    n_blocks: int
    codes: Codes
    order: NDArray[np.intp]
    starts: NDArray[np.uint32]
    lengths: NDArray[np.uint32]

    @classmethod
    def of(cls, query: ProfileModel, subjects: Sequence[Partition], padding: int) -> ForwardWork:
        """Arrange a query and the subjects of all partitions."""
        given = np.concatenate([each.lengths for each in subjects]).astype(np.int64)
        order = np.argsort(given, kind="stable")[::-1]
        lengths = given[order]
        starts = np.cumsum(lengths + padding) - (lengths + padding)
        # Subjects, and what is before, between and behind them; threads that rank other queries go on meanwhile.
        which = np.full(2 * len(order) + 1, len(subjects), dtype=np.uint16)
        places, sizes = np.zeros(len(which), dtype=np.uint64), np.full(len(which), padding, dtype=np.uint32)
        which[1::2] = np.repeat(np.arange(len(subjects)), [len(each) for each in subjects])[order]
        places[1::2], sizes[1::2] = np.concatenate([each.starts for each in subjects])[order], lengths
        sources = [*(each.residues for each in subjects), np.full(padding, PAD_CODE, dtype=np.uint8)]
        codes = _native.copy_subjects(sources, which, places, sizes)
        n_blocks = -(-len(query) // BLOCK_ROWS)
        return cls(_packed_rows(query), n_blocks, codes, order, starts.astype(np.uint32), sizes[1::2])


def _packed_rows(query: ProfileModel) -> NDArray[np.uint32]:
    """The ``rows`` of a query."""
    n_strips = -(-len(query) // STRIP_ROWS)
    units = np.zeros((n_strips * STRIP_ROWS, N_AMINO_ACIDS), dtype="<u2")
    units[: len(query)] = np.minimum(query.odds_factors * _QUERY_UNITS + np.float32(0.5), _MOST_UNITS)
    words = np.zeros((len(units), ROW_WORDS), dtype="<u4")
    pairs = units.view(np.uint8).reshape(-1, PAIRS, 2, 2)  # numbers, bytes
    words[:, :PAIRS] = np.ascontiguousarray(pairs.swapaxes(2, 3)).reshape(-1, PAIRS * 4).view("<u4")
    words[: len(query), PAIRS:] = query.gap_factors.view("<u4")
    return np.ascontiguousarray(words.reshape(n_strips, WARP, BLOCK_ROWS, ROW_WORDS).transpose(0, 2, 3, 1))


class ForwardScorer:
    """A thread that computes Forward scores on a GPU, which it opens at the first call.

    Neither these calls nor the batches of a search, whose thread has opened the GPU too, wait for each other.
    """

    def __init__(self, open_device: Callable[[], Device]) -> None:
        self._open_device = open_device
        self._thread = ThreadPoolExecutor(1, "forward")
        self._is_open = False
        self._device: Device
        self._slot: Slot
        self._network: tuple[ColumnModel, list[int]] | None = None
        """A model, and the addresses of what the kernels take of it."""

    def scores(
        self, query: ProfileModel, subjects: Sequence[Partition], model: ColumnModel | None = None
    ) -> Floats | None:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`; any thread may call it."""
        model = model or column_model()
        work = ForwardWork.of(query, subjects, model.width // 2)
        return self._thread.submit(self._scores, work, model).result()

    def _scores(self, work: ForwardWork, model: ColumnModel) -> Floats | None:
        if not self._is_open:
            self._device = self._open_device()
            self._device.prepare(COLUMN_ODDS_KERNEL)
            self._device.prepare(FORWARD_KERNEL)
            self._slot = Slot(self._device)
            self._is_open = True
        try:
            totals, exponents = self._totals(work, model)
        except OutOfDeviceMemory:
            self._device.synchronize()
            self._slot.free()
            self._network = None
            return None
        scores = np.empty(len(work.order))
        scores[work.order] = forward_scores(totals, exponents)
        return scores

    def close(self) -> None:
        """Free the memory, close the GPU and end the thread."""
        if self._is_open:
            self._thread.submit(self._slot.free).result()
            self._thread.submit(self._device.close).result()
        self._thread.shutdown()

    def _upload(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
        """Begin to copy arrays to the buffer of this name, in one transfer, and return the address of each."""
        sizes = [-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays.values()]
        *places, end = np.cumsum([0, *sizes]).tolist()
        staged = self._slot.pinned(end, np.uint8)
        for place, array in zip(places, arrays.values(), strict=True):
            np.copyto(staged[place : place + array.nbytes].view(array.dtype), array.ravel())
        buffer = self._slot.scratch.buffer(name, end)
        self._device.upload(buffer, staged, Stream.COMPUTE)
        return {name: address(buffer, place) for name, place in zip(arrays, places, strict=True)}

    def _totals(self, work: ForwardWork, model: ColumnModel) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Totals and exponents of shape (n, n_blocks), with the longest subject first, until the next call."""
        device, scratch = self._device, self._slot.scratch
        n_strips, shape = len(work.rows), (len(work.order), work.n_blocks)
        self._slot.clear()  # the last call has waited for its copies
        n_positions = len(work.codes) - 2 * (model.width // 2)
        found = self._slot.pinned(2 * shape[0] * shape[1], np.int32).reshape(2, *shape)
        totals, exponents = found[0].view(np.float32), found[1]
        if not found.size:
            return totals, exponents
        uploaded = self._upload("given", {name: getattr(work, name) for name in ("rows", "starts", "lengths", "codes")})
        odds = scratch.buffer("odds", n_positions * N_AMINO_ACIDS * 2)
        on_device = scratch.buffer("found", found.nbytes)
        boundary = scratch.buffer("boundary", n_positions * 16) if n_strips > 1 else None
        self._start_odds(uploaded.pop("codes"), n_positions, model, address(odds))
        for strip in range(n_strips):
            parameters = packed(
                FORWARD, **uploaded, strip=strip, n_strips=n_strips, n_blocks=work.n_blocks, odds=address(odds),
                n_subjects=shape[0], boundary=address(boundary), totals=address(on_device),
                exponents=address(on_device, totals.nbytes),
            )  # fmt: skip
            device.launch(FORWARD_KERNEL, shape[0], FORWARD_SHARED_BYTES, parameters, Stream.COMPUTE)
        device.begin_download(found, on_device, Stream.COMPUTE)
        device.event(Stream.COMPUTE, sleeping=True).wait()  # many threads wait, and others need the cores
        return totals, exponents

    def _start_odds(self, codes: int, n_positions: int, model: ColumnModel, odds: int) -> None:
        """Start the kernel that writes the odds of all positions."""
        n_first, n_second = len(model.first_bias), len(model.second_bias)
        *layers, inverse = self._constants(model)
        parameters = packed(
            COLUMN_ODDS,
            network=(*layers, model.width, n_first, n_second),
            inverse_background=inverse,
            admixture=SUBJECT_ADMIXTURE,
            rest=np.float32(1.0) - np.float32(SUBJECT_ADMIXTURE),
            codes=codes,
            n_positions=n_positions,
            odds=odds,
        )
        words = POSITIONS * (n_first // 2 + n_second // 2 + N_AMINO_ACIDS)
        shared_bytes = words * 4 + -(-(POSITIONS + model.width) // 4) * 4
        grid = -(-n_positions // POSITIONS)
        self._device.launch(COLUMN_ODDS_KERNEL, grid, shared_bytes, parameters, Stream.COMPUTE)

    def _constants(self, model: ColumnModel) -> list[int]:
        """The addresses of a model's layers and of the inverse composition, which are uploaded once."""
        if self._network is None or self._network[0] is not model:
            constants: dict[str, NDArray[Any]] = {
                "first": model.first,
                "first_bias": model.first_bias,
                "second": _inputs_by_eight(model.second),
                "second_bias": model.second_bias,
                "third": _inputs_by_eight(model.third),
                "third_bias": model.third_bias,
                "powers": powers_of_two(),
                "inverse_background": inverse_background(),
            }
            self._network = model, list(self._upload("network", constants).values())
        return self._network[1]


def _inputs_by_eight(weights: NDArray[np.int16]) -> NDArray[np.int16]:
    """Weights of shape (n_units, n_inputs) as (n_inputs / 8, n_units, 8)."""
    n_units, n_inputs = weights.shape
    return weights.reshape(n_units, n_inputs // 8, 8).transpose(1, 0, 2)
