"""The text of a sequence file, decompressed and checked, and the search for its first problem.

:class:`CheckedStream` is the stream of all readers of :mod:`swsearch.sequences.fasta`. To tell where an error is,
:func:`first_problem` reads FASTA once more, line by line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final, cast

from swsearch.errors import FastaFormatError
from swsearch.sequences.alphabet import INVALID, Alphabet
from swsearch.sequences.archives import Readable
from swsearch.sequences.refused import NO_RESIDUES, wrong_letter

MAX_RECORD_BYTES: Final = 1 << 32
"""Length of the longest record, in bytes; bounded because records are in memory. Databases accept only shorter ones."""
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_FORBIDDEN: Final = tuple(bytes([byte]) for byte in (0, 0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F))
"""Bytes that no line may contain: NUL, and those that ``str.strip`` would silently remove from the end of a line."""
_COMMENT: Final = re.compile(rb"[\r\n][ \t]*[#;]")


class ForeignBytes(Exception):
    """The text is no FASTA, or contains bytes that a reader would ignore without an error."""


class CheckedStream(io.RawIOBase):
    """A decompressed file without its byte order mark, which reports damage and bytes that a reader would ignore."""

    def __init__(self, file: Readable, name: str) -> None:
        self._file = file
        self._name = name
        self._at_start = True
        self._last = b"\n"
        self._record_bytes = 0
        self.refuses = True
        self.is_bare = False
        """Whether the reader of the stream checks the size of records itself."""

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes of the text, and return their number, 0 at the end.

        Raises
        ------
        FastaFormatError
            The file is damaged or no text, or a record is too long.
        ForeignBytes
            The text contains bytes that a reader would ignore.
        """
        view = memoryview(buffer)
        try:
            if self.is_bare and not self._at_start and isinstance(self._file, io.IOBase):
                return int(cast(Any, self._file).readinto(view))
            block = self._file.read(len(view))
            if self._at_start and block.startswith(_UTF8_MARK):
                block = block[len(_UTF8_MARK) :] or self._file.read(len(view))
        except Exception as error:  # each decompressor has its own exceptions
            problem = f"cannot be read to its end, it may be damaged or cut short: {error}"
            raise FastaFormatError(problem, self._name) from error
        if self._at_start and (block.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in block[:4]):
            raise FastaFormatError("the text is UTF-16 or no text at all; save it as UTF-8", self._name, line=1)
        if self._at_start and block.startswith(b"@"):
            self.refuses = False  # a line of qualities may begin with any character
        self._at_start = False
        if self.refuses:
            for byte in _FORBIDDEN:
                if byte in block:
                    raise ForeignBytes(f"byte 0x{byte[0]:02X} has no place in a sequence file")
            if (b"#" in block or b";" in block) and _COMMENT.search(self._last + block):
                raise ForeignBytes("a line is a comment")
            self._last = block[-1:]
        end = max(block.rfind(b">"), block.rfind(b"@"))  # the end of the current record, if it ends in this block
        self._record_bytes = len(block) - end if end >= 0 else self._record_bytes + len(block)
        if self._record_bytes > MAX_RECORD_BYTES:
            raise FastaFormatError(f"a record of more than {MAX_RECORD_BYTES:,} bytes; cut it", self._name)
        view[: len(block)] = block
        return len(block)


def fasta_records(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    """Header and letters of each record of a FASTA text, without the blanks at the ends of lines.

    Every byte is preserved: a byte above 127 becomes a surrogate escape, which ``strip`` does not treat as white space.
    ASCII is also the fastest decoder.

    Raises
    ------
    ForeignBytes
        The text does not begin with a header.
    """
    header: str | None = None
    letters: list[str] = []
    for line in map(str.strip, io.TextIOWrapper(stream, encoding="ascii", errors="surrogateescape")):
        if line.startswith(">"):
            if header is not None:
                yield header, "".join(letters)
            header, letters = line[1:], []
        elif header is not None:
            letters.append(line)
        elif line:
            raise ForeignBytes("there is no '>' before the first line")
    if header is not None:
        yield header, "".join(letters)


def first_problem(lines: Iterable[str], name: str, alphabet: Alphabet | None) -> FastaFormatError | None:
    """The first problem of a FASTA text with its location, by the rules of this module; None if there is none."""
    record = header_line = 0
    identifier: str | None = None
    n_residues = 0

    def problem(text: str, line: int | None, column: int | None = None) -> FastaFormatError:
        return FastaFormatError(text, name, record=record or None, identifier=identifier, line=line, column=column)

    for number, line in enumerate(lines, start=1):
        raw = line.rstrip("\n").encode("ascii", "surrogateescape")
        content = raw.strip(b" \t")
        first = len(raw) - len(raw.lstrip(b" \t"))
        for column, byte in enumerate(raw, start=1):
            if bytes([byte]) in _FORBIDDEN:
                hint = " (UTF-16 text or a binary file?)" if byte == 0 else ""
                return problem(f"byte 0x{byte:02X} has no place in a sequence file{hint}; remove it", number, column)
        if not content:
            continue
        if content[:1] in (b"#", b";"):
            text = (
                f"a line that begins with {content[:1].decode()!r} is a comment, which FASTA does not have; remove it"
            )
            if content.startswith(b"# STOCKHOLM"):
                text = "this is a Stockholm file, whose alignments can be queries; a database takes FASTA or FASTQ"
            return problem(text, number, first + 1)
        if content[:1] == b">":
            if record and not n_residues:
                return problem(f"{NO_RESIDUES}; remove the record or give it a sequence", header_line)
            words = content[1:].decode("utf-8", "replace").split()
            record, header_line, n_residues = record + 1, number, 0
            identifier = words[0] if words else None
            continue
        if not record:
            found = content[:20].decode("ascii", "backslashreplace")
            return problem(f"expected '>' or '@' at the beginning of the file, found {found!r}", number, first + 1)
        n_residues += len(content)
        bad = -1 if alphabet is None else content.translate(alphabet.encode_table.tobytes()).find(INVALID)
        if alphabet is not None and bad >= 0:
            text = wrong_letter(content[bad], alphabet)
            return problem(text, number, first + bad + 1)
    if record and not n_residues:
        return problem(f"{NO_RESIDUES}; remove the record or give it a sequence", header_line)
    return None
