"""Indexing in blocks and on several threads: neither the blocks nor the threads can be seen in the database.

The expected values come from the format's description, computed in plain Python, from the records as they were written,
and from a hash function that is repeated here to make identifiers whose hashes are equal.
"""

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from swsearch import _native
from swsearch.database import segment_writer
from swsearch.database.builder import BuildReport, build_database
from swsearch.database.changes import add_to_database, remove_from_database
from swsearch.database.format import ARRAY_DTYPES
from swsearch.database.opening import open_database
from swsearch.sequences import fasta as fasta_reader
from swsearch.sequences.alphabet import PAD_CODE, PROTEIN
from swsearch.sequences.fasta import read_chunks
from swsearch.threads import Threads
from tests.database.conftest import fasta_text, some_records


def arrays_of(path: Path) -> dict[str, bytes]:
    """Return the bytes of the arrays of a database of one segment; nothing else may be in its folder."""
    (segment,) = [folder for folder in path.iterdir() if folder.is_dir()]
    return {file.stem: file.read_bytes() for file in segment.iterdir()}


def expected_arrays(records: list[tuple[str, str]]) -> dict[str, bytes]:
    """Return the arrays of the records, from the description in swsearch/database/format.py."""
    order = sorted(range(len(records)), key=lambda n: (len(records[n][1]), n))
    residues = bytearray()
    starts = []
    for n in order:
        starts.append(len(residues))
        residues += bytes(PROTEIN.encode(records[n][1]))
        residues += bytes([PAD_CODE]) * (-len(residues) % 16)
    arrays = {
        "residues": np.frombuffer(residues + bytes([PAD_CODE]) * 64, dtype=np.uint8),
        "starts": starts,
        "lengths": [len(records[n][1]) for n in order],
        "order": order,
        "positions": np.argsort(order),
        "headers": np.frombuffer("".join(header for header, _ in records).encode(), dtype=np.uint8),
        "header_ends": np.cumsum([len(header) for header, _ in records]),
    }
    return {name: np.asarray(array).astype(ARRAY_DTYPES[name]).tobytes() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def varied() -> list[tuple[str, str]]:
    """Return 500 records, of which 200 have the same length and one is longer than every block."""
    source = random.Random(11)
    records = some_records(299, 11)
    records += [(f"E{n}", "".join(source.choices("ARNDCQEGHILKMFPSTWYV", k=17))) for n in range(200)]
    source.shuffle(records)
    return [*records[:250], ("long", "MKVLW" * 700), *records[250:]]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize(("text_bytes", "block_bytes"), [(300, 64), (9_000, 1 << 12), (1 << 20, 100), (10**9, 1 << 22)])
def test_blocks_and_threads_do_not_change_a_byte(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    varied: list[tuple[str, str]],
    n_threads: int,
    text_bytes: int,
    block_bytes: int,
) -> None:
    """Expected values: the format's arrays, computed in plain Python, and no spool files."""
    (tmp_path / "some.fa").write_bytes(fasta_text(varied))
    monkeypatch.setattr(fasta_reader, "BLOCKS_BYTES", text_bytes)
    monkeypatch.setattr(segment_writer, "BLOCK_BYTES", block_bytes)
    report = build_database(tmp_path / "some.fa", tmp_path / "db", threads=n_threads)
    assert arrays_of(tmp_path / "db") == expected_arrays(varied)
    (entry,) = report.catalogue.segments
    assert (entry.n_subjects, entry.shortest, entry.longest) == (500, 1, 3500)
    assert report.n_duplicates == 0


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("unusual", ["tab in a header", "third line with a header", "none"])
def test_fastq_is_read_alike_in_blocks_of_every_size(tmp_path: Path, line_end: bytes, unusual: str) -> None:
    """Expected values: the records as written."""
    header = "r4\tx" if unusual == "tab in a header" else "r4 x"
    headers = ["r1", "r2 y", "r3", header, "r5", "r6"]
    lines: list[bytes] = []
    for number, name in enumerate(headers):
        plus = f"+{name}" if unusual == "third line with a header" else "+"
        lines += [f"@{name}".encode(), b"ACGTN"[: number % 5 + 1], plus.encode(), b"@+>#I"[: number % 5 + 1]]
    path = tmp_path / "some.fq"
    path.write_bytes(line_end.join(lines) + line_end)
    for block_bytes in (1, 7, 30, 1000):
        for n_threads in (1, 3):
            with Threads(n_threads) as threads:
                chunks = list(read_chunks(path, threads=threads, block_bytes=block_bytes))
            assert [one.decode() for chunk in chunks for one in chunk.headers] == headers
            letters = "".join(chunk.alphabet.decode(chunk.codes) for chunk in chunks)
            assert letters == "".join("ACGTN"[: number % 5 + 1] for number in range(6))


def mixed(value: int) -> int:
    for _ in range(2):
        value = ((value ^ value >> 32) * 0xD6E8FEB86659FD93) % 2**64
    return value ^ value >> 32


def with_equal_hashes(seed: int) -> tuple[bytes, bytes]:
    """Return two identifiers of 16 bytes whose hashes are equal, by the hash function of simd/index/identifiers.cpp.

    The hash of 8 bytes is combined with the next 8 bytes by an exclusive or, so other first 8 bytes can be compensated.
    """
    source = random.Random(seed)
    while True:
        first, second, other = (struct.pack("<Q", source.randrange(2**64)) for _ in range(3))
        states = [mixed(16 ^ struct.unpack("<Q", word)[0]) for word in (first, other)]
        last = struct.pack("<Q", states[0] ^ states[1] ^ struct.unpack("<Q", second)[0])
        identifiers = first + second, other + last
        if all(byte > 0x20 for identifier in identifiers for byte in identifier):
            return identifiers


def index(folder: Path, identifiers: list[bytes], n_threads: int = 1) -> BuildReport:
    (folder / "some.fa").write_bytes(b"".join(b">%s x\nMKV\n" % identifier for identifier in identifiers))
    return build_database(folder / "some.fa", folder / "db", overwrite=True, threads=n_threads)


def test_identifiers_with_equal_hashes_are_compared(tmp_path: Path) -> None:
    """Expected values: different identifiers are not duplicates; each occurs once more, the second one first."""
    one, other = with_equal_hashes(3)
    with open(tmp_path / "spool", "wb") as spool:
        ends = np.array([16, 32], dtype=np.uint64)
        headers = np.frombuffer(one + other, dtype=np.uint8)
        _native.write_identifiers(headers, ends, np.empty(0, dtype=np.uint8), 0, spool.fileno(), 0)
    entries = np.fromfile(tmp_path / "spool", dtype=np.uint32).reshape(2, 3)
    assert np.array_equal(entries[0, :2], entries[1, :2])
    assert index(tmp_path, [one, other, b"c"]).n_duplicates == 0
    report = index(tmp_path, [one, other, other, b"c", one, other])
    assert report.n_duplicates == 3
    assert report.first_duplicate == other.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("n_threads", [1, 3])
def test_repeated_identifiers_are_counted_as_by_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    """Oracle: a set of all identifiers; they are in many blocks, and some are empty."""
    monkeypatch.setattr(fasta_reader, "BLOCKS_BYTES", 4_000)
    source = random.Random(5)
    identifiers = [b"" if source.random() < 0.01 else b"id%d" % source.randrange(1500) for _ in range(2000)]
    report = index(tmp_path, identifiers, n_threads)
    seen: set[bytes] = set()
    repeated = []
    for identifier in identifiers:
        if identifier in seen:
            repeated.append(identifier)
        seen.add(identifier)
    # An empty identifier is followed by the word x, which is then the first word.
    assert report.n_duplicates == len(repeated)
    assert report.catalogue.n_subjects == len(identifiers)
    assert report.first_duplicate == (repeated[0] or b"x").decode()


def test_additions_are_compared_with_what_is_left(tmp_path: Path) -> None:
    """Expected values: of b, c, d, c and d, the first is known, the second was removed, and two are repeated."""
    index(tmp_path, [b"a", b"b", b"c"])
    remove_from_database(tmp_path / "db", ["c"])
    (tmp_path / "more.fa").write_bytes(b">c\nMK\n>d\nMKV\n>b\nML\n>c\nMM\n>d\nMW\n")
    report = add_to_database(tmp_path / "db", tmp_path / "more.fa")
    assert (report.n_duplicates, report.first_duplicate) == (3, "b")
    with open_database(tmp_path / "db") as database:
        assert [record.identifier for record in database] == ["a", "b", "c", "d", "b", "c", "d"]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_first_problem_is_reported_though_later_blocks_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    """Expected position: counted by hand; the comment, the record without residues and the digit come later."""
    monkeypatch.setattr(fasta_reader, "BLOCKS_BYTES", 700)
    good = b"".join(b">s%d\nMKVL\n" % n for n in range(100))
    (tmp_path / "some.fa").write_bytes(good + b">bad\nMK-\n" + good + b"# no\n>empty\n>digit\nM1\n")
    with pytest.raises(Exception, match=r"record 101 \(bad\), line 202, column 3: '-' is a gap"):
        build_database(tmp_path / "some.fa", tmp_path / "db", PROTEIN, threads=n_threads)
    assert [path.name for path in tmp_path.iterdir()] == ["some.fa"]
