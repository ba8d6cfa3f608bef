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


def _encode(scores: NDArray[np.int32], arithmetic: Arithmetic) -> Words:
    """Scores as the arithmetic adds them: in the low 16 bits for pairs, in all 32 bits for the wide type."""
    if arithmetic is Arithmetic.FAST:
        return np.where(scores < 0, 0x8000 | -scores, scores).astype(np.uint32)
    if arithmetic is Arithmetic.SHORT:
        return (scores & 0xFFFF).astype(np.uint32)
    return scores.astype(np.int32).view(np.uint32)


def _row_scores(profile: QueryProfile, tile: Tile, first_row: int) -> NDArray[np.int32]:
    """Scores of a strip's rows, int32 of shape (tile.rows, tile.columns); padding past the query and in column 0."""
    scores = np.full((tile.rows, tile.columns), PAD_SCORE, dtype=np.int32)
    rows = profile.rows[first_row : first_row + tile.rows]
    scores[: len(rows), 1:] = profile.table[rows, : tile.columns - 1]
    return scores


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
    encoded = [_encode(_row_scores(profile, tile, first_row), arithmetic) for profile in profiles]
    if tile.pairing is Pairing.ROW_BLOCKS:
        halves = encoded[0].reshape(tile.group, 2, tile.words, tile.columns)
        words: Words = halves[:, 0] | (halves[:, 1] << np.uint32(16))
    else:
        shaped = [scores.reshape(tile.group, tile.words, tile.columns) for scores in encoded]
        words = shaped[0] | (shaped[1] << np.uint32(16)) if tile.pairing is Pairing.TWO_QUERIES else shaped[0]
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
