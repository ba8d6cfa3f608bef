"""Packs query profiles for the kernels: words of two scores, or of one, in the order of a tile's lanes.

The input is a score for each query position and letter; the output is an array of uint32 words. The host packs each
query once; the layout is that of :class:`swsearch.engine.cuda.kernels.Tile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.kernels import CHUNK_WORDS, PLANE_UNITS, Arithmetic, Pairing, Tile
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


def _row_scores(profile: QueryProfile, tile: Tile, arithmetic: Arithmetic, first_row: int) -> NDArray[np.generic]:
    """Encoded scores of a strip's rows, shape (tile.rows, tile.columns); padding past the query and in column 0."""
    rows = np.full(tile.rows, len(profile.table), dtype=np.intp)
    of_query = profile.rows[first_row : first_row + tile.rows]
    rows[: len(of_query)] = of_query
    return _encoded(profile, tile, arithmetic)[rows]


def pack_strip(profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic, first_row: int) -> Words:
    """The words of one strip of one query, or of two queries if the tile pairs queries.

    Parameters
    ----------
    profiles : one QueryProfile, or two for ``Pairing.TWO_QUERIES``
    tile : Tile
    arithmetic : Arithmetic
    first_row : int
        The strip's first row in each query.

    Returns
    -------
    uint32 array, shape (tile.strip_units * 4,)
    """
    encoded = [_row_scores(profile, tile, arithmetic, first_row) for profile in profiles]
    if tile.pairing is Pairing.SINGLE:
        words = encoded[0].reshape(tile.group, tile.words, tile.columns)
    else:
        if tile.pairing is Pairing.ROW_BLOCKS:
            halves = encoded[0].reshape(tile.group, 2, tile.words, tile.columns).transpose(0, 2, 3, 1)
        else:
            shaped = [scores.reshape(tile.group, tile.words, tile.columns) for scores in encoded]
            halves = np.stack(shaped, axis=-1)
        # The low half of a word precedes the high half in memory.
        words = np.ascontiguousarray(halves).view("<u4")[..., 0]
    # The axes are lane, word and column; after the rearrangement: plane and unit of (chunk, slot), column, word of the
    # chunk.
    n_chunks = tile.planes * PLANE_UNITS // tile.slots
    filled = np.zeros((n_chunks * CHUNK_WORDS, tile.slots, tile.columns), dtype=np.uint32)
    filled[: tile.words] = words[np.arange(tile.slots) % tile.group].transpose(1, 0, 2)
    chunks = filled.reshape(-1, CHUNK_WORDS, tile.slots, tile.columns).transpose(0, 2, 3, 1)
    planes = chunks.reshape(tile.planes, PLANE_UNITS, tile.columns, CHUNK_WORDS)
    return planes.transpose(0, 2, 1, 3).reshape(-1)


def pack_profile(profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic) -> Words:
    """All strips of one query, or of two, one after another in one tile: shape (strips * tile.strip_units * 4,)."""
    strips = tile.strips(max(profile.length for profile in profiles))
    return np.concatenate([pack_strip(profiles, tile, arithmetic, strip * tile.rows) for strip in range(strips)])
