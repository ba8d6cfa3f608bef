"""Export of a packed database as FASTA: headers and letters as they were read, including case, in original order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TextIO

import numpy as np

from swsearch import _native
from swsearch.database.in_order import of_each_chunk
from swsearch.database.reader import PackedDatabase
from swsearch.sequences.chunk import SequenceChunk
from swsearch.threads import Threads
from swsearch.typing import Codes

LINE_WIDTH: Final = 60
CHUNK_RESIDUES: Final = 1 << 20
"""Approximate number of residues that are written at a time."""


def export(database: PackedDatabase, out: TextIO, width: int = LINE_WIDTH, *, threads: int | None = None) -> None:
    r"""Write all subjects as FASTA, in the order in which they were indexed.

    Parameters
    ----------
    database : PackedDatabase
    out : text stream
        Its encoding must be UTF-8 with ``errors="surrogateescape"``, so that header bytes that are not UTF-8 are
        written as they were read, and with ``newline="\n"``.
    width : int
        Residues per line, at least 1; 0 writes each sequence on one line.
    threads : int, optional
        Number of threads, at least 1; by default, one per usable core, and at most 16.

    Raises
    ------
    ValueError
        ``width`` is negative.
    DatabaseError
        The database is damaged; what precedes the damage has been written.

    >>> import io, tempfile
    >>> from pathlib import Path
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "one.fa").write_text(">P1 a kinase\nMKv\nLL\n")
    ...     _ = build_database(f"{folder}/one.fa", f"{folder}/one.swdb")
    ...     with PackedDatabase.open(f"{folder}/one.swdb") as database:
    ...         out = io.StringIO()
    ...         export(database, out, width=4)
    >>> out.getvalue()
    '>P1 a kinase\nMKvL\nL\n'
    """
    if width < 0:
        raise ValueError(f"a line cannot have {width} residues")
    decode = np.zeros(256, dtype=np.uint8)
    decode[: len(database.alphabet.decode_table)] = database.alphabet.decode_table

    def text_of(chunk: SequenceChunk) -> Iterable[str]:
        if len(chunk) == 1 and len(chunk.codes) > CHUNK_RESIDUES:
            return _pieces(chunk, decode, width)
        text = _native.write_fasta(chunk.header_bytes, chunk.header_ends, chunk.codes, chunk.lengths, decode, width)
        return [text.tobytes().decode("utf-8", "surrogateescape")]

    with Threads(threads) as used:
        for texts in of_each_chunk(database, used, text_of, chunk_residues=CHUNK_RESIDUES):
            for text in texts:
                out.write(text)


def _pieces(chunk: SequenceChunk, decode: Codes, width: int) -> Iterator[str]:
    """The text of one long sequence in pieces of whole lines, so that it is not in memory as a whole."""
    yield f">{chunk.headers[0].decode('utf-8', 'surrogateescape')}\n"
    step = CHUNK_RESIDUES if width == 0 else max(CHUNK_RESIDUES // width, 1) * width
    for first in range(0, len(chunk.codes), step):
        letters = decode[chunk.codes[first : first + step]].tobytes().decode("ascii")
        yield letters if width == 0 else "".join(f"{letters[i : i + width]}\n" for i in range(0, len(letters), width))
    if width == 0:
        yield "\n"
