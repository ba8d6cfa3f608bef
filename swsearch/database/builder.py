"""Building a packed database from FASTA: a stream in, a folder of arrays out, in bounded memory.

First pass: chunks of records are appended, in the order of the FASTA, to ``headers.bin`` and to a spool of residues.
Then the subjects are sorted by length and their residues gathered from the spool in stored order, a block at a time.
Each file's SHA-256 is taken while it is written. The catalogue comes last; :mod:`swsearch.database.staging` makes the
whole visible by one rename.

Memory: one chunk, one block, and about 60 bytes a subject. Disk: twice the residues while it builds. The same input
gives the same bytes in every file but the catalogue's ``created``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np

from swsearch import _native
from swsearch.database.format import (
    ARRAY_DTYPES,
    CATALOGUE,
    MAX_SUBJECT_LENGTH,
    MAX_SUBJECTS,
    SUBJECT_ALIGNMENT,
    TAIL_PADDING,
    Catalogue,
    FileEntry,
    SegmentEntry,
    content_digest,
    write_catalogue,
)
from swsearch.database.staging import staged_folder, sync_folder
from swsearch.errors import FastaFormatError
from swsearch.sequences.alphabet import PAD_CODE, Alphabet
from swsearch.sequences.fasta import read_chunks, shown_name
from swsearch.sequences.record import split_header
from swsearch.typing import Lengths, Offsets

SEGMENT_NAME: Final = "segment-000001"
BLOCK_BYTES: Final = 16 << 20
"""Residues are gathered in blocks of about this many bytes; an interrupt waits for one block at most."""

Progress = Callable[[int, int], None]
"""Called with subjects and residues read so far, after each chunk."""


@dataclass(frozen=True)
class BuildReport:
    """What a build made.

    Attributes
    ----------
    path : Path
    catalogue : Catalogue
    n_duplicates : int
        Subjects whose identifier an earlier subject has; they are kept.
    first_duplicate : str or None
        Identifier of the first of them.
    """

    path: Path
    catalogue: Catalogue
    n_duplicates: int
    first_duplicate: str | None


def build_database(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    alphabet: Alphabet | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    r"""Pack FASTA or FASTQ files into a new database.

    Parameters
    ----------
    paths : path or sequence of paths
        Sequence files in order (:mod:`swsearch.sequences.fasta`); ``-`` is standard input.
    target : path
        Folder to make. It appears whole, at the end, or not at all.
    alphabet : Alphabet, optional
        Told by the first million letters where it is not given.
    overwrite : bool
        Whether a database at ``target`` is replaced.
    progress : callable, optional

    Raises
    ------
    FastaFormatError
        A file cannot be read as sequences of the alphabet.
    DatabaseError
        ``target`` exists, or cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1\nMKVLL\n>P2\nWYR\n")
    ...     report = build_database(f"{folder}/two.fa", f"{folder}/two.swdb")
    >>> report.catalogue.n_subjects, report.catalogue.n_residues, report.catalogue.alphabet
    (2, 8, 'protein')
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    target = Path(target)
    with staged_folder(target, overwrite=overwrite) as folder:
        segment = folder / SEGMENT_NAME
        segment.mkdir()
        intake = _take_in(several, segment, alphabet, progress)
        entry = _write_segment(segment, intake)
        catalogue = Catalogue(
            alphabet=intake.alphabet.name,
            digest=content_digest(intake.alphabet.name, (entry,)),
            generation=1,
            sources=tuple(_source_name(path) for path in several),
            program=f"swsearch {version('swsearch')}",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            segments=(entry,),
        )
        write_catalogue_file(folder, catalogue)
    return BuildReport(target, catalogue, intake.n_duplicates, intake.first_duplicate)


def write_catalogue_file(folder: Path, catalogue: Catalogue) -> None:
    """Put ``catalogue.json`` into a folder by one rename, after everything it names is on the disk."""
    unfinished = folder / f".{CATALOGUE}"
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(write_catalogue(catalogue))
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, folder / CATALOGUE)


@dataclass(frozen=True, eq=False)
class _Intake:
    """What the first pass found, in the order of the FASTA; the residues are in the spool."""

    alphabet: Alphabet
    lengths: Lengths
    spool: Path
    headers: FileEntry
    header_ends: FileEntry
    n_duplicates: int
    first_duplicate: str | None


class _HashingFile:
    """A new file, its SHA-256 taken as it is written; on the disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115
        self._sha256 = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes | memoryview) -> None:
        self._sha256.update(data)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]
        self._size += len(data)

    def finish(self) -> FileEntry:
        os.fsync(self._file.fileno())
        return FileEntry(self._size, self._sha256.hexdigest())

    def __enter__(self) -> _HashingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def array_path(segment: Path, name: str) -> Path:
    """The file of one array of a segment."""
    return segment / f"{name}.bin"


def _take_in(
    paths: Sequence[str | os.PathLike[str]], segment: Path, alphabet: Alphabet | None, progress: Progress | None
) -> _Intake:
    lengths: list[Lengths] = []
    hashes: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    n_subjects = n_residues = header_bytes = 0
    spool_path = segment / "residues.spool"
    with (
        open(spool_path, "xb", buffering=0) as spool,
        _HashingFile(array_path(segment, "headers")) as headers,
        _HashingFile(array_path(segment, "header_ends")) as header_ends,
    ):
        for path in paths:
            for chunk in read_chunks(path, alphabet):
                alphabet = chunk.alphabet
                _check_limits(chunk.lengths, chunk.headers, n_subjects, shown_name(path))
                rest = chunk.codes.data
                while rest:
                    rest = rest[spool.write(rest) or 0 :]
                headers.write(b"".join(chunk.headers))
                sizes = np.fromiter(map(len, chunk.headers), dtype=np.uint64, count=len(chunk))
                ends = np.cumsum(sizes, dtype=np.uint64) + np.uint64(header_bytes)
                header_ends.write(ends.astype(ARRAY_DTYPES["header_ends"]).tobytes())
                lengths.append(chunk.lengths)
                hashes.append(
                    np.fromiter((hash(_first_word(h)) for h in chunk.headers), dtype=np.int64, count=len(chunk))
                )
                n_subjects += len(chunk)
                n_residues += len(chunk.codes)
                header_bytes = int(ends[-1])
                if progress is not None:
                    progress(n_subjects, n_residues)
        entries = headers.finish(), header_ends.finish()
    if alphabet is None:
        raise FastaFormatError("no sequence file was given", "nothing to index")
    n_duplicates, first = _duplicates(np.concatenate(hashes))
    name = None if first is None else _identifier(segment, first)
    return _Intake(alphabet, np.concatenate(lengths), spool_path, *entries, n_duplicates, name)


def _check_limits(lengths: Lengths, headers: list[bytes], n_before: int, name: str) -> None:
    if int(lengths.max()) > MAX_SUBJECT_LENGTH:
        place = int(lengths.argmax())
        identifier = _first_word(headers[place]).decode("utf-8", "replace")
        problem = f"{int(lengths[place])} residues, at most {MAX_SUBJECT_LENGTH} are possible; cut the sequence"
        raise FastaFormatError(problem, name, identifier=identifier)
    if n_before + len(lengths) > MAX_SUBJECTS:
        raise FastaFormatError(f"more than {MAX_SUBJECTS} sequences; build several databases", name)


def _write_segment(segment: Path, intake: _Intake) -> SegmentEntry:
    lengths = intake.lengths
    n_subjects = len(lengths)
    order = np.argsort(lengths, kind="stable").astype(np.uint32)
    positions = np.empty(n_subjects, dtype=np.uint32)
    positions[order] = np.arange(n_subjects, dtype=np.uint32)
    stored_lengths = lengths[order]
    room = (stored_lengths.astype(np.uint64) + np.uint64(SUBJECT_ALIGNMENT - 1)) & ~np.uint64(SUBJECT_ALIGNMENT - 1)
    ends = np.cumsum(room, dtype=np.uint64)
    starts = ends - room
    spool_starts = (np.cumsum(lengths, dtype=np.uint64) - lengths)[order]
    plan = _Plan(spool_starts, stored_lengths, starts, ends)
    files = {
        "residues": _write_residues(array_path(segment, "residues"), intake.spool, plan),
        "headers": intake.headers,
        "header_ends": intake.header_ends,
    }
    small = {"starts": starts, "lengths": stored_lengths, "order": order, "positions": positions}
    for name, array in small.items():
        with _HashingFile(array_path(segment, name)) as file:
            file.write(array.astype(ARRAY_DTYPES[name], copy=False).data.cast("B"))
            files[name] = file.finish()
    os.unlink(intake.spool)
    sync_folder(segment)
    return SegmentEntry(
        name=segment.name,
        n_subjects=n_subjects,
        n_residues=int(lengths.sum(dtype=np.uint64)),
        shortest=int(stored_lengths[0]),
        longest=int(stored_lengths[-1]),
        files={name: files[name] for name in ARRAY_DTYPES},
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """Where the residues of each stored subject come from and go to."""

    spool_starts: Offsets
    lengths: Lengths
    starts: Offsets
    ends: Offsets
    """Byte behind each subject and its padding; the next one's start."""


def _write_residues(path: Path, spool: Path, plan: _Plan) -> FileEntry:
    with open(spool, "rb", buffering=0) as source, _HashingFile(path) as file:
        first = 0
        while first < len(plan.lengths):
            base = plan.starts[first]
            stop = max(first + 1, int(np.searchsorted(plan.ends, base + np.uint64(BLOCK_BYTES), side="right")))
            block = np.empty(int(plan.ends[stop - 1] - base), dtype=np.uint8)
            part = slice(first, stop)
            failure = _native.gather(
                source.fileno(), plan.spool_starts[part], plan.lengths[part], plan.starts[part] - base, block, PAD_CODE
            )
            if failure:
                raise OSError(failure, os.strerror(failure), str(spool))
            file.write(block.data)
            first = stop
        file.write(bytes([PAD_CODE]) * TAIL_PADDING)
        return file.finish()


def _duplicates(hashes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[int, int | None]:
    """How many identifiers came before, and the place of the first that did.

    Identifiers are told apart by 64-bit hashes: among a million, two differing ones are taken for the same with a
    chance of 3 in 10^8.
    """
    by_hash = np.argsort(hashes, kind="stable")
    is_again = hashes[by_hash[1:]] == hashes[by_hash[:-1]]
    n_duplicates = int(is_again.sum())
    return n_duplicates, int(by_hash[1:][is_again].min()) if n_duplicates else None


def _identifier(segment: Path, subject_index: int) -> str:
    ends = np.memmap(array_path(segment, "header_ends"), dtype=ARRAY_DTYPES["header_ends"], mode="r")
    start = int(ends[subject_index - 1]) if subject_index else 0
    with open(array_path(segment, "headers"), "rb") as file:
        file.seek(start)
        header = file.read(int(ends[subject_index]) - start)
    return split_header(header.decode("utf-8", "surrogateescape"))[0]


def _first_word(header: bytes) -> bytes:
    return header.split(None, 1)[0] if header.strip() else b""


def _source_name(path: str | os.PathLike[str]) -> str:
    name = shown_name(path)
    return name if name != os.fspath(path) else os.path.basename(name)
