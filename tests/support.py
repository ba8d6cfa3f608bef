"""Inputs for several tests: partitions from lists of codes, random sequences and profiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.query.profile import QueryProfile
from swsearch.scoring.background import background
from swsearch.scoring.gap import GapPenalty
from swsearch.sequences.alphabet import N_CODES, PAD_CODE, PROTEIN
from swsearch.typing import Codes

ROBINSON_FREQUENCIES = np.rint(background(PROTEIN) * 1000)
"""Residues per thousand of natural proteins, in the order ARNDCQEGHILKMFPSTWYV."""


def make_partition(subjects: Sequence[Codes]) -> Partition:
    """Return the subjects in stored order (shortest first, then as given), in the layout of the packed format."""
    order = np.array(sorted(range(len(subjects)), key=lambda index: len(subjects[index])), dtype=np.uint32)
    lengths = np.array([len(subjects[index]) for index in order], dtype=np.uint32)
    padded = (lengths.astype(np.uint64) + SUBJECT_ALIGNMENT - 1) // SUBJECT_ALIGNMENT * SUBJECT_ALIGNMENT
    ends = np.cumsum(padded, dtype=np.uint64)
    starts = ends - padded
    residues = np.full((int(ends[-1]) if len(subjects) else 0) + TAIL_PADDING, PAD_CODE, dtype=np.uint8)
    for start, index in zip(starts, order, strict=True):
        residues[int(start) : int(start) + len(subjects[index])] = subjects[index]
    return Partition(residues, starts, lengths, order)


def random_protein(rng: np.random.Generator, length: int) -> Codes:
    """Return a protein of natural composition."""
    letters: Codes = rng.choice(20, size=length, p=ROBINSON_FREQUENCIES / ROBINSON_FREQUENCIES.sum()).astype(np.uint8)
    return letters


def random_dna(rng: np.random.Generator, length: int) -> Codes:
    """Return DNA of equal composition."""
    return rng.integers(0, 4, size=length, dtype=np.uint8)


def random_profile(
    rng: np.random.Generator, length: int, n_rows: int, gap: GapPenalty, low: int, high: int
) -> QueryProfile:
    """Return a profile whose scores are uniform on ``low`` … ``high``."""
    table = rng.integers(low, high + 1, size=(n_rows, N_CODES)).astype(np.int8)
    table[:, PAD_CODE] = -128
    return QueryProfile(rng.integers(0, n_rows, size=length).astype(np.int32), table, gap)
