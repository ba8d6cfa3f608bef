"""Packed profiles, read word by word in the layout that ``tile.cuh`` describes."""

import numpy as np
import pytest

from swsearch._native import pack_strips
from swsearch.engine.cuda.runtime.kernels import PROFILE_COLUMNS, Arithmetic, Pairing, Tile
from swsearch.engine.cuda.search.slots import pack_strips as pack_all
from swsearch.engine.cuda.search.slots import profile_strips
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA, PAD_CODE, PROTEIN
from tests.support import random_codes


def decode(half: int, arithmetic: Arithmetic) -> int:
    if arithmetic is Arithmetic.FAST:
        return -(half & 0x7FFF) if half & 0x8000 else half
    return half - 0x10000 if half & 0x8000 else half


def expected(profile: QueryProfile, row: int, code: int) -> int:
    return int(profile.table[profile.rows[row], code]) if row < profile.length and code != PAD_CODE else -128


@pytest.mark.parametrize("arithmetic", [Arithmetic.FAST, Arithmetic.SHORT])
@pytest.mark.parametrize(("pairing", "group", "words"), [
    (Pairing.TWO_BLOCKS, 4, 5), (Pairing.TWO_BLOCKS, 8, 7), (Pairing.TWO_QUERIES, 4, 6), (Pairing.TWO_BLOCKS, 32, 2),
])  # fmt: skip
def test_each_word_holds_its_rows_scores(arithmetic: Arithmetic, pairing: Pairing, group: int, words: int) -> None:
    rng = np.random.default_rng(1)
    scheme = default_scheme(PROTEIN)
    count = 2 if pairing is Pairing.TWO_QUERIES else 1
    profiles = [sequence_profile(random_codes(rng, 90 - 7 * i, 24), scheme) for i in range(count)]
    tile = Tile(pairing, group, words)
    packed = pack_all([profile_strips(profiles, tile, arithmetic)])
    words_read = packed.reshape(tile.strips(90), tile.planes, PROFILE_COLUMNS, 16, 4)
    assert words_read.size == tile.strips(90) * tile.strip_units * 4
    codes = [*range(PROFILE_COLUMNS - 1), PAD_CODE]
    for strip in range(tile.strips(90)):
        for slot in range(tile.slots):
            lane = slot % group
            for k in range(words):
                chunk, part = divmod(k, 4)
                plane, unit = divmod(chunk * tile.slots + slot, 16)
                for code in codes:
                    word = int(words_read[strip, plane, (code + 1) % 32, unit, part])
                    if pairing is Pairing.TWO_BLOCKS:
                        low_row = strip * tile.rows + lane * 2 * words + k
                        want = (expected(profiles[0], low_row, code), expected(profiles[0], low_row + words, code))
                    else:
                        row = strip * tile.rows + lane * words + k
                        want = (expected(profiles[0], row, code), expected(profiles[1], row, code))
                    assert (decode(word & 0xFFFF, arithmetic), decode(word >> 16, arithmetic)) == want


def test_wide_words_are_the_scores() -> None:
    profile = sequence_profile(random_codes(np.random.default_rng(2), 40, 4), default_scheme(DNA))
    tile = Tile(Pairing.ONE_SCORE, 32, 4)
    words = pack_all([profile_strips([profile], tile, Arithmetic.WIDE)]).view(np.int32)
    words = words.reshape(2, PROFILE_COLUMNS, 16, 4).transpose(1, 0, 2, 3).reshape(PROFILE_COLUMNS, 32, 4)
    for lane in range(10):
        for k in range(4):
            np.testing.assert_array_equal(words[1:, lane, k], profile.table[profile.rows[lane * 4 + k], :27])
    assert (words[0] == -128).all()
    assert (words[:, 10:] == -128).all()


@pytest.mark.parametrize(("pairing", "arithmetic"), [("kSingle", "Wide"), ("kTwoBlocks", "ByteQuad")])
def test_an_unknown_name_is_refused(pairing: str, arithmetic: str) -> None:
    profile = sequence_profile(random_codes(np.random.default_rng(2), 40, 4), default_scheme(DNA))
    tile = Tile(Pairing.TWO_BLOCKS, 32, 4)
    words = np.empty(tile.strip_units * 4, np.uint32)
    with pytest.raises(ValueError, match="is not"):
        pack_strips(
            profile.rows, profile.table, profile.rows, profile.table, tile.group, tile.words, PROFILE_COLUMNS,
            pairing, arithmetic, 0, 1, words,
        )  # fmt: skip
