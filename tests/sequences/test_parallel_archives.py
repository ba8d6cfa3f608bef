"""Archives that are decompressed by several threads: the same records, and the same errors, as by one.

The expected values are those of the sequential readers, which other tests compare with the text that was compressed.
"""

import gzip
import random
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from swsearch.errors import FastaFormatError
from swsearch.sequences import archives as parallel_archives
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.archives import Readable
from swsearch.sequences.fasta import read_chunks
from swsearch.threads import Threads

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def bgzip_block(text: bytes) -> bytes:
    """Return a block of bgzip, as section 4.1 of the SAM specification describes it."""
    raw = zlib.compressobj(wbits=-15)
    deflated = raw.compress(text) + raw.flush()
    header = struct.pack("<4BI2BH2B2H", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(deflated) + 25)
    return header + deflated + struct.pack("<II", zlib.crc32(text), len(text))


def bgzip(texts: list[bytes]) -> bytes:
    return b"".join(map(bgzip_block, [*texts, b""]))


def members(texts: list[bytes]) -> bytes:
    return b"".join(gzip.compress(text, mtime=0) for text in texts)


def one_member(texts: list[bytes]) -> bytes:
    return gzip.compress(b"".join(texts), mtime=0)


def frames(texts: list[bytes]) -> bytes:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"12345"
    return skippable.join(map(zstd.compress, texts))


def one_frame(texts: list[bytes]) -> bytes:
    return zstd.compress(b"".join(texts))


def stored(texts: list[bytes]) -> bytes:
    """Return a member without compression: headers of gzip members that are part of the text look like new members."""
    return gzip.compress(b"".join(texts), compresslevel=0, mtime=0) + members(texts[:1])


PACKERS: dict[str, Callable[[list[bytes]], bytes]] = {
    "bgzip": bgzip,
    "members": members,
    "one member": one_member,
    "frames": frames,
    "one frame": one_frame,
    "stored": stored,
}


@pytest.fixture(params=["small segments", "usual segments"])
def segments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "small segments":
        monkeypatch.setattr(parallel_archives, "SEGMENT_BYTES", 100)
        monkeypatch.setattr(parallel_archives, "MAX_SEGMENT_BYTES", 1000)


@pytest.fixture(scope="module")
def texts() -> list[bytes]:
    """Return parts of a FASTA text of 30 kB, cut anywhere; one header looks like that of a gzip member."""
    source = random.Random(3)
    whole = b"".join(
        b">s%d\n%s\n" % (n, bytes(source.choices(b"ARNDCQEG", k=source.randrange(1, 300)))) for n in range(200)
    )
    cuts = sorted(source.sample(range(len(whole)), 30))
    looks = b">\x1f\x8b\x08\x01abcd\x02\x03 x\nMK\n"
    return [looks * 20, *(whole[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True))]


def outcome(path: Path, n_threads: int) -> tuple[bytes, list[bytes]] | str:
    """Return all residues and headers, or the error."""
    with Threads(n_threads) as threads:
        try:
            chunks = list(read_chunks(path, PROTEIN, threads=threads, block_bytes=2000))
        except FastaFormatError as error:
            return str(error)
    return b"".join(chunk.codes.tobytes() for chunk in chunks), [one for chunk in chunks for one in chunk.headers]


@pytest.mark.usefixtures("segments")
@pytest.mark.parametrize("packer", PACKERS)
def test_threads_find_the_same_records(tmp_path, texts, packer):
    parts = texts if packer == "stored" else texts[1:]
    path = tmp_path / "some.fa"
    path.write_bytes(PACKERS[packer](parts))
    found = outcome(path, 3)
    assert not isinstance(found, str) or packer == "stored"
    assert found == outcome(path, 1)
    path.write_bytes(PACKERS[packer](texts[1:]))
    assert outcome(path, 3) == outcome(path, 1)
    if packer != "stored":
        (tmp_path / "plain.fa").write_bytes(b"".join(texts[1:]))
        assert outcome(path, 3) == outcome(tmp_path / "plain.fa", 1)


@pytest.mark.parametrize(("packer", "n_sequential"), [("bgzip", 0), ("members", 0), ("frames", 0), ("one member", 1)])
def test_members_and_frames_need_no_sequential_reader(tmp_path, monkeypatch, texts, packer, n_sequential):
    """Expected values: the sequential reader is called once for a single member, and otherwise never."""
    calls: list[str | None] = []
    sequential = parallel_archives.decompressed

    def counted(file: BinaryIO, name: str | None) -> Readable:
        calls.append(name)
        return sequential(file, name)

    monkeypatch.setattr(parallel_archives, "decompressed", counted)
    monkeypatch.setattr(parallel_archives, "SEGMENT_BYTES", 100)
    monkeypatch.setattr(parallel_archives, "MAX_SEGMENT_BYTES", 3000)
    path = tmp_path / "some.fa"
    path.write_bytes(PACKERS[packer](texts[1:]))
    with open(path, "rb") as file, Threads(3) as threads:
        name = "zst" if packer == "frames" else "gz"
        with parallel_archives.decompressing(file, name, threads) as archive:
            found = b"".join(iter(lambda: archive.read(777), b""))
    assert found == b"".join(texts[1:])
    assert len(calls) == n_sequential


@pytest.mark.parametrize("packer", ["bgzip", "members", "frames", "one member", "one frame"])
def test_threads_report_the_same_damage(tmp_path, monkeypatch, texts, packer):
    """Archives that are cut, have other bytes between or behind their parts, padding, or a changed byte."""
    monkeypatch.setattr(parallel_archives, "SEGMENT_BYTES", 300)
    monkeypatch.setattr(parallel_archives, "MAX_SEGMENT_BYTES", 5000)
    whole = PACKERS[packer](texts[1:])
    source = random.Random(5)
    damaged = [whole[: source.randrange(len(whole))] for _ in range(12)]
    damaged += [whole + b"garbage", whole + bytes(20), whole[:-1], b"garbage" + whole, whole + whole[:9]]
    between = PACKERS[packer](texts[1:9])
    damaged += [between + rest + between for rest in (b"x", bytes(7), b"\x1f\x8b", b"\x28\xb5\x2f\xfd")]
    for _ in range(12):
        changed = bytearray(whole)
        changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
        damaged.append(bytes(changed))
    path = tmp_path / "some.fa"
    n_errors = 0
    for data in damaged:
        path.write_bytes(data)
        expected = outcome(path, 1)
        assert outcome(path, 3) == expected
        n_errors += isinstance(expected, str)
    assert n_errors > 20


def test_a_segment_of_too_much_text_is_read_sequentially(tmp_path, monkeypatch, texts):
    """A few kilobytes can hold gigabytes; expected values: the same records."""
    monkeypatch.setattr(parallel_archives, "SEGMENT_BYTES", 100)
    monkeypatch.setattr(parallel_archives, "MAX_OUTPUT_BYTES", 3000)
    path = tmp_path / "some.fa"
    for packer in ("bgzip", "members", "frames"):
        path.write_bytes(PACKERS[packer]([*texts[1:], b">long\n" + b"M" * 5000 + b"\n", *texts[1:]]))
        assert outcome(path, 3) == outcome(path, 1)
