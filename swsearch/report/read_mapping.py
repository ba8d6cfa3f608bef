"""``sam`` and ``paf``: the formats of read mappers, with the CIGAR of each alignment.

Both have the tags ``AS`` raw score, ``NM`` mismatches and gap residues, ``ZB`` bit score and ``ZE`` E-value, and the
quality 255, unknown.

``sam`` is SAM 1.6, for DNA and for protein. The best hit of a query is its primary line, with the complete query,
soft-clipped; its other hits are secondary lines with only the aligned letters, hard-clipped; a query without hits is
one unmapped line. The CIGAR of every line therefore covers its SEQ. A hit of the minus strand has the reverse
complement and flag 16; its CIGAR is in the direction of the stored subject, as that of the record is.

The header of SAM lists all reported subjects, which are known only after the last query. Therefore the lines are
written to a temporary file, which is copied after the header. Only the data of the header is in memory: name, length
and description of each reported subject.

A translated search cannot be written: its CIGARs count residues, those of SAM count letters of SEQ and of the subject.

``paf`` has a line of minimap2's pairwise format for each alignment. Coordinates are 0-based, half-open and those of the
forward sequences. The CIGAR, tag ``cg``, is in the direction of the forward subject, as minimap2 writes it. In a
translated search it is that of miniprot: in the direction of the frames, and in residues, each of which is three bases
of a translated side; matches and columns are then in bases.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import suppress
from typing import Final, TextIO

from swsearch.errors import writing_to
from swsearch.hits.formatting import one_line
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report
from swsearch.report.summary import database_line, scoring_line
from swsearch.sequences.fasta_text import reverse_complement_letters
from swsearch.sequences.record import identifier, split_header

UNKNOWN_QUALITY: Final = 255


def _tags(hit: Hit) -> list[str]:
    """The tags of an alignment that both formats have."""
    tags = [f"AS:i:{hit.score}", f"NM:i:{hit.alignment.mismatches + hit.alignment.gap_residues}"]
    if hit.bits is not None:
        tags.append(f"ZB:f:{hit.bits:.6g}")
    if hit.evalue is not None:
        tags.append(f"ZE:f:{hit.evalue:.6g}")
    return tags


# --- sam ---


UNMAPPED: Final = 4
REVERSE: Final = 16
SECONDARY: Final = 256

_NOT_IN_QUERY_NAMES = re.compile(r"[^!-?A-~]")
_NOT_IN_SUBJECT_NAMES = re.compile(r"^[*=]|[^!-~]|[\\,\"'`()\[\]{}<>]")
_MAX_QUERY_NAME: Final = 254


class SamReport(Report):
    """One line per hit, in the order of queries and ranks; they are written after the last query."""

    def begin(self, run: RunInfo) -> None:
        """Open the temporary file of the lines."""
        super().begin(run)
        self._named: dict[int, tuple[str, str]] = {}
        """The unique name and the header line of each subject reported so far, by its index in the database."""
        self._taken: set[str] = set()
        self._lines: TextIO = tempfile.TemporaryFile(  # noqa: SIM115 - closed by close
            "w+", encoding="utf-8", errors="surrogateescape", newline="\n"
        )

    def write(self, query: QueryResult) -> None:
        """Write the lines of a query to the temporary file."""
        with writing_to(tempfile.gettempdir()):
            if not query.hits:
                self._lines.write(_unmapped_line(query))
            for place, hit in enumerate(self.run.listed(query)):
                self._lines.write(_sam_line(query, hit, self._name(hit), place))

    def end(self) -> None:
        """Write the header, then the lines."""
        run, stream = self.run, self.stream
        with writing_to(tempfile.gettempdir()):
            self._lines.seek(0)
        stream.write("@HD\tVN:1.6\tSO:unsorted\tGO:query\n")
        stream.writelines(line for _, (_, line) in sorted(self._named.items()))
        program, _, version = run.program.partition(" ")
        stream.write(f"@PG\tID:{program}\tPN:{program}\tVN:{version}\n")
        stream.write(f"@CO\tDatabase: {database_line(run)}\n@CO\tScoring: {scoring_line(run)}\n")
        shutil.copyfileobj(self._lines, stream)

    def close(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):  # after an error of a full disk, closing tries to write the rest again
            self._lines.close()

    def _name(self, hit: Hit) -> str:
        """The name of a hit's subject: its identifier, followed by its FASTA index if another subject has it."""
        known = self._named.get(hit.subject_index)
        if known is None:
            name = _NOT_IN_SUBJECT_NAMES.sub("_", identifier(hit.subject_header))
            while name in self._taken:
                name = f"{name}~{hit.subject_index + 1}"
            self._taken.add(name)
            description = one_line(split_header(hit.subject_header)[1])
            described = f"\tDS:{description}" if description else ""
            known = self._named[hit.subject_index] = name, f"@SQ\tSN:{name}\tLN:{hit.subject_length}{described}\n"
        return known[0]


def _query_name(query: QueryResult) -> str:
    return _NOT_IN_QUERY_NAMES.sub("_", identifier(query.header))[:_MAX_QUERY_NAME]


def _sequence(letters: str) -> str:
    """SEQ; a stop, which SEQ cannot represent, becomes the letter for any residue."""
    return letters.replace("*", "X") or "*"


def _unmapped_line(query: QueryResult) -> str:
    return f"{_query_name(query)}\t{UNMAPPED}\t*\t0\t0\t*\t*\t0\t0\t{_sequence(query.letters)}\t*\n"


def _sam_line(query: QueryResult, hit: Hit, subject: str, place: int) -> str:
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
        f"NH:i:{len(query.hits)}", f"HI:i:{place + 1}", *_tags(hit),
    ]  # fmt: skip
    return "\t".join(map(str, columns)) + "\n"


# --- paf ---


class PafReport(Report):
    """A line for each alignment, in the order of queries and ranks."""

    def write(self, query: QueryResult) -> None:
        """Write the lines of a query."""
        self.stream.writelines(_paf_line(query, hit) for hit in self.run.listed(query))


def _paf_line(query: QueryResult, hit: Hit) -> str:
    alignment = hit.alignment
    bases = 3 if hit.query_frame or hit.subject_frame else 1
    columns = [
        identifier(query.header), query.length, alignment.query_start, alignment.query_end, hit.direction,
        identifier(hit.subject_header), hit.subject_length, alignment.subject_start, alignment.subject_end,
        alignment.identities * bases, alignment.columns * bases, UNKNOWN_QUALITY,
        *_tags(hit), f"cg:Z:{alignment.cigar}",
    ]  # fmt: skip
    return "\t".join(map(str, columns)) + "\n"
