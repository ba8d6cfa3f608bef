"""``sam``: alignments in the format of read mappers (SAM 1.6), for DNA and for protein.

The best hit of a query is its primary line, with the complete query, soft-clipped; its other hits are secondary lines
with only the aligned letters, hard-clipped; a query without hits is one unmapped line. The CIGAR of every line
therefore covers its SEQ. A hit of the minus strand has the reverse complement and flag 16; its CIGAR is in the
direction of the stored subject, as that of the record is.

The header of SAM lists all reported subjects, which are known only after the last query. Therefore the lines are
written to a temporary file, which is copied after the header. Only the data of the header is in memory: name, length
and description of each reported subject.

A translated search cannot be written: its CIGARs count residues, those of SAM count letters of SEQ and of the subject.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TextIO

from swsearch.errors import writing_to
from swsearch.hits.formatting import one_line
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.base import Report, ReportContext
from swsearch.report.summary import database_line, scoring_line
from swsearch.sequences.fasta_text import reverse_complement_letters
from swsearch.sequences.record import identifier, split_header

UNMAPPED: Final = 4
REVERSE: Final = 16
SECONDARY: Final = 256
UNKNOWN_QUALITY: Final = 255

_NOT_IN_QUERY_NAMES = re.compile(r"[^!-?A-~]")
_NOT_IN_SUBJECT_NAMES = re.compile(r"^[*=]|[^!-~]|[\\,\"'`()\[\]{}<>]")
_MAX_QUERY_NAME: Final = 254


class SamReport(Report):
    """One line per hit, in the order of queries and ranks; they are written after the last query."""

    name = "sam"

    def begin(self, context: ReportContext, stream: TextIO) -> None:
        """Open the temporary file of the lines."""
        super().begin(context, stream)
        self._subjects = _SubjectNames()
        self._lines: TextIO = tempfile.TemporaryFile(  # noqa: SIM115 - closed by close
            "w+", encoding="utf-8", errors="surrogateescape", newline="\n"
        )

    def write(self, query: QueryResult) -> None:
        """Write the lines of a query to the temporary file."""
        with writing_to(tempfile.gettempdir()):
            if not query.hits:
                self._lines.write(_unmapped_line(query))
            for place, hit in enumerate(self.run.listed(query)):
                self._lines.write(_line(query, hit, self._subjects.name(hit), place))

    def end(self) -> None:
        """Write the header, then the lines."""
        run, stream = self.run, self.stream
        with writing_to(tempfile.gettempdir()):
            self._lines.seek(0)
        stream.write("@HD\tVN:1.6\tSO:unsorted\tGO:query\n")
        stream.writelines(self._subjects.header_lines())
        program, _, version = run.program.partition(" ")
        stream.write(f"@PG\tID:{program}\tPN:{program}\tVN:{version}\n")
        stream.write(f"@CO\tDatabase: {database_line(run)}\n@CO\tScoring: {scoring_line(run)}\n")
        shutil.copyfileobj(self._lines, stream)

    def close(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):  # after an error of a full disk, closing tries to write the rest again
            self._lines.close()


@dataclass
class _SubjectNames:
    """The unique names and the header lines of the subjects reported so far, by their index in the database."""

    named: dict[int, tuple[str, str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def name(self, hit: Hit) -> str:
        """The name of a hit's subject: its identifier, followed by its FASTA index if another subject has it."""
        known = self.named.get(hit.subject_index)
        if known is None:
            name = _NOT_IN_SUBJECT_NAMES.sub("_", identifier(hit.subject_header))
            while name in self.taken:
                name = f"{name}~{hit.subject_index + 1}"
            self.taken.add(name)
            description = one_line(split_header(hit.subject_header)[1])
            described = f"\tDS:{description}" if description else ""
            known = self.named[hit.subject_index] = name, f"@SQ\tSN:{name}\tLN:{hit.subject_length}{described}\n"
        return known[0]

    def header_lines(self) -> Iterable[str]:
        """One line per subject, in FASTA order."""
        return (line for _, (_, line) in sorted(self.named.items()))


def _query_name(query: QueryResult) -> str:
    return _NOT_IN_QUERY_NAMES.sub("_", identifier(query.header))[:_MAX_QUERY_NAME]


def _sequence(letters: str) -> str:
    """SEQ; a stop, which SEQ cannot represent, becomes the letter for any residue."""
    return letters.replace("*", "X") or "*"


def _unmapped_line(query: QueryResult) -> str:
    return f"{_query_name(query)}\t{UNMAPPED}\t*\t0\t0\t*\t*\t0\t0\t{_sequence(query.letters)}\t*\n"


def _line(query: QueryResult, hit: Hit, subject: str, place: int) -> str:
    """The line of an alignment; ``place`` is its index in the query's list, from 0."""
    alignment = hit.alignment
    secondary = place > 0
    clips = (alignment.query_start, query.length - alignment.query_end)
    letters = query.letters[alignment.query_start : alignment.query_end] if secondary else query.letters
    if hit.strand == "minus":
        clips = clips[::-1]
        letters = reverse_complement_letters(letters)
    operation = "H" if secondary else "S"
    before, after = (f"{length}{operation}" if length else "" for length in clips)
    flag = (REVERSE if hit.strand == "minus" else 0) | (SECONDARY if secondary else 0)
    columns = [
        _query_name(query), flag, subject, alignment.subject_start + 1, UNKNOWN_QUALITY,
        f"{before}{alignment.cigar}{after}", "*", 0, 0, _sequence(letters), "*",
        f"NH:i:{len(query.hits)}", f"HI:i:{place + 1}", f"AS:i:{hit.score}",
        f"NM:i:{alignment.mismatches + alignment.gap_residues}",
    ]  # fmt: skip
    if hit.bits is not None:
        columns.append(f"ZB:f:{hit.bits:.6g}")
    if hit.evalue is not None:
        columns.append(f"ZE:f:{hit.evalue:.6g}")
    return "\t".join(map(str, columns)) + "\n"
