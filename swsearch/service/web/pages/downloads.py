"""Reports and sequences as files: complete before the first byte is sent, so that no answer ends in the middle."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Final, TextIO

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.registry import check_fits, get_format
from swsearch.report.text import one_line
from swsearch.sequences.record import split_header

MAX_FLANK: Final = 1_000_000
"""Largest number of residues on each side of an aligned part."""
PARTS: Final = ("aligned", "flanks", "whole")
"""The parts of a hit sequence that can be downloaded."""
_SPOOLED: Final = 8 << 20
_CHUNK: Final = 1 << 16
_LINE: Final = 60


def file_name(header: str, suffix: str) -> str:
    """A name for a downloaded file, from a header or a title.

    >>> file_name("sp|P02232|LGB1_VICFA Leghemoglobin-1", "xml")
    'sp_P02232_LGB1_VICFA.xml'
    """
    first = split_header(header)[0]
    stem = re.sub(r"[^A-Za-z0-9.-]+", "_", first).strip("._")[:80]
    return f"{stem or 'result'}.{suffix}"


def written_report(run: RunInfo, queries: Iterable[QueryResult], format_name: str) -> IO[bytes]:
    """A report as an open temporary file, at its beginning.

    Raises
    ------
    InputError
        There is no such format, or it cannot represent the run.
    """
    report = get_format(format_name)
    check_fits(report, run)
    with _Spool() as spool:
        report.write(run, queries, spool.text)
        return spool.finished()


def written_sequences(
    hits: Iterable[Hit], part: str, flank: int, database: PackedDatabase | None, *, translated: bool
) -> IO[bytes]:
    """Sequences of hits as FASTA, as an open temporary file, at its beginning.

    Each header is that of the subject; for a part, the aligned positions follow the identifier as ``/start-end``,
    counted from 1 on the subject's forward strand.

    Parameters
    ----------
    hits : iterable of Hit
    part : str
        ``aligned``, ``flanks`` or ``whole``, which is written once for each subject.
    flank : int
        Residues on each side for ``flanks``; fewer at the ends of a subject.
    database : PackedDatabase or None
        The database of the run. Only ``aligned`` does without.
    translated : bool
        Whether subjects were translated; the aligned parts are then proteins.

    Raises
    ------
    InputError
        The part is unknown, or needs a database that is not there any more.
    """
    if part not in PARTS:
        raise InputError(f"there is no part {part[:20]!r} of a sequence; choose {', '.join(PARTS)}")
    if part != "aligned" and database is None:
        raise InputError(
            "the database of this search has changed or is not offered any more; only aligned parts can be downloaded"
        )
    with _Spool() as spool:
        for header, letters in _sequences(hits, part, flank, database, translated):
            spool.text.write(f">{one_line(header)}\n")
            spool.text.writelines(f"{letters[at : at + _LINE]}\n" for at in range(0, len(letters), _LINE))
        return spool.finished()


def _sequences(
    hits: Iterable[Hit], part: str, flank: int, database: PackedDatabase | None, translated: bool
) -> Iterator[tuple[str, str]]:
    for hit in hits:
        name, description = split_header(hit.subject_header)
        start, end = hit.alignment.subject_start, hit.alignment.subject_end
        if part == "aligned":
            frame = f" frame {hit.subject_frame:+d}" if translated else ""
            yield f"{name or 'unnamed'}/{start + 1}-{end}{frame} {description}".rstrip(), hit.alignment.subject_letters
            continue
        if part == "whole" and hit.hsp > 1:
            continue
        assert database is not None
        letters = database.record(hit.subject_index).letters
        if part == "whole":
            yield hit.subject_header or "unnamed", letters
            continue
        start, end = max(0, start - flank), min(len(letters), end + flank)
        yield f"{name or 'unnamed'}/{start + 1}-{end} {description}".rstrip(), letters[start:end]


class _Spool:
    """A temporary file for text, which is closed if writing fails."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_SPOOLED)  # noqa: SIM115
        self.text: TextIO = io.TextIOWrapper(
            self._file, encoding="utf-8", errors="surrogateescape", newline="\n", write_through=True
        )

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._file.close()

    def finished(self) -> IO[bytes]:
        """The file at its beginning; the text stream is given up."""
        self.text.flush()
        self.text.detach()  # type: ignore[attr-defined]
        self._file.seek(0)
        return self._file


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file, which is closed at the end."""
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
