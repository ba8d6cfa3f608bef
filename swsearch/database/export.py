"""Writing a packed database back as FASTA: headers and letters as they were read, case included, in their old order."""

from __future__ import annotations

from typing import BinaryIO, Final

import numpy as np

from swsearch.database.reader import PackedDatabase

LINE_WIDTH: Final = 60
_PIECE_LINES: Final = 1 << 14
"""Lines of a long subject that are written at a time."""


def export_fasta(database: PackedDatabase, out: BinaryIO, width: int = LINE_WIDTH) -> None:
    r"""Write all subjects as FASTA, in the order in which they were indexed.

    Parameters
    ----------
    database : PackedDatabase
    out : binary stream
    width : int
        Residues a line, at least 1; 0 writes each sequence on one line.

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
    ...         out = io.BytesIO()
    ...         export_fasta(database, out, width=4)
    >>> out.getvalue()
    b'>P1 a kinase\nMKvL\nL\n'
    """
    if width < 0:
        raise ValueError(f"a line cannot have {width} residues")
    decode = database.alphabet.decode_table
    for record in database:
        out.write(b">" + record.header.encode("utf-8", "surrogateescape") + b"\n")
        piece = width * _PIECE_LINES or max(len(record), 1)
        for first in range(0, len(record), piece):
            letters = decode[np.asarray(record.codes[first : first + piece])].tobytes()
            step = width or len(letters)
            out.write(b"\n".join(letters[i : i + step] for i in range(0, len(letters), step)) + b"\n")
