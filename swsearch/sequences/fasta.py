"""Readers of FASTA and FASTQ: from files or standard input, compressed or not, as records or chunks of many records.

The native module reads the text in blocks of complete records, on several threads if the caller has them. If a block
contains anything else, the file is read again, FASTQ by dnaio, and its first problem is reported with record, line and
column. No record is lost without an error. xopen decompresses files (the standard library for bzip2 and xz). The
database builder reads chunks (:func:`read_chunks`), and a search reads records (:func:`read_sequences`,
:func:`read_each`).

Accepted content of a file
--------------------------
- FASTA (``>``) or FASTQ (``@``, four lines per record; qualities are dropped), distinguished by the first byte.
- gzip, bzip2, xz or zstd, recognized by the first bytes. An archive that is damaged or ends early is an error.
- Lines that end in LF, CRLF or CR (FASTQ: LF or CRLF); blank lines; blanks at either end of a FASTA line; a UTF-8 byte
  order mark. Headers may contain all bytes except NUL, VT, FF and FS to US; trailing white space is not part of a
  header.
- An empty header; the identifier of the record is then empty.
- From a pipe: the letters of one sequence without a header, also with the blanks and numbers that GenBank and UniProt
  print (:func:`swsearch.sequences.fasta_text.without_layout`), which are left out. In a file they are an error, because
  a file of sequences that has lost its header, or has foreign lines, is damaged.

Errors are a file without records, a record without residues, a comment line (``#`` or ``;``), a letter outside the
alphabet, white space within a line of residues, UTF-16, and a directory. The first problem in the file is reported.
The readers do not give its position, so the file is read a second time to find it. For that reason, and because an
archive is recognized by its first bytes, pipes are copied to a temporary file (:mod:`swsearch.sequences.source`).

The memory in use is a few blocks, or the longest record if that is longer; records of more than 4 GiB are refused.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import BinaryIO, Final

import numpy as np

from swsearch import _native
from swsearch.arrays import Texts
from swsearch.errors import FastaFormatError, InputError
from swsearch.sequences import checked_text
from swsearch.sequences.alphabet import INVALID, Alphabet, detect_alphabet
from swsearch.sequences.archives import ARCHIVE_FORMATS, MAGIC_BYTES, archive_format, decompressed, decompressing
from swsearch.sequences.fasta_text import without_layout
from swsearch.sequences.record import (
    NO_RESIDUES,
    InvalidRecord,
    SequenceChunk,
    SequenceRecord,
    invalid_records,
    split_header,
    wrong_letter,
)
from swsearch.sequences.source import BEFORE_TEXT, Spooled, opened, path_list, seekable, shown_name
from swsearch.threads import Threads, read_ahead
from swsearch.typing import Codes
from swsearch.words import shortened

SAMPLE_RESIDUES: Final = 1 << 20
"""Number of residues at the beginning of a file from which the alphabet is detected."""
BLOCKS_BYTES: Final = 96 << 20
"""Approximate size of the text of all blocks that are in memory at the same time."""

MAX_TYPED_BYTES: Final = 64 << 20
"""Largest size of the letters of one sequence that are piped without a header."""
FEWEST_LETTERS: Final = 12
"""Length from which a name of letters alone, which is that of no file, may be a sequence."""
Skip = Callable[[InvalidRecord], None]
"""Called with each record that is left out because it is not a sequence of the alphabet."""

_BLOCK_BYTES: Final = 1 << 20
_BLANK_LINES: Final = re.compile(r"\n[ \t\n]+")


def read_sequences(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], alphabet: Alphabet | None = None
) -> Iterator[SequenceRecord]:
    r"""The records of one or several files, in order.

    Parameters
    ----------
    paths : path or sequence of paths
        Files; ``-`` is standard input.
    alphabet : Alphabet, optional
        The alphabet of the letters; by default it is detected from the first million letters.

    Raises
    ------
    FastaFormatError
        A file cannot be read as sequences of this alphabet.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".fa") as file:
    ...     _ = file.write(">P1 first\nMKV\n>P2\nwyLL\n")
    ...     file.flush()
    ...     [(record.identifier, record.letters) for record in read_sequences(file.name)]
    [('P1', 'MKV'), ('P2', 'wyLL')]
    """
    for chunk in read_chunks(paths, alphabet, block_bytes=_BLOCK_BYTES):  # whoever wants no more ends it soon
        yield from chunk.records()


def read_each(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], alphabet: Alphabet
) -> Iterator[SequenceRecord | InvalidRecord]:
    """The records of one or several files, in order; one that is not a sequence of ``alphabet`` is a invalid record.

    Raises
    ------
    FastaFormatError
        A file cannot be read as FASTA or FASTQ; most records before the error have been yielded.
    """
    with Threads(1) as no_threads:
        for path in path_list(paths):
            n_before = 0
            with _SequenceFile(path) as file, closing(file.chunks(alphabet, _BLOCK_BYTES, no_threads, True)) as chunks:
                for chunk, invalid in chunks:
                    first, n_before = n_before + 1, n_before + len(chunk) + len(invalid)
                    records, by_number = chunk.records(), {one.record: one for one in invalid}
                    for number in range(first, n_before + 1):
                        yield by_number[number] if number in by_number else next(records)


def read_chunks(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    alphabet: Alphabet | None = None,
    *,
    threads: Threads | None = None,
    block_bytes: int | None = None,
    skip: Skip | None = None,
) -> Iterator[SequenceChunk]:
    """The records of one or several files in chunks; errors as for :func:`read_sequences`.

    A chunk contains records of only one file, and all chunks have the same alphabet.

    Parameters
    ----------
    paths, alphabet
        As for :func:`read_sequences`.
    threads : Threads, optional
        Threads that read the blocks; by default, the caller's thread reads them.
    block_bytes : int, optional
        Size of a block of text, at least 1; a longer record makes a longer block. By default, all blocks in memory have
        about 100 MB, and one block at most 16 MB.
    skip : callable, optional
        Called, in order and on the caller's thread, with each record that has no residues or a byte that has no place
        in it; the record is left out. Damage beyond a record remains an error. By default, such a record is an error.
    """
    skips = skip is not None
    with Threads(1) as no_threads:
        used = threads or no_threads
        n_bytes = min(16 << 20, BLOCKS_BYTES // (2 * used.n_threads + 5)) if block_bytes is None else block_bytes
        for path in path_list(paths):
            with _SequenceFile(path) as file, closing(file.chunks(alphabet, n_bytes, used, skips)) as chunks:
                for chunk, invalid in chunks:
                    alphabet = chunk.alphabet
                    if skip is not None:
                        for record in invalid:
                            skip(record)
                    if len(chunk):
                        yield chunk


def _with_header(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A source, or its copy as FASTA if it is a pipe with the letters of one sequence alone."""
    if not isinstance(source, Spooled) or os.fstat(source.descriptor).st_size > MAX_TYPED_BYTES:
        return source
    start = os.pread(source.descriptor, MAX_TYPED_BYTES, 0)
    if not start.lstrip(BEFORE_TEXT)[:1].isalnum():
        return source
    try:
        text = without_layout(start.decode())
    except UnicodeDecodeError:
        return source
    return source if text is None else Spooled(source.given, io.BytesIO(text.encode()))


def _advice_for_letters(name: str) -> str:
    """What to do if the letters of a sequence were given in place of a file."""
    if len(name) < FEWEST_LETTERS or not re.fullmatch(r"[A-Za-z*]+", name, re.ASCII):
        return ""
    return f"; if it is a sequence, pipe it: echo {shortened(name)} | swsearch … -, or write it to a file"


class _SequenceFile:
    """A source that can be read repeatedly from its start; a context manager, not to be shared between threads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = shown_name(path)
        self.is_fastq = False
        try:
            self._source = _with_header(seekable(path))  # a copy exists as long as this object
            self._raw: BinaryIO = opened(self._source)
            start = self._raw.read(MAGIC_BYTES)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            advice = _advice_for_letters(self.name) if isinstance(error, FileNotFoundError) else ""
            raise FastaFormatError(f"cannot be read: {reason}{advice}", self.name) from error
        self._format = archive_format(start)
        suffix = os.path.splitext(self.name)[1].removeprefix(".")
        if self._format is None and suffix in ARCHIVE_FORMATS:
            problem = "an empty file, not" if not start else "not"
            self._raw.close()
            raise FastaFormatError(f"{problem} a {suffix} archive, as its name says; fetch or rename it", self.name)

    def __enter__(self) -> _SequenceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def chunks(
        self, alphabet: Alphabet | None, block_bytes: int, threads: Threads, skips: bool
    ) -> Generator[tuple[SequenceChunk, list[InvalidRecord]], None, None]:
        """All records of the file; if ``alphabet`` is None, it is detected from the first million letters.

        If ``skips``, invalid records come beside the others, whose chunk may be empty; otherwise, they are errors.
        """
        known = alphabet or detect_alphabet(self._sample())
        n_before = 0

        def chunk_of(text: Codes | None) -> tuple[SequenceChunk, _native.InvalidArrays] | None:
            if text is None:
                return None
            found = _native.read_records(text, known.encode_table, self.is_fastq, skips)
            if found is None:
                return None
            n_residues, lengths, header_bytes, header_ends, refused = found
            codes = text[:n_residues]  # they have replaced the beginning of the text
            codes.setflags(write=False)
            return SequenceChunk(known, codes, lengths, Texts(header_bytes, header_ends), self.name), refused

        def text_blocks() -> Generator[Codes | None, None, None]:
            self._raw.seek(0)
            with decompressing(self._raw, self._format, threads) as text:
                yield from self._blocks(checked_text.CheckedStream(text, self.name, is_bare=True), block_bytes)

        blocks = text_blocks() if threads.n_threads == 1 else read_ahead(text_blocks())
        with closing(blocks), closing(threads.in_order(chunk_of, blocks)) as found:
            for read in found:
                if read is None:
                    break
                chunk, refused = read
                yield chunk, list(invalid_records(refused, self.name, n_before, known))
                n_before += len(chunk) + len(refused[0])
            else:
                if not n_before:
                    raise FastaFormatError("no sequences; a FASTA file begins with '>'", self.name)
                return
        # Behind the records so far, the text is irregular.
        problem = f"a record of more than {checked_text.MAX_RECORD_BYTES:,} bytes; cut it"
        raise self._first_problem(None if skips else known) or FastaFormatError(problem, self.name)

    def _blocks(self, stream: checked_text.CheckedStream, block_bytes: int) -> Iterator[Codes | None]:
        """The text in blocks of complete records; None instead of a block that would contain too long a record."""
        block_bytes = min(block_bytes, checked_text.MAX_RECORD_BYTES)
        rest = np.empty(0, dtype=np.uint8)
        is_first = True
        while True:
            block = np.empty(len(rest) + block_bytes, dtype=np.uint8)
            block[: len(rest)] = rest
            size = _read_full(stream, block, len(rest))
            if is_first:
                self.is_fastq = block[:1].tobytes() == b"@" and size > 0
                is_first = False
            whole = 0
            while size == len(block) and not (whole := _native.whole_records(block, self.is_fastq)):
                if size > checked_text.MAX_RECORD_BYTES:
                    yield None
                    return
                # In place, so that a long record is not copied.
                block.resize(size + max(block_bytes, size // 4), refcheck=False)
                size = _read_full(stream, block, size)
            if size < len(block):
                if size:
                    yield block[:size] if size <= checked_text.MAX_RECORD_BYTES else None
                return
            rest = block[whole:].copy()
            yield block[:whole]

    def _sample(self) -> bytes:
        """The first million letters of the file, or all of them."""
        stream = self._text()
        sample: list[str] = []
        size = number = 0
        is_fastq = is_new = True
        has_letters = False
        while size < SAMPLE_RESIDUES and (text := stream.read(_BLOCK_BYTES)):
            if not is_fastq:  # there may be millions of blank lines
                text = _BLANK_LINES.sub("\n", text)
            for part in io.StringIO(text, "\n"):
                content = part.strip()
                if is_new:
                    is_fastq = content.startswith("@") if number == 0 else is_fastq
                    has_letters = number % 4 == 1 if is_fastq else not content.startswith(">")
                if has_letters:
                    sample.append(content[: SAMPLE_RESIDUES - size])
                    size += len(sample[-1])
                is_new = part.endswith("\n")
                number += is_new
                if size >= SAMPLE_RESIDUES:
                    break
        return "".join(sample).encode("ascii", "replace")

    def _first_problem(self, alphabet: Alphabet | None) -> FastaFormatError | None:
        """The first problem with its location; None if there is none. Without an alphabet, all letters belong to it."""
        if not self.is_fastq:
            return checked_text.first_problem(self._text(), self.name, alphabet)
        from dnaio.exceptions import FastqFormatError  # only here: its import takes longer than most files of queries
        from dnaio.readers import FastqReader

        try:
            for number, record in enumerate(FastqReader(io.BufferedReader(self._open(), _BLOCK_BYTES)), 1):
                if alphabet is None:
                    continue
                raw = record.sequence.encode("ascii")
                bad = raw.translate(alphabet.encode_table.tobytes()).find(INVALID)
                if raw and bad < 0:
                    continue
                problem, column = (wrong_letter(raw[bad], alphabet), bad + 1) if raw else (NO_RESIDUES, None)
                name, second = split_header(record.name)[0] or None, 4 * number - 2
                return FastaFormatError(problem, self.name, record=number, identifier=name, line=second, column=column)
        except FastqFormatError as error:
            line = None if error.line is None else error.line + 1
            record_number = None if line is None else (line + 3) // 4
            problem = shortened(" ".join(str(error.args[0]).split("\n")), 300) if error.args else "broken record"
            return FastaFormatError(f"broken FASTQ: {problem}", self.name, record=record_number, line=line)
        return None

    def _open(self) -> checked_text.CheckedStream:
        self._raw.seek(0)
        return checked_text.CheckedStream(decompressed(self._raw, self._format), self.name)

    def _text(self) -> io.TextIOWrapper:
        """The text from its beginning."""
        stream = io.BufferedReader(self._open(), _BLOCK_BYTES)
        return io.TextIOWrapper(stream, encoding="ascii", errors="surrogateescape")


def _read_full(stream: io.RawIOBase, block: Codes, begin: int) -> int:
    """Fill a block from index ``begin`` on; the index after the last byte, which the end of the file makes smaller."""
    view = block.data
    while begin < len(view) and (n_bytes := stream.readinto(view[begin:])):
        begin += n_bytes
    return begin
