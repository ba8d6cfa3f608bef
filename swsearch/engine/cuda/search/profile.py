"""Packs query profiles for the kernels: words of two scores, or of one, in the order of a tile's lanes.

The input is a score for each query position and letter; the output is an array of uint32 words. The host packs each
query once; the layout is that of :class:`swsearch.engine.cuda.runtime.kernels.Tile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.kernels import CHUNK_WORDS, PLANE_UNITS, Arithmetic, Pairing, Tile
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import PAD_SCORE

Words = NDArray[np.uint32]

DNA_COLUMNS: Final = 17
PROTEIN_COLUMNS: Final = 28
"""Profile columns: one per letter (:mod:`swsearch.sequences.alphabet`) and one for padding."""


def residue_columns(profiles: Sequence[QueryProfile]) -> int:
    """Profile columns to pack: 17 if no code from 16 on has scores, as in DNA; else 28."""
    wide = any(bool((profile.table[:, DNA_COLUMNS - 1 :] != PAD_SCORE).any()) for profile in profiles)
    return PROTEIN_COLUMNS if wide else DNA_COLUMNS


def _encoded(profile: QueryProfile, tile: Tile, arithmetic: Arithmetic) -> NDArray[np.generic]:
    """The profile's table as the arithmetic adds its scores, with a last row of padding.

    Returns
    -------
    uint16 array, or uint32 for the wide type, shape (n_rows + 1, tile.columns)
        Column 0, and each column of the last row, is padding.
    """
    scores = np.full((len(profile.table) + 1, tile.columns), PAD_SCORE, dtype=np.int32)
    scores[:-1, 1:] = profile.table[:, : tile.columns - 1]
    if arithmetic is Arithmetic.WIDE:
        return scores.view(np.uint32)
    if arithmetic is Arithmetic.FAST:
        return np.where(scores < 0, 0x8000 | -scores, scores).astype(np.uint16)
    return scores.astype(np.int16).view(np.uint16)


@cache
def _sources(tile: Tile) -> NDArray[np.intp]:
    """For each half of a word of a strip, or word of a single score, the index of its score.

    The scores of a strip have shape (queries, tile.rows, tile.columns); the index after the last one denotes 0.
    """
    shape = (tile.group, tile.words, tile.columns)
    n_scores = tile.rows * tile.columns
    if tile.pairing is Pairing.ROW_BLOCKS:
        blocks = np.arange(n_scores).reshape(tile.group, 2, tile.words, tile.columns)
        halves = [blocks[:, 0], blocks[:, 1]]
    else:
        n_queries = 2 if tile.pairing is Pairing.TWO_QUERIES else 1
        halves = [np.arange(n_scores).reshape(shape) + query * n_scores for query in range(n_queries)]
        n_scores *= n_queries
    # The axes are lane, word and column; after the rearrangement: plane and unit of (chunk, slot), column, word of the
    # chunk.
    n_chunks = tile.planes * PLANE_UNITS // tile.slots
    arranged = []
    for half in halves:
        filled = np.full((n_chunks * CHUNK_WORDS, tile.slots, tile.columns), n_scores)
        filled[: tile.words] = half[np.arange(tile.slots) % tile.group].transpose(1, 0, 2)
        chunks = filled.reshape(-1, CHUNK_WORDS, tile.slots, tile.columns).transpose(0, 2, 3, 1)
        arranged.append(chunks.reshape(tile.planes, PLANE_UNITS, tile.columns, CHUNK_WORDS).transpose(0, 2, 1, 3))
    # The low half of a word precedes the high half in memory.
    sources: NDArray[np.intp] = np.stack(arranged, axis=-1).reshape(-1)
    return sources


def pack_strips(
    profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic, first_row: int, n_strips: int
) -> Words:
    """The words of strips of one query, or of two queries if the tile pairs queries.

    Parameters
    ----------
    profiles : one QueryProfile, or two for ``Pairing.TWO_QUERIES``
    tile : Tile
    arithmetic : Arithmetic
    first_row : int
        The first strip's first row in each query.
    n_strips : int

    Returns
    -------
    uint32 array, shape (n_strips * tile.strip_units * 4,)
    """
    scores = []
    for profile in profiles:
        rows = np.full(n_strips * tile.rows, len(profile.table), dtype=np.intp)
        of_query = profile.rows[first_row : first_row + len(rows)]
        rows[: len(of_query)] = of_query
        scores.append(_encoded(profile, tile, arithmetic)[rows].reshape(n_strips, -1))
    zero = np.zeros((n_strips, 1), dtype=scores[0].dtype)
    packed = np.concatenate([*scores, zero], axis=1).take(_sources(tile), axis=1)
    return packed.view("<u4").reshape(-1)


def pack_profile(profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic) -> Words:
    """All strips of one query, or of two, one after another in one tile: shape (strips * tile.strip_units * 4,)."""
    return pack_strips(profiles, tile, arithmetic, 0, tile.strips(max(profile.length for profile in profiles)))
