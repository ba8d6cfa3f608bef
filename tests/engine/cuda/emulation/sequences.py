"""Generated sequences, and partitions of them in memory, in the layout of the packed format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.typing import Codes


def random_codes(rng: np.random.Generator, length: int, letters: int = 20) -> Codes:
    return rng.integers(0, letters, length).astype(np.uint8)


def partition_of(subjects: Sequence[Codes]) -> Partition:
    """Return a partition of the subjects by length, each at a multiple of 16 bytes, filled with the padding code."""
    order = sorted(range(len(subjects)), key=lambda index: (len(subjects[index]), index))
    packed = bytearray()
    starts = []
    for index in order:
        starts.append(len(packed))
        packed += subjects[index].tobytes()
        packed += bytes([PAD_CODE]) * (-len(packed) % SUBJECT_ALIGNMENT)
    packed += bytes([PAD_CODE]) * TAIL_PADDING
    return Partition(
        np.frombuffer(bytes(packed), dtype=np.uint8),
        np.array(starts, dtype=np.uint64),
        np.array([len(subjects[index]) for index in order], dtype=np.uint32),
        np.array(order, dtype=np.uint32),
    )
