"""The text of a sequence file, decompressed and checked, and the search for its first problem.

:class:`CheckedStream` is the stream of all readers of :mod:`swsearch.sequences.fasta`. To tell where an error is,
:func:`first_problem` reads FASTA once more, line by line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from swsearch.errors import FastaFormatError, SwSearchError
from swsearch.sequences.alphabet import INVALID, Alphabet
from swsearch.sequences.archives import Readable
from swsearch.sequences.record import NO_RESIDUES, wrong_letter

MAX_RECORD_BYTES: Final = 1 << 32
"""Length of the longest record, in bytes; bounded because records are in memory. Databases accept only shorter ones."""
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_FORBIDDEN: Final = re.compile(rb"[\x00\x0b\x0c\x1c-\x1f]")
"""Bytes that no line may contain: NUL, and those that ``str.strip`` would remove from the end of a line."""
_BLANK_LINES: Final = re.compile(r"(?:[ \t]*+\n)*+")
_PIECE: Final = 1 << 20


class CheckedStream(io.RawIOBase):
    """A decompressed file without its byte order mark, which reports damage; ``is_bare`` if its reader reports too
    long records itself.
    """

    def __init__(self, file: Readable, name: str, *, is_bare: bool = False) -> None:
        self._file = file
        self._name = name
        self._at_start = True
        self._record_bytes = 0
        self._is_bare = is_bare

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes of the text, and return their number, 0 at the end.

        Raises
        ------
        FastaFormatError
            The file is damaged or no text, or a record is too long.
        """
        view = memoryview(buffer)
        try:
            if self._is_bare and not self._at_start and isinstance(self._file, io.IOBase):
                return int(cast(Any, self._file).readinto(view))
            block = self._file.read(len(view))
            if self._at_start and block.startswith(_UTF8_MARK):
                block = block[len(_UTF8_MARK) :] or self._file.read(len(view))
        except SwSearchError:  # of a file that is still arriving
            raise
        except Exception as error:  # each decompressor has its own exceptions
            problem = f"cannot be read to its end, it may be damaged or cut short: {error}"
            raise FastaFormatError(problem, self._name) from error
        if self._at_start and (block.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in block[:4]):
            raise FastaFormatError("the text is UTF-16 or no text at all; save it as UTF-8", self._name, line=1)
        self._at_start = False
        end = max(block.rfind(b">"), block.rfind(b"@"))  # the end of the current record, if it ends in this block
        self._record_bytes = len(block) - end if end >= 0 else self._record_bytes + len(block)
        if self._record_bytes > MAX_RECORD_BYTES:
            raise FastaFormatError(f"a record of more than {MAX_RECORD_BYTES:,} bytes; cut it", self._name)
        view[: len(block)] = block
        return len(block)


def first_problem(stream: io.TextIOBase, name: str, alphabet: Alphabet | None) -> FastaFormatError | None:
    """The first problem of a FASTA text with its location, by the rules of this module; None if there is none.

    Lines of residues without a problem are skipped together, because there may be millions of them.
    """
    record = header_line = number = 0
    identifier: str | None = None
    has_residues = False
    residues = _residue_lines(alphabet)

    def problem(text: str, line: int | None, column: int | None = None) -> FastaFormatError:
        return FastaFormatError(text, name, record=record or None, identifier=identifier, line=line, column=column)

    for text in _whole_lines(stream):
        at = 0
        while at < len(text):
            skipped = (residues if record else _BLANK_LINES).match(text, at)
            assert skipped is not None
            # Before Python 3.11.5, a possessive group also takes the beginning of the line that it does not match.
            end = text.rfind("\n", at, skipped.end()) + 1
            if end > at:
                number += text.count("\n", at, end)
                has_residues |= not text[at:end].isspace()
                at = end
                continue
            stop = text.find("\n", at) + 1 or len(text)
            raw = text[at:stop].rstrip("\n").encode("ascii", "surrogateescape")
            at = stop
            number += 1
            content = raw.strip(b" \t")
            first = len(raw) - len(raw.lstrip(b" \t"))
            if foreign := _FORBIDDEN.search(raw):
                byte = foreign[0][0]
                hint = " (UTF-16 text or a binary file?)" if byte == 0 else ""
                said = f"byte 0x{byte:02X} has no place in a sequence file{hint}; remove it"
                return problem(said, number, foreign.start() + 1)
            if not content:
                continue
            if content[:1] in (b"#", b";"):
                mark = content[:1].decode()
                said = f"a line that begins with {mark!r} is a comment, which FASTA does not have; remove it"
                if content.startswith(b"# STOCKHOLM"):
                    said = "this is a Stockholm file, whose alignments can be queries; a database takes FASTA or FASTQ"
                return problem(said, number, first + 1)
            if content[:1] == b">":
                if record and not has_residues:
                    return problem(f"{NO_RESIDUES}; remove the record or give it a sequence", header_line)
                words = content[1:].decode("utf-8", "replace").split()
                record, header_line, has_residues = record + 1, number, False
                identifier = words[0] if words else None
                continue
            if not record:
                found = content[:20].decode("ascii", "backslashreplace")
                return problem(f"expected '>' or '@' at the beginning of the file, found {found!r}", number, first + 1)
            has_residues = True
            bad = -1 if alphabet is None else content.translate(alphabet.encode_table.tobytes()).find(INVALID)
            if alphabet is not None and bad >= 0:
                said = wrong_letter(content[bad], alphabet)
                return problem(said, number, first + bad + 1)
    if record and not has_residues:
        return problem(f"{NO_RESIDUES}; remove the record or give it a sequence", header_line)
    return None


def _residue_lines(alphabet: Alphabet | None) -> re.Pattern[str]:
    """An expression for consecutive lines of letters of the alphabet, with blanks at their ends, and empty lines."""
    line = r"(?:[^>#;\x00-\x20][^\n\x00\x0b\x0c\x1c-\x1f]*+)?+"
    if alphabet is not None:
        letters = "".join(chr(byte) for byte in range(128) if alphabet.encode_table[byte] != INVALID)
        line = rf"[{re.escape(letters)}]*+[ \t]*+"
    return re.compile(rf"(?:[ \t]*+{line}\n)*+")


def _whole_lines(stream: io.TextIOBase) -> Iterator[str]:
    """The text in pieces of whole lines."""
    parts: list[str] = []
    while block := stream.read(_PIECE):
        end = block.rfind("\n") + 1
        if end:
            yield "".join((*parts, block[:end]))
            parts = []
        parts.append(block[end:])
    if rest := "".join(parts):
        yield rest
