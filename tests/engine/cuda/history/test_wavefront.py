"""The block wavefront on the emulated device. Expected values: parasail's scan kernel, which charges open + (k - 1) *
extend, so linear gaps have open = extend there; and edit distances by rapidfuzz."""

import numpy as np
import pytest

from swsearch.engine.cuda.history.wavefront import TILE, wavefront_score
from swsearch.errors import EngineError
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.peers import oracle


def text(letters: np.ndarray) -> str:
    return "".join("ACGT"[letter] for letter in letters)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (16, 16), (15, 17), (48, 48), (5, 100), (100, 5), (97, 81)])
def test_scores_of_all_lengths(emulated: MakeDevice, m: int, n: int) -> None:
    """Costs of 2009 (indel 3, substitution 1, match 0), of an edit distance, and others; multiples of 16 or not."""
    parasail, distance = oracle("parasail"), oracle("rapidfuzz.distance")
    rng = np.random.default_rng(m * 1000 + n)
    query = rng.integers(0, 4, m).astype(np.uint16)
    subject = np.resize(query, n)
    subject[::7] = rng.integers(0, 4, len(subject[::7]))
    device = emulated(reversed_order=m > n)
    for match, mismatch, indel in [(0, -1, 3), (5, -4, 6)]:
        found = wavefront_score(device, query, subject, match=match, mismatch=mismatch, indel=indel)
        matrix = parasail.matrix_create("ACGT", match, mismatch)
        assert found == parasail.nw_scan_32(text(query), text(subject), indel, indel, matrix).score
    edits = wavefront_score(device, query, subject, match=0, mismatch=-1, indel=1)
    assert -edits == distance.Levenshtein.distance(text(query), text(subject))
    assert device.used_bytes == 0


def test_memory_is_linear(emulated: MakeDevice) -> None:
    """Two bytes per letter, and four per element of a row, a column and the corners: far below one byte per cell."""
    device = emulated()
    letters = np.zeros(400, dtype=np.uint16)
    assert wavefront_score(device, letters, letters, match=1, mismatch=-1, indel=1) == 400
    assert device.peak_bytes <= 2 * 400 * 2 + 2 * 400 * 4 + 2 * 400 // TILE * 4 + 64


def test_what_it_cannot_take_is_refused(emulated: MakeDevice) -> None:
    one = np.zeros(1, dtype=np.uint16)
    with pytest.raises(EngineError, match="at least one letter"):
        wavefront_score(emulated(), one[:0], one, match=1, mismatch=-1, indel=1)
    with pytest.raises(EngineError, match="beyond 30 bits"):
        wavefront_score(emulated(), one, one, match=1, mismatch=-1, indel=2**27)
