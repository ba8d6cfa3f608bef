"""Query profiles as the kernels read them: words of two scores (or one), in the order of a tile's lanes.

Packed once a query on the host; the layout is that of :class:`swsearch.engine.cuda.kernels.Tile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.kernels import Arithmetic, Pairing, Tile
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import PAD_SCORE

Words = NDArray[np.uint32]

DNA_COLUMNS: Final = 17
PROTEIN_COLUMNS: Final = 28
"""Letters and one column of padding (:mod:`swsearch.sequences.alphabet`)."""


def residue_columns(profiles: Sequence[QueryProfile]) -> int:
    """Columns to stage: 17 where no code of 16 or more scores, as in DNA; 28 else."""
    wide = any(bool((profile.table[:, DNA_COLUMNS - 1 :] != PAD_SCORE).any()) for profile in profiles)
    return PROTEIN_COLUMNS if wide else DNA_COLUMNS


def _encode(scores: NDArray[np.int32], arithmetic: Arithmetic) -> Words:
    """Scores in the form the arithmetic adds them: in the low 16 bits for pairs, in all 32 for wide ones."""
    if arithmetic is Arithmetic.FAST:
        return np.where(scores < 0, 0x8000 | -scores, scores).astype(np.uint32)
    if arithmetic is Arithmetic.SHORT:
        return (scores & 0xFFFF).astype(np.uint32)
    return scores.astype(np.int32).view(np.uint32)


def _row_scores(profile: QueryProfile, tile: Tile, n_rows: int) -> NDArray[np.int32]:
    """Scores by row and column, int32 of shape (n_rows, tile.columns); rows past the query and column 0 are padding."""
    scores = np.full((n_rows, tile.columns), PAD_SCORE, dtype=np.int32)
    scores[: profile.length, 1:] = profile.table[profile.rows, : tile.columns - 1]
    return scores


def pack_profile(profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic) -> Words:
    """The words of one query, or of two where the tile pairs queries.

    Parameters
    ----------
    profiles : one QueryProfile, or two for ``Pairing.TWO_QUERIES``
    tile : Tile
    arithmetic : Arithmetic

    Returns
    -------
    uint32 array, shape (strips * tile.strip_units * 4,)
    """
    strips = tile.strips(max(profile.length for profile in profiles))
    encoded = [_encode(_row_scores(profile, tile, strips * tile.rows), arithmetic) for profile in profiles]
    if tile.pairing is Pairing.ROW_BLOCKS:
        halves = encoded[0].reshape(strips, tile.group, 2, tile.words, tile.columns)
        words: Words = halves[:, :, 0] | (halves[:, :, 1] << np.uint32(16))
    else:
        shaped = [scores.reshape(strips, tile.group, tile.words, tile.columns) for scores in encoded]
        words = shaped[0] | (shaped[1] << np.uint32(16)) if tile.pairing is Pairing.TWO_QUERIES else shaped[0]
    # words: strip, lane, word, column -> strip, then for each chunk: column, slot, word of the chunk
    words = words[:, np.arange(tile.slots) % tile.group].transpose(0, 3, 1, 2)
    packed = np.zeros((strips, tile.strip_units * 4), dtype=np.uint32)
    place = first = 0
    for width in tile.chunk_widths:
        chunk = words[:, :, :, first : first + width]
        filled = np.zeros((strips, tile.columns, tile.slots, width), dtype=np.uint32)
        filled[..., : chunk.shape[3]] = chunk
        n_words = tile.columns * tile.slots * width
        packed[:, place : place + n_words] = filled.reshape(strips, -1)
        place += -(-n_words // 4) * 4
        first += width
    return packed.reshape(-1)
