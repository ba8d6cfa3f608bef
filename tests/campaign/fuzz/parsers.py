"""Everything that reads text: seeds, mutations of them, and what must hold whatever the bytes are.

A target takes bytes and either gives a value, of which it checks what can be checked without a second parser (what
was read is written and read again, and is the same), or raises one of ``swsearch.errors`` with one line that names the
file.
Anything else is a fault: another exception, a hang, a signal, memory beyond a bound.

Trials mutate seeds, knowing their tokens and lines, and pack some in archives, which they damage as well. ``guided``
gives the same targets to Atheris.
"""

# ruff: noqa: PT017, PT018 - what a target asserts is told with its input, and what it catches is what it is about

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import sqlite3
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from swsearch.database.format import read_catalogue, write_catalogue
from swsearch.errors import InputError, SwSearchError
from swsearch.filters.identifiers import IdentifierList
from swsearch.filters.taxonomy import TaxonFilter
from swsearch.hits import cigar
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.pssm.read import detect_query_format, read_profiles
from swsearch.report.fields import FIELDS, STANDARD, select_fields
from swsearch.scoring.matrix import matrix_file, matrix_text, named_matrix, parse_matrix_text
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_chunks, read_each, read_sequences
from swsearch.sequences.genetic_code import genetic_code
from swsearch.sequences.organism import header_organism, header_taxid
from swsearch.sequences.record import SequenceRecord
from swsearch.store.repository import HitStore
from tests.campaign.fuzz.children import in_child

if TYPE_CHECKING:
    from tests.campaign.parts import Budget, Outcome
    from tests.campaign.trials import Trial

MAX_TEXT: Final = 20_000
"""Bytes of a mutated text; archives hold up to a thousand times as many."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes
    ----------
    check : callable
        Called with the bytes and an empty folder; raises AssertionError where a promise is broken.
    seeds : sequence of bytes
        Inputs that are sound, or nearly.
    tokens : sequence of bytes
        What mutations put in beside random bytes.
    archives : bool
        Whether the reader takes compressed files.
    """

    check: Callable[[bytes, Path], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    archives: bool = False


def refused_well(error: SwSearchError, name: str) -> None:
    """An error that a person can use: one line, of a length that can be read, that names the file."""
    message = str(error)
    assert "\n" not in message and "\r" not in message, f"several lines: {message!r}"
    assert len(message) < 3000, f"{len(message)} characters: {message[:200]!r}"
    assert name in message, f"the file is not named: {message!r}"


def _written(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# --- sequences ---


def _same(one: SequenceRecord, other: SequenceRecord) -> bool:
    return one.header == other.header and np.array_equal(one.codes, other.codes)


def check_fasta(data: bytes, folder: Path) -> None:
    """Records survive being written and read, and all ways of reading agree."""
    path = _written(data, folder, "input.fa")
    for alphabet in (None, PROTEIN, DNA):
        try:
            records = list(read_sequences(path, alphabet))
        except InputError as error:
            refused_well(error, "input.fa")
            continue
        assert records
        assert all(len(record) for record in records)
        by_chunks = list(read_chunks(path, records[0].alphabet, chunk_residues=7))
        assert sum(map(len, by_chunks)) == len(records)
        assert np.array_equal(
            np.concatenate([chunk.codes for chunk in by_chunks]), np.concatenate([record.codes for record in records])
        )
        each = list(read_each(path, records[0].alphabet))
        assert all(isinstance(one, SequenceRecord) and _same(one, two) for one, two in zip(each, records, strict=True))
        text = "".join(f">{record.header}\n{record.letters}\n" for record in records)
        again = _written(text.encode("utf-8", "surrogateescape"), folder, "again.fa")
        reread = list(read_sequences(again, records[0].alphabet))
        assert all(_same(one, two) for one, two in zip(reread, records, strict=True)), "another sequence when reread"


def fasta_with_refusals(data: bytes, folder: Path) -> None:
    """A file whose records are taken one by one, bad ones left out."""
    path = _written(data, folder, "input.fa")
    try:
        for record in read_each(path, PROTEIN):
            assert "\n" not in str(getattr(record, "reason", "")), record
    except InputError as error:
        refused_well(error, "input.fa")


# --- matrices and profiles ---


def check_matrix(data: bytes, folder: Path) -> None:
    """A matrix that was read has the scores that are written."""
    path = _written(data, folder, "input.mat")
    for alphabet in (PROTEIN, DNA):
        try:
            matrix = matrix_file(path, alphabet)
        except InputError as error:
            refused_well(error, "input.mat")
            continue
        assert parse_matrix_text(matrix_text(matrix), matrix.name, alphabet) == matrix


def check_stored_matrix(data: bytes, folder: Path) -> None:
    """As a store gives it back."""
    try:
        matrix = parse_matrix_text(data.decode("utf-8", "surrogateescape"), "input", PROTEIN)
    except InputError as error:
        refused_well(error, "input")
    else:
        assert parse_matrix_text(matrix_text(matrix), "input", PROTEIN) == matrix


def profile_check(query_format: str) -> Callable[[bytes, Path], None]:
    """A check of one format of profiles."""

    def check(data: bytes, folder: Path) -> None:
        path = _written(data, folder, "input.prof")
        try:
            assert detect_query_format(path) in ("fasta", "pssm", "stockholm")
        except InputError as error:
            refused_well(error, "input.prof")
        try:
            queries = read_profiles(path, query_format, named_matrix("BLOSUM62"))
        except InputError as error:
            refused_well(error, "input.prof")
            return
        for query in queries:
            assert query.scores.shape == (len(query), 32) and query.scores.dtype == np.int8
            assert len(query) and query.letters and query.identifier

    return check


# --- lists and taxonomies ---


def check_identifiers(data: bytes, folder: Path) -> None:
    """A list names first words of lines."""
    path = _written(data, folder, "input.list")
    try:
        given = IdentifierList("--include", str(path))
    except InputError as error:
        refused_well(error, "input.list")
        return
    assert given.wanted and all(word and not word.startswith("#") and word == word.strip() for word in given.wanted)
    for word in list(given.wanted)[:20]:
        assert given.names(word)


def check_taxonomy(data: bytes, folder: Path) -> None:
    """A line with the ids, then ``=====``, then a map, then ``=====``, then a tree."""
    taxid, *files = data.split(b"=====")
    options: list[str | None] = [
        str(_written(file, folder, f"input.{number}")) for number, file in enumerate(files[:2])
    ]
    options += [None] * (2 - len(options))
    text = taxid.decode("utf-8", "surrogateescape").strip("\n")
    for taxid_map, taxonomy in ((None, None), (options[0], None), (None, options[1])):
        try:
            chosen = TaxonFilter.read(text, taxid_map, taxonomy)
        except InputError as error:
            refused_well(error, "--tax")
            continue
        assert all(0 <= number < 10**18 for number in chosen.taxids)
        assert chosen.holds("x OX=" + str(max(chosen.taxids))) or taxid_map is not None


def check_headers(data: bytes, folder: Path) -> None:
    """A header states an id and an organism, or does not; nothing is raised."""
    header = data.decode("utf-8", "surrogateescape")
    taxid, organism = header_taxid(header), header_organism(header)
    assert taxid is None or f"OX={taxid}" in header.replace("OX=0", "OX=") or str(taxid) in header
    assert organism is None or organism in header


# --- arguments ---


def check_fields(data: bytes, folder: Path) -> None:
    """Names of columns as ``--fields`` splits them."""
    names = data.decode("utf-8", "surrogateescape").replace(",", " ").split()
    try:
        fields = select_fields(names)
    except InputError as error:
        assert "\n" not in str(error)
        return
    wanted = [name for given in names for name in (STANDARD if given == "std" else (given,))]
    assert [field.name for field in fields] == wanted


def check_genetic_code(data: bytes, folder: Path) -> None:
    """A number is that of one of NCBI's codes, or refused; a code translates any bases."""
    number = int.from_bytes(data[:2], "little", signed=True)
    try:
        code = genetic_code(number)
    except InputError as error:
        refused_well(error, str(number))
        return
    bases = np.frombuffer(data, np.uint8) & np.uint8(0x2F)
    for frame in (1, 2, 3, -1, -2, -3):
        assert len(PROTEIN.decode(code.translate(bases, frame))) == max(0, len(bases) - (abs(frame) - 1)) // 3


def check_cigar(data: bytes, folder: Path) -> None:
    """What was read is written the same; rows have the columns that it counts."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        operations = cigar.parse(text)
    except InputError as error:
        assert "\n" not in str(error)
        operations = []
    else:
        assert "".join(f"{n}{operation}" for n, operation in operations) == text
        assert cigar.count(text).columns == sum(n for n, _ in operations)
    totals = cigar.count(text) if operations else None
    for extra in (0, 1, -1):
        n_query, n_subject = (3, 4) if totals is None else (totals.query_residues + extra, totals.subject_residues)
        n_query, n_subject = max(0, min(n_query, 5000)), max(0, min(n_subject, 5000))
        try:
            rows = cigar.gapped("A" * n_query, "C" * n_subject, text)
            assert totals is not None or not text
            assert len(rows[0]) == len(rows[1]) == (0 if totals is None else totals.columns)
            cigar.btop("A" * n_query, "C" * n_subject, text)
        except InputError as error:
            assert "\n" not in str(error)


def check_catalogue(data: bytes, folder: Path) -> None:
    """A catalogue is a ValueError, or is written and read again the same."""
    text = data.decode("utf-8", "replace")
    for signed in (text, _signed(text)):
        try:
            catalogue = read_catalogue(signed)
        except ValueError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
            continue
        written = write_catalogue(catalogue)
        assert read_catalogue(written) == catalogue
        assert catalogue.n_bytes >= 0 and catalogue.n_subjects > 0


def _signed(text: str) -> str:
    """The same fields with a checksum that fits, where the text is JSON at all."""
    from tests.campaign.fuzz.databases import checksum

    try:
        fields = json.loads(text)
        fields.pop("checksum", None)
        return json.dumps({**fields, "checksum": checksum(fields)})
    except (ValueError, RecursionError, AttributeError, TypeError):
        return text


# --- a store of hits ---


@cache
def _sound_store(folder: Path) -> bytes:
    """A small store as bytes."""
    path = folder / "sound.sqlite"
    letters = "ACDEFGHIKL"
    alignment = Alignment(0, 10, 0, 10, "5=1X4=", 9, 9, 10, 0, 0, "ACDEFWHIKL")
    hit = Hit(1, 0, "S1 subject", 10, 40, 20.5, 1e-5, "plus", alignment)
    info = RunInfo(
        command="query", parameters={"top": 5}, matrix="BLOSUM62", matrix_scores=matrix_text(named_matrix("BLOSUM62")),
        gap_open=11, gap_extend=1, lam=0.267, k=0.041, statistics="as tabled", search_space=1000,
        database=DatabaseInfo("db", "0" * 64, 1, "protein", 1, 10), program="swsearch 0", engine="cpu", threads=1,
    )  # fmt: skip
    with HitStore(path, create=True) as store:
        run = store.start_run(info)
        stats = SearchStats(100, 0.1, 0.2, 0)
        store.add_query(run, QueryResult(0, "Q1", letters, (hit, replace(hit, rank=2, subject_index=1)), 2, stats))
        store.finish_run(run)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path.read_bytes()


_CELLS: Final[tuple[Any, ...]] = (
    None, -1, 0, 2**62, 1.5, float("inf"), "", "x", "9=", "{", "[]", '{"a":', "\\u12", b"\xff\x00", "\n", "2024-13-99",
    "1D" * 500, "99999999999999999D", "9" * 5000 + "=",
)  # fmt: skip


def check_store(data: bytes, folder: Path) -> None:
    """Cells of a store, by threes of bytes (table, column, value), hold what the program never wrote; it is read."""
    from tests.campaign.fuzz.databases import run_command

    path = folder / "input.sqlite"
    path.write_bytes(_sound_store(folder.parent))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for at in range(0, min(len(data), 12) - 2, 3):
        table = ("runs", "queries", "hits")[data[at] % 3]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column, value = columns[data[at + 1] % len(columns)], _CELLS[data[at + 2] % len(_CELLS)]
        try:
            connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
        except (sqlite3.IntegrityError, sqlite3.OperationalError):
            continue
    connection.commit()
    connection.close()
    formats = ("table", "tsv", "json", "sam", "pairwise", "xml", "html", "blast7")
    for arguments in (["runs", "list"], ["runs", "show", "1"], ["report", "1", "--format", formats[sum(data) % 8]]):
        ended = run_command([*arguments, "--store", str(path)])
        assert ended.fault is None, f"{arguments}: {ended.fault}"
        assert ended.code in (0, 1), ended.err
        assert ended.code == 0 or ended.err.splitlines()[-1].startswith("swsearch: error: "), ended.err


# --- seeds ---

_PSSM = (
    "\nLast position-specific scoring matrix computed, weighted observed percentages rounded down\n"
    "            A  R  N  D  C  Q  E  G  H  I  L  K  M  F  P  S  T  W  Y  V   A   R\n"
    "    1 M    -1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5  0 -2 -1 -1 -1 -1  1    0   0  0.46 inf\n"
    "    2 K    -1  2  0 -1 -3  1  1 -2 -1 -3 -2  5 -1 -3 -1  0 -1 -3 -2 -2    0   0  0.46 inf\n"
    "\n                      K         Lambda\nStandard Ungapped    0.1334     0.3154\n"
)
_STOCKHOLM = (
    "# STOCKHOLM 1.0\n#=GF ID  family\n#=GC RF xxxx\ns1 MK-V\ns2 MKLV\n\ns1 AC\ns2 A-\n//\n"
    "# STOCKHOLM 1.0\ns1 ACD\n//\n"
)
_DNA_MATRIX = (
    b"# a comment\n   A  C  N  G  T\nA  5 -4 -2 -4 -4\nC -4  5 -2 -4 -4\nN -2 -2 -1 -2 -2\nG -4 -4 -2  5 -4\n"
    b"T -4 -4 -2 -4  5\n"
)
_A3M = "#name\n>q first\nMKLV\n>s2\nM-LaaV\n>s3\nMKL-\n"
_TREE = "1\t|\t1\t|\tno rank\t|\n2\t|\t1\t|\tx\t|\n9606\t|\t2\t|\ty\t|\n"
_MAP = "accession\taccession.version\ttaxid\tgi\nP1\tP1.1\t9606\t0\nP2\tP2.1\t2\t0\n"


def _seed_catalogue() -> bytes:
    entry = {"size": 96, "sha256": "0" * 64}
    names = ("residues", "starts", "lengths", "order", "positions", "headers", "header_ends")
    segment: dict[str, Any] = {"name": "segment-000001", "n_subjects": 4, "n_residues": 9, "shortest": 1, "longest": 5}
    segment["files"] = dict.fromkeys(names, entry)
    segment["removed"] = {"name": "removed-000002.bin", "n_subjects": 1, "n_residues": 2, "file": entry}
    fields = {
        "format": "swsearch packed database", "version": 2, "alphabet": "protein", "digest": "0" * 64, "generation": 2,
        "sources": ["a.fa"], "program": "swsearch 0", "created": "2024-01-01T00:00:00+00:00", "segments": [segment],
        "former_digests": ["1" * 64],
    }  # fmt: skip
    return _signed(json.dumps(fields, indent=1)).encode()


_NUMBERS: Final = (
    b"0",
    b"-1",
    b"1_0",
    b"9" * 30,
    b"9" * 5000,
    b"1e999",
    b"nan",
    "\u0661".encode(),
    b"0x10",
    b"+5",
    b"1.5",
)
_FASTA_TOKENS: Final = (
    b">", b"@", b"+", b"\n", b"\r\n", b"\r", b"\n>", b"\n\n", b">\n", b";", b"\n#", b" ", b"\t", b"\0", b"\x0b",
    b"\x1f", b"\xef\xbb\xbf", b"\xff\xfe", b"\x85", b"\xc2\xa0", "\u2028".encode(), b"acgtn", b"-", b"*", b"\x1a",
)  # fmt: skip
_LINES: Final = (
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"#",
    b"\0",
    b"\xff",
    "\u2028".encode(),
    b">",
    b"//",
    b"|",
    b"=====",
    b"\x0c",
)

TARGETS: Final[dict[str, Target]] = {
    "fasta": Target(
        check_fasta,
        (
            b">P1 a kinase\nMKVLL\nAC\n>P2\nWYr*\n",
            b"@r1\nACGT\n+\nIIII\n@r2 x\nACN\n+r2 x\n@@@\n",
            b">a\r\nAC\r\n\r\n>b\r\nGT\r\n",
            b"\xef\xbb\xbf>\xc3\xa9 \xff\nMK\n> \nAAA\n",
        ),
        _FASTA_TOKENS,
        archives=True,
    ),
    "fasta_each": Target(
        fasta_with_refusals, (b">P1\nMKV\n>P2\nM1V\n>P3\n\n>P4\nAA\n", b"@r\nAC\n+\nII\n"), _FASTA_TOKENS, True
    ),
    "matrix": Target(
        check_matrix,
        (_DNA_MATRIX, b"  A  R  X\nA  4.0 -1 0\nR -1 5 0\nX 0 0 -1\n", b"A 1\nX 2\n"),
        (*_NUMBERS, *_LINES, b"inf", b"128", b"-128", "\u00df".encode()),
        archives=True,
    ),
    "stored_matrix": Target(check_stored_matrix, (b"#  m\n    A   X\nA   4  -1\nX  -1  -1\n",), (*_NUMBERS, *_LINES)),
    "pssm": Target(profile_check("pssm"), (_PSSM.encode(),), (*_NUMBERS, *_LINES, b"128", b" -129 "), archives=True),
    "stockholm": Target(
        profile_check("stockholm"), (_STOCKHOLM.encode(),), (*_LINES, b"# STOCKHOLM 1.0\n", b"#=GF ID "), True
    ),
    "a3m": Target(profile_check("a3m"), (_A3M.encode(),), (*_LINES, b".", b"-"), archives=True),
    "aligned": Target(profile_check("aligned"), (b">q\nMK-V\n>s\nMKLV\n",), (*_LINES, b".", b"-"), archives=True),
    "identifiers": Target(
        check_identifiers, (b"P1\nsp|P02232|LGB1_VICFA x\n#c\nNP_000537.3\n",), (*_LINES, b"|"), True
    ),
    "taxonomy": Target(
        check_taxonomy,
        (f"9606=====\n{_MAP}=====\n{_TREE}".encode(), b"1,2=====P1 2\nP2 1\n=====1|1|\n2|1|\n"),
        (*_NUMBERS, *_LINES, b",", b"taxid"),
    ),
    "headers": Target(
        check_headers, (b"sp|P1|X Y OS=Homo sapiens OX=9606 GN=A PE=1 SV=2",), (b"OX=", b"OS=", b" ", *_NUMBERS)
    ),
    "fields": Target(
        check_fields, (b"qseqid,sseqid pident", b"std cigar"), (b",", b" ", *(name.encode() for name in FIELDS))
    ),
    "genetic_code": Target(check_genetic_code, (b"\x01\x00\x00\x01\x02\x03", b"\x0b\x00" + bytes(range(40)))),
    "cigar": Target(
        check_cigar, (b"12=1X3D", b"5=1I2=4D1X"), (*_NUMBERS, b"=", b"X", b"I", b"D", b"M", b"1=", b"9999999999D")
    ),
    "catalogue": Target(
        check_catalogue,
        (_seed_catalogue(),),
        (*_NUMBERS, b"[", b"{", b'"', b"null", b"true", b"\\ud800", b"\\u0000", b"../", b","),
    ),
}
STORE: Final = Target(check_store, (bytes([0, 8, 9]), bytes([2, 15, 17]), bytes([1, 5, 3])))
"""Apart, for a trial of it takes as long as a thousand of others."""


# --- mutations ---


def mutated(rng: random.Random, target: Target) -> bytes:
    """An input from a target's seeds."""
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
    """The bytes in one archive or several, whole or damaged, sometimes with much that says little."""
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


# --- a trial ---


def check_all(name: str, target: Target, inputs: Sequence[bytes], folder: Path) -> str | None:
    """The first fault of a target with some inputs, in a child; the input is then ``folder/NAME.input``."""
    kept = folder / f"{name}.input"

    def work() -> int:
        place = folder / "work"
        place.mkdir(exist_ok=True)
        for data in inputs:
            kept.write_bytes(data)  # before it can end the child
            try:
                target.check(data, place)
            except Exception:
                traceback.print_exc()
                return 1
        kept.unlink(missing_ok=True)
        return 0

    ended = in_child(work)
    if ended.code == 0 and ended.fault is None:
        return None
    words = ended.fault or ended.err[-1500:]
    return f"{name}: {words} (input {kept.read_bytes()[:300]!r} in {kept})" if kept.exists() else f"{name}: {words}"


def problems(rng: random.Random, folder: Path, n_inputs: int = 40) -> list[str]:
    """What goes wrong with some inputs of one target."""
    name = rng.choice(sorted(TARGETS))
    target = TARGETS[name]
    fault = check_all(name, target, [mutated(rng, target) for _ in range(n_inputs)], folder)
    return [] if fault is None else [fault]


def store_problems(rng: random.Random, folder: Path) -> list[str]:
    """What goes wrong with a store in which a few cells are wrong."""
    (folder / "work").mkdir()
    try:
        check_store(rng.randbytes(3 * rng.choice([1, 1, 2, 4])), folder / "work")
    except AssertionError as error:
        return [f"store: {error}"]
    return []


def run(budget: Budget, seed: int, state_dir: Path) -> Outcome:
    """As :mod:`tests.campaign.parts` says."""
    from tests.campaign.trials import run_trials

    def trial(trial: Trial) -> None:
        trial.problems += problems(trial.rng, trial.folder)
        trial.counts["inputs of parsers"] += 40

    return run_trials("fuzz_parsers", trial, budget, seed, state_dir)


def run_stores(budget: Budget, seed: int, state_dir: Path) -> Outcome:
    """The same for stores of hits."""
    from tests.campaign.trials import run_trials

    def trial(trial: Trial) -> None:
        trial.problems += store_problems(trial.rng, trial.folder)

    return run_trials("fuzz_stores", trial, budget, seed, state_dir)
