"""Export of a packed database as FASTA: headers and letters as they were read, including case, in original order."""

from __future__ import annotations

from typing import Final, TextIO

import numpy as np

from swsearch.database.reader import PackedDatabase

LINE_WIDTH: Final = 60
_PIECE_LINES: Final = 1 << 14
"""Lines of a long subject that are written at a time."""


def export(database: PackedDatabase, out: TextIO, width: int = LINE_WIDTH) -> None:
    r"""Write all subjects as FASTA, in the order in which they were indexed.

    Parameters
    ----------
    database : PackedDatabase
    out : text stream
        Its encoding must be UTF-8 with ``errors="surrogateescape"``, so that header bytes that are not UTF-8 are
        written as they were read, and with ``newline="\n"``.
    width : int
        Residues per line, at least 1; 0 writes each sequence on one line.

    Raises
    ------
    ValueError
        ``width`` is negative.

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
    decode = database.alphabet.decode_table
    for record in database:
        out.write(f">{record.header}\n")
        piece = width * _PIECE_LINES or max(len(record), 1)
        for first in range(0, len(record), piece):
            letters = decode[np.asarray(record.codes[first : first + piece])].tobytes().decode("ascii")
            step = width or len(letters)
            out.write("\n".join([letters[i : i + step] for i in range(0, len(letters), step)]) + "\n")
