"""FASTA as text: the lines of a record, the names of parts of a sequence, and the other strand.

The name of a part is that of ``samtools faidx``: ``id:from-to``, counted from 1, both ends included, followed by
``/rc`` if the letters are the reverse complement (``samtools faidx -i``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TextIO

from swsearch.sequences.record import split_header

LINE_WIDTH: Final = 60
"""Residues on a line."""
REVERSED: Final = "/rc"
"""What follows the name of a reverse complement."""
_COMPLEMENT: Final = str.maketrans("ACGTRYSWKMBDHVNUacgtryswkmbdhvnu", "TGCAYRSWMKVHDBNAtgcayrswmkvhdbna")


def write_record(stream: TextIO, header: str, letters: str, width: int = LINE_WIDTH) -> None:
    r"""Write one record; ``width`` is the number of residues on a line, 0 for all of them on one line.

    ``stream`` must accept surrogate escapes (``errors="surrogateescape"``), and translate no line ends.

    >>> import sys
    >>> write_record(sys.stdout, "P1 a kinase", "MKVLL", 4)
    >P1 a kinase
    MKVL
    L
    """
    write_pieces(stream, header, (letters,), width)


def write_pieces(stream: TextIO, header: str, pieces: Iterable[str], width: int = LINE_WIDTH) -> None:
    r"""Write one record whose letters come in pieces of any length, so that a chromosome need not be in memory.

    Parameters are those of :func:`write_record`.

    >>> import sys
    >>> write_pieces(sys.stdout, "P1 a kinase", ["MKV", "LLWY", "R"], 5)
    >P1 a kinase
    MKVLL
    WYR
    """
    stream.write(f">{header}\n")
    rest = ""
    for piece in pieces:
        letters = rest + piece
        whole = len(letters) - len(letters) % width if width else 0
        stream.write("".join([f"{letters[at : at + width]}\n" for at in range(0, whole, width or 1)]))
        rest = letters[whole:]
        if not width:
            stream.write(rest)
            rest = ""
    if rest or not width:
        stream.write(f"{rest}\n")


def part_header(header: str, start: int, end: int, *, is_reversed: bool = False, remark: str = "") -> str:
    """The header of a part of a sequence.

    Parameters
    ----------
    header : str
        The header of the sequence without ``>``; its first word is the identifier, ``unnamed`` if it is empty.
    start, end : int
        The part, 0-based and half-open, on the forward strand.
    is_reversed : bool
        Whether the letters are the reverse complement.
    remark : str
        Words between the name of the part and the description of the sequence.

    >>> part_header("chr1 a chromosome", 9, 200, is_reversed=True)
    'chr1:10-200/rc a chromosome'
    """
    identifier, description = split_header(header)
    name = f"{identifier or 'unnamed'}:{start + 1}-{end}{REVERSED if is_reversed else ''}"
    return " ".join(word for word in (name, remark, description) if word)


def reverse_complement_letters(letters: str) -> str:
    """The other strand of DNA letters; each letter retains its case.

    >>> reverse_complement_letters("AACgN")
    'NcGTT'
    """
    return letters.translate(_COMPLEMENT)[::-1]
