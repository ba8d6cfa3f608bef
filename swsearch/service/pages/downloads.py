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
from swsearch.hits.result import TAXONOMY_DIGEST, QueryResult, RunInfo
from swsearch.report.base import ReportContext
from swsearch.report.formats import FORMATS, TAXA, new_report
from swsearch.report.hit_sequences import hit_records, is_beyond_records
from swsearch.sequences.fasta_text import SubjectPart, write_pieces
from swsearch.sequences.record import split_header
from swsearch.service.reports import GONE, context_of

PARTS: Final = ("aligned", "flanks", "whole")
"""The parts of a hit sequence that can be downloaded."""
GONE_TRANSLATED: Final = (
    "the database of this search has changed or is not offered any more; the residues of aligned parts are the column "
    "sseq of the report tsv"
)
"""The message for aligned parts of translated subjects, whose nucleotides are not stored."""
_SPOOLED: Final = 8 << 20
_CHUNK: Final = 1 << 16


def offered_formats(run: RunInfo) -> list[tuple[str, str]]:
    """The formats that can represent a run, with words for them; those about taxa if its database has a taxonomy."""
    left_out = () if TAXONOMY_DIGEST in run.parameters else TAXA
    return [(name, form.title) for name, form in FORMATS.items() if form.fits(run) and name not in left_out]


def file_name(header: str, end: str) -> str:
    """A name for a downloaded file, from a header or a title.

    >>> file_name("sp|P02232|LGB1_VICFA Leghemoglobin-1", ".xml")
    'sp_P02232_LGB1_VICFA.xml'
    """
    first = split_header(header)[0]
    stem = re.sub(r"[^A-Za-z0-9.-]+", "_", first).strip("._")[:80]
    return f"{stem or 'result'}{end}"


def written_report(
    run: RunInfo, queries: Iterable[QueryResult], format_name: str, database: PackedDatabase | None = None
) -> IO[bytes]:
    """A report as an open temporary file, at its beginning.

    Raises
    ------
    InputError
        There is no such format, it cannot represent the run, or it needs ``database``, which is None.
    """
    report = new_report(format_name)
    report.format.check_fits(run)
    context = context_of(report, run, database)
    with _Spool() as spool:
        report.write_all(context, queries, spool.text)
        return spool.finished()


def subject_part(part: str, flank: int) -> SubjectPart:
    """One of :data:`PARTS`, with the residues on each side for ``flanks``.

    Raises
    ------
    InputError
        There is no such part, or ``flank`` is out of its range.
    """
    if part not in PARTS:
        raise InputError(f"there is no part {part[:20]!r} of a sequence; choose {', '.join(PARTS)}")
    return SubjectPart(aligned=part != "whole", flank=flank if part == "flanks" else 0)


def written_sequences(
    run: RunInfo, query: QueryResult, hits: Iterable[Hit], part: SubjectPart, database: PackedDatabase | None
) -> IO[bytes]:
    """Sequences of hits in the format ``fasta``, as an open temporary file, at its beginning.

    Parameters
    ----------
    run : RunInfo
    query : QueryResult
        The query of the hits; its own hits are ignored.
    hits : iterable of Hit
    part : SubjectPart
    database : PackedDatabase or None
        The database of the run, if it is still offered.

    Raises
    ------
    InputError
        The part needs the database, which is None.
    """
    if database is None and is_beyond_records(part, run):
        raise InputError(GONE_TRANSLATED if part.aligned and not part.flank else GONE)
    with _Spool() as spool:
        for header, letters in hit_records(ReportContext(run, database), query, hits, part):
            write_pieces(spool.text, header, letters)
        return spool.finished()


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
