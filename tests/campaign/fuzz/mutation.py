"""Mutations of valid inputs: of bytes, lines and tokens of the format, and of the archives that hold them."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_TEXT: Final = 20_000
"""Limit of the bytes of a mutated text; archives hold up to a thousand times as many."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes
    ----------
    check : callable
        Called with the bytes and an empty folder; raises AssertionError if a property is violated.
    seeds : sequence of bytes
        Inputs that are valid, or nearly so.
    tokens : sequence of bytes
        What mutations insert besides random bytes.
    archives : bool
        Whether the reader accepts compressed files.
    """

    check: Callable[[bytes, Path], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    archives: bool = False


def mutated(rng: random.Random, target: Target) -> bytes:
    """Return a mutated input, made from a target's seeds."""
    data = bytearray(rng.choice(target.seeds))
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 10])):
        at = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 2, 4, 16, 64])
        action = rng.randrange(9)
        if action == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif action == 1:
            data[at : at + length] = b""
        elif action == 2 and target.tokens:
            data[at:at] = rng.choice(target.tokens)
        elif action == 3 and target.tokens:
            data[at : at + length] = rng.choice(target.tokens)
        elif action == 4:
            data[at:at] = rng.randbytes(length)
        elif action == 5:
            data[at:at] = data[at : at + length] * rng.choice([1, 2, 50])
        elif action == 6:
            del data[at:]
        elif action == 7:
            other = rng.choice(target.seeds)
            data[at:] = other[rng.randrange(len(other) + 1) :]
        else:
            lines = data.splitlines(keepends=True)
            rng.shuffle(lines) if rng.random() < 0.3 else lines.extend(rng.choices(lines, k=2) if lines else [])
            data = bytearray(b"".join(lines))
        del data[MAX_TEXT:]
    raw = bytes(data)
    return _archived(rng, raw) if target.archives and rng.random() < 0.4 else raw


def _archived(rng: random.Random, raw: bytes) -> bytes:
    """Return the bytes in one archive or several, intact or damaged, sometimes highly compressible."""
    from backports import zstd

    pack = rng.choice([gzip.compress, bz2.compress, lzma.compress, zstd.compress])
    if rng.random() < 0.1:
        raw += rng.choice([b"A", b"\n", b" ", b"0", b"\n>x\nA"]) * rng.choice([1000, 1_000_000])
    data = bytearray(pack(raw))
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        action = rng.randrange(5)
        if action == 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif action == 1:
            del data[rng.randrange(1, len(data) + 1) :]
        elif action == 2:
            data += rng.choice([b"\0", b"\0\0\0\0", b"garbage", pack(raw), rng.randbytes(9), b"\x1f\x8b"])
        elif action == 3:
            data += b"xx" + pack(raw)
        else:
            data[4:4] = rng.randbytes(3)
        data = data or bytearray(b"x")
    return bytes(data)
