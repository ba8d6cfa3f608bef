"""Invalid arguments of the native module: wrong types, shapes, lengths, offsets and numbers.

Each call begins with valid arguments, some of which are then replaced. Whatever they are, the call returns a value or
raises TypeError, ValueError or OverflowError; it raises MemoryError where a number asked for memory, and OSError where
an offset lies outside a file. The calls are made in a child process, and death by a signal is a fault: offsets,
lengths, rows and letters must be checked before use.
"""

import random
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from swsearch import _native
from swsearch.scoring.matrix import named_matrix
from swsearch.sequences.alphabet import PROTEIN
from tests.campaign.program import called
from tests.campaign.trials import Trial

N_CALLS: Final = 60
ALLOWED: Final = (TypeError, ValueError, OverflowError, MemoryError, OSError)
_POWERS: Final = [2**k for k in (5, 15, 16, 31, 32, 63)]
_EXTREMES: Final = (0, 1, -1, 2, 15, 31, 255, 16383, 16384, 2**31 - 1, *_POWERS, -(2**31), -(2**63))


# --- valid arguments ---


def _problem(rng: random.Random) -> dict[str, Any]:
    source = np.random.default_rng(rng.getrandbits(32))
    lengths = source.integers(0, 30, rng.randint(0, 5)).astype(np.uint32)
    starts = (np.cumsum(lengths) - lengths).astype(np.uint64)
    query = source.integers(0, 20, rng.randint(1, 40)).astype(np.uint8)
    return {
        "codes": query,
        "rows": query.astype(np.int32),
        "table": np.ascontiguousarray(named_matrix("BLOSUM62").scores[:20]),
        "identity": PROTEIN.identity_table,
        "residues": source.integers(0, 24, int(lengths.sum()) + 64).astype(np.uint8),
        "starts": starts,
        "lengths": lengths,
        "letters": query.astype(np.uint16),
        "others": source.integers(0, 20, rng.randint(0, 40)).astype(np.uint16),
    }


def _score(rng: random.Random) -> list[Any]:
    p = _problem(rng)
    scores = np.zeros((1, len(p["lengths"])), np.int32)
    sets = [name for name, usable in _native.instruction_sets() if usable]
    profiles = [(p["rows"], p["table"], 11, 1)]
    subjects = [p["residues"], p["starts"], p["lengths"]]
    return [profiles, *subjects, scores, [(0, [0])], rng.choice(sets), rng.randint(1, 3)]


def _align(rng: random.Random) -> list[Any]:
    p = _problem(rng)
    arrays = [p["codes"], p["rows"], p["table"], 11, 1, p["identity"], p["residues"], p["starts"], p["lengths"]]
    return [*arrays, rng.randint(1, 3), 1 << 16, None, "auto", rng.randint(1, 3), 1, None]


def _align_known(rng: random.Random) -> list[Any]:
    arguments = _align(rng)
    n = len(arguments[8])
    ends = np.zeros((n, 3), np.int64)
    for row in range(n):
        length = int(arguments[8][row])
        ends[row] = rng.randint(0, 100), rng.randint(0, len(arguments[0])), rng.randint(0, length)
    arguments[13], arguments[15] = 1, ends
    return arguments


def _pairs(rng: random.Random) -> list[Any]:
    p = _problem(rng)
    n_before = rng.choice([0, 3])  # a single pair, or four
    ends = [
        np.array([*sorted(rng.randint(0, len(p[part])) for _ in range(n_before)), len(p[part])])
        for part in ("letters", "others")
    ]
    modes = [rng.random() < 0.5, rng.randint(0, 15), rng.random() < 0.5]
    table = rng.choice([None, np.ascontiguousarray(p["table"][:, :20])])
    resources = [rng.randint(1, 3), rng.choice([0, 1 << 20]), None, "auto"]
    return [p["letters"], ends[0], p["others"], ends[1], table, 2, -3, 5, 2, *modes, *resources]


def _cigars(rng: random.Random) -> list[Any]:
    letters = np.arange(10, dtype=np.uint16)
    ends = np.array([4, 10])
    starts = np.array([0, 1])
    runs = np.array([2 << 2, 1 << 2 | 1, 3 << 2], np.uint32)
    return [letters, ends, letters, ends, starts, starts, np.array([2, 3]), runs, 2]


def _records(rng: random.Random) -> list[Any]:
    is_fastq = rng.random() < 0.5
    text = b"@a b\nMKV\n+\n@@@\n" * 3 if is_fastq else b">a b\nMKV\r\n LL \n>c\nW"
    return [np.frombuffer(text, dtype=np.uint8).copy(), PROTEIN.encode_table, is_fastq]


def _positions(rng: random.Random) -> list[Any]:
    lengths, counts = np.array([3, 5], np.uint32), np.array([2, 1], np.uint32)
    return [lengths, counts, np.array([11, 12, 10], np.uint32), 10, lengths, np.array([0, 2], np.uint64)]


def _take(rng: random.Random) -> list[Any]:
    groups = [np.array([3, 5, 5], np.uint32), np.array([2, 1, 4], np.uint32)]
    runs = [np.array(values, np.uint64) for values in ([0, 2], [2, 3], [0, 11], [0, 3])]
    return [*groups, *runs, np.array([3, 5], np.uint32), np.array([0, 2], np.uint32), 2**63]


def _pieces(rng: random.Random) -> tuple[np.ndarray[Any, Any], ...]:
    small = [np.array(values, np.uint32) for values in ([3, 5], [2, 1], [0, 2])]
    return (*small, np.array([0, 6], np.uint64), np.array([0, 2], np.uint64))


def _items() -> list[np.ndarray[Any, Any]]:
    return [np.arange(9, dtype=np.uint8), np.array([4, 9], np.uint64)]


def _text(rng: random.Random) -> list[Any]:
    decode = np.arange(256, dtype=np.uint8)
    return [*_items(), np.arange(7, dtype=np.uint8), np.array([3, 4], np.uint32), decode, rng.randint(0, 5)]


def _subjects(rng: random.Random) -> list[Any]:
    which, starts = np.array([1, 0, 1], np.uint16), np.array([2, 0, 0], np.uint64)
    return [np.arange(4, dtype=np.uint8), np.arange(8, dtype=np.uint8), which, starts, np.array([6, 4, 1], np.uint32)]


def _stored_residues(rng: random.Random) -> list[Any]:
    starts, lengths = np.array([0, 16], np.uint64), np.array([rng.randint(1, 16), 7], np.uint32)
    return [np.full(32, rng.choice([1, 31]), np.uint8), starts, lengths, np.arange(256, dtype=np.uint8) % 31, 31]


def _gather_residues(*arrays: Any) -> object:
    with open("/proc/self/exe", "rb") as file:
        return _native.gather_residues([file.fileno()], arrays[:5], *arrays[5:])


def _gather_values(*arrays: Any) -> object:
    with open("/proc/self/exe", "rb") as file:
        return _native.gather_values(file.fileno(), arrays)


def _walk(*arguments: Any) -> object:
    """Walk over a pair and over blocks of it."""
    made, block = arguments[:11], arguments[11:]
    walk = _native.PairWalk(*made)
    before = walk.row, walk.column
    assert before[0] <= len(made[0])
    assert before[1] <= len(made[1])
    if not walk.done:
        walk.through(*block)
    return walk.finish()


def _walk_arguments(rng: random.Random) -> list[Any]:
    p = _problem(rng)
    n, m = len(p["letters"]), len(p["others"])
    edges = [np.array([rng.randint(-50, 50) for _ in range(50)], np.int32) for _ in range(6)]
    ends = [rng.randint(0, n), rng.randint(0, m)]
    modes = [rng.random() < 0.5, rng.randint(0, 15)]
    block = [rng.randint(0, n), rng.randint(0, m), 7]
    return [p["letters"], p["others"], None, 2, -3, 5, 2, *modes, *ends, *block, *edges]


def _columns(rng: random.Random) -> list[Any]:
    """A model of a few positions, and the odds of two subjects."""
    length, n = rng.randint(1, 40), rng.randint(1, 30)
    numbers = np.random.default_rng(rng.getrandbits(32))
    n_blocks = -(-length // 16)
    return [
        numbers.dirichlet(np.ones(20), length).astype(np.float32),
        numbers.random((length, 4), np.float32),
        numbers.integers(0, 5000, (n, 20), dtype=np.int16),
        np.array([0, n // 2], np.uint64),
        np.array([n, n - n // 2], np.uint32),
        np.zeros((2, n_blocks), np.float32),
        np.zeros((2, n_blocks), np.int32),
        rng.randint(1, 3),
    ]


def _scaled(rng: random.Random) -> list[Any]:
    n = rng.randint(1, 40)
    numbers = np.random.default_rng(rng.getrandbits(32))
    scores = numbers.integers(-127, 128, (n, 20))
    present = numbers.integers(0, 2, n).astype(np.uint8)
    return [9.0 * numbers.normal(size=(n, 20)), present, 0.5, 2.0, 13, numbers.random(255), numbers.random(20), scores]


def _domains(rng: random.Random) -> list[Any]:
    """A model of a few positions, and two proteins."""
    length, n = rng.randint(1, 40), rng.randint(1, 90)
    numbers = np.random.default_rng(rng.getrandbits(32))
    return [
        20.0 * numbers.random((32, length)) ** 4,
        numbers.random((7, length)) / 2.0,
        numbers.random(length) / length,
        numbers.integers(0, 256, n, dtype=np.uint8),
        np.array([0, n // 2], np.uint64),
        np.array([n, n - n // 2], np.uint32),
        np.full(2, rng.choice([-(10**6), 0, 10]), np.int64),
        rng.randint(1, 3),
    ]


CALLS: Final[dict[str, tuple[Callable[..., object], Callable[[random.Random], list[Any]]]]] = {
    "score_partition": (_native.score_partition, _score),
    "align_local": (_native.align_local, _align),
    "align_local with ends": (_native.align_local, _align_known),
    "align_pairs": (_native.align_pairs, _pairs),
    "write_cigars": (_native.write_cigars, _cigars),
    "read_records": (_native.read_records, _records),
    "run_positions": (_native.run_positions, _positions),
    "take_pieces": (_native.take_pieces, _take),
    "gather_residues": (_gather_residues, lambda rng: [*_pieces(rng), 0, 31]),
    "write_fasta": (_native.write_fasta, _text),
    "copy_subjects": (lambda one, other, *rest: _native.copy_subjects([one, other], *rest), _subjects),
    "residues_hold": (_native.residues_hold, _stored_residues),
    "equal_subjects": (_native.equal_subjects, lambda rng: [*_stored_residues(rng)[:3], 0, rng.randint(1, 3)]),
    "contained_subjects": (
        _native.contained_subjects,
        lambda rng: [
            *_stored_residues(rng)[:3],
            np.array([1, rng.randint(0, 1)], np.uint8),
            16,
            0,
            rng.randint(1, 3),
            2,
        ],
    ),
    "gather_values": (_gather_values, lambda rng: list(_pieces(rng))),
    "forward_totals": (_native.forward_totals, _columns),
    "scaled_scores": (_native.scaled_scores, _scaled),
    "decode_domains": (_native.decode_domains, _domains),
    "PairWalk": (_walk, _walk_arguments),
}


# --- invalid arguments ---


def _spoiled_array(rng: random.Random, array: np.ndarray[Any, Any]) -> Any:
    action = rng.randrange(15)
    if action == 0:
        return array.astype(
            rng.choice(["<u1", "<i1", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", ">u4", ">i4", "?", "O"])
        )
    if action == 1:
        return array.reshape(rng.choice([(-1, 1), (1, -1)]))
    if action == 2:
        return np.repeat(array, 2, axis=0)[::2]
    if action == 3:
        return array[::-1]
    if action == 4:
        return array[: len(array) // 2]
    if action == 5:
        return array[:0]
    if action == 6:
        return np.concatenate([array, array])
    if action == 7:
        frozen = array.copy()
        frozen.setflags(write=False)
        return frozen
    if action == 8:
        return np.asfortranarray(array)
    if action == 9:
        return rng.choice([None, array.tolist(), bytes(array), memoryview(array), 7, "x", object(), array.tobytes()])
    if action == 10:
        return np.empty((0, *array.shape[1:]), array.dtype)
    spoiled = array.copy()
    if spoiled.size:
        info = np.iinfo(spoiled.dtype) if spoiled.dtype.kind in "iu" else None
        value = rng.choice(_EXTREMES)
        if info is not None:
            value = min(max(value, int(info.min)), int(info.max))
        spoiled.flat[rng.randrange(spoiled.size)] = value
    return spoiled


def _spoiled(rng: random.Random, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _spoiled_array(rng, value)
    if isinstance(value, list):
        return rng.choice(
            [[], value * 2, None, [[_spoiled(rng, item) for item in value]], [_spoiled(rng, item) for item in value]]
        )
    if isinstance(value, tuple):
        return tuple(_spoiled(rng, item) if rng.random() < 0.6 else item for item in value)
    if isinstance(value, bool):
        return rng.choice([True, False, None, 2])
    if isinstance(value, int):
        # Exclude numbers of threads or bytes that the function would really use.
        return rng.choice([*_EXTREMES[:8], *_EXTREMES[10:], 1.5, "1", None, 10**30])
    return rng.choice(["scalar", "sse41", "none of these", "", "a\0b", None, 3, lambda _: None])


def spoiled_call(rng: random.Random) -> tuple[str, list[Any]]:
    """Return a function of the native module and arguments for it."""
    name = rng.choice(sorted(CALLS))
    arguments = CALLS[name][1](rng)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        index = rng.randrange(len(arguments))
        arguments[index] = _spoiled(rng, arguments[index])
    return name, arguments


def _describe(arguments: Sequence[Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, np.ndarray):
            head = value.ravel()[:8].tolist()
            return f"{value.dtype}{list(value.shape)}{head}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(one, value)) + "]"
        return repr(value)[:60]

    return ", ".join(map(one, arguments))


def make_calls(seeds: Sequence[int], note: Path) -> int:
    """Make the calls that these seeds determine; return 1 after a wrong exception."""
    for seed in seeds:
        note.write_text(str(seed))  # before the call can end the process
        name, arguments = spoiled_call(random.Random(seed))
        try:
            CALLS[name][0](*arguments)
        except ALLOWED:
            pass
        except BaseException:
            traceback.print_exc()
            return 1
    return 0


@pytest.mark.thorough
@pytest.mark.peer("gcc")
@pytest.mark.campaign(6, 6_000)
def test_arguments_that_do_not_fit_are_refused_and_never_crash(trial: Trial) -> None:
    note = trial.folder / "call"
    ended = called(make_calls, [trial.rng.getrandbits(64) for _ in range(N_CALLS)], note)
    name, arguments = spoiled_call(random.Random(int(note.read_text())))  # the last one that was made
    what = ended.fault or ended.text[-800:]
    assert (ended.code, ended.fault) == (0, None), f"{name}({_describe(arguments)}): {what}"
