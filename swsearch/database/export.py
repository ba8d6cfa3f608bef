"""All sequences of a database in FASTA order, in bounded memory: as FASTA, or in chunks for a compaction.

An export has headers and letters as they were read, including case. In FASTA order, the subjects of a segment lie
anywhere in its residues, and the next subject may be in another slice. Headers, places and lengths of a block of
subjects are looked up first; then threads copy the residues chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.arrays import Texts, distinct, ranges_within
from swsearch.database.segment import Segment
from swsearch.sequences.alphabet import Alphabet
from swsearch.sequences.fasta_text import LINE_WIDTH, write_pieces
from swsearch.sequences.record import SequenceChunk
from swsearch.threads import Threads
from swsearch.typing import Lengths, Offsets, SubjectIndex

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase

COPIED_RESIDUES: Final = 4 << 20
"""Approximate number of residues of a chunk."""
_BLOCK_SUBJECTS: Final = 1 << 17
"""Number of subjects that are looked up at a time."""


@dataclass(frozen=True, eq=False)
class _Places:
    """Consecutive subjects in FASTA order: their headers, and where their residues are."""

    segments: Sequence[Segment]
    which: NDArray[np.uint16]
    starts: Offsets
    lengths: Lengths
    headers: Texts

    def __getitem__(self, part: slice) -> _Places:
        return _Places(self.segments, self.which[part], self.starts[part], self.lengths[part], self.headers.part(part))


def remaining_chunks(
    parts: Iterable[Sequence[Segment]],
    alphabet: Alphabet,
    threads: Threads,
    is_wanted: Callable[[SubjectIndex], NDArray[np.bool_]] | None = None,
    *,
    chunk_residues: int = COPIED_RESIDUES,
) -> Iterator[SequenceChunk]:
    """The remaining subjects, in order, as chunks of an exported FASTA, which the threads copy.

    The parts are those of :attr:`PackedDatabase.parts`. ``is_wanted`` tells which of the subjects at some FASTA indices
    are in the chunks; by default, all are. A chunk has about ``chunk_residues``, or one longer sequence. Residues are
    checked to be letters; DatabaseError is raised if the database is damaged.
    """

    def chunk_of(places: _Places) -> SequenceChunk:
        sources = [segment.residues for segment in places.segments]
        if len(places.lengths) == 1:  # perhaps a long one, which is not copied
            start, length = int(places.starts[0]), int(places.lengths[0])
            codes = sources[int(places.which[0])][start : start + length]
        else:
            codes = _native.copy_subjects(sources, places.which, places.starts, places.lengths)
        for number in distinct(places.which).tolist():
            chosen = codes if len(sources) == 1 else codes[np.repeat(places.which == number, places.lengths)]
            places.segments[number].check_letters(chosen, alphabet)
        return SequenceChunk(alphabet, codes, places.lengths, places.headers)

    blocks = (
        _block(part, first, first + _BLOCK_SUBJECTS, is_wanted)
        for part in parts
        for first in range(0, part[0].numbering.n_whole, _BLOCK_SUBJECTS)
    )
    chunks = (places[chunk] for places in blocks for chunk in ranges_within(places.lengths, chunk_residues))
    return threads.in_order(chunk_of, chunks)


def _block(
    part: Sequence[Segment], first: int, stop: int, is_wanted: Callable[[SubjectIndex], NDArray[np.bool_]] | None
) -> _Places:
    """The remaining subjects at FASTA indices ``first`` to ``stop`` - 1 of a segment, or of all slices together."""
    which: list[NDArray[np.uint16]] = []
    whole, starts, lengths, headers = [], [], [], []
    for number, segment in enumerate(part):
        begin, end = segment.range_of(first, stop)
        if begin == end:
            continue
        kept = segment.kept(begin, end)
        if is_wanted is not None:
            kept = kept[is_wanted(kept)]
        stored = segment.stored_at(kept)
        own = segment.packed_headers(begin, end)
        headers.append(own if len(kept) == end - begin else own.take(kept.astype(np.int64) - begin))
        which.append(np.full(len(kept), number, dtype=np.uint16))
        whole.append(segment.whole_indices(kept))
        starts.append(segment.starts[stored])
        lengths.append(segment.lengths[stored])
    if not which:
        none = np.empty(0, dtype=np.uint64)
        return _Places(part, none.astype(np.uint16), none, none.astype(np.uint32), Texts.of([]))
    if len(which) == 1:
        return _Places(part, which[0], starts[0], lengths[0], headers[0])
    order = np.argsort(np.concatenate(whole), kind="stable").astype(np.int64)
    return _Places(
        part,
        np.concatenate(which)[order],
        np.concatenate(starts)[order],
        np.concatenate(lengths)[order],
        Texts.joined(headers).take(order),
    )


_PIECE_RESIDUES: Final = 1 << 20
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
    >>> from swsearch.database.opening import open_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "one.fa").write_text(">P1 a kinase\nMKv\nLL\n")
    ...     _ = build_database(f"{folder}/one.fa", f"{folder}/one.swdb")
    ...     with open_database(f"{folder}/one.swdb") as database:
    ...         out = io.StringIO()
    ...         export(database, out, width=4)
    >>> out.getvalue()
    '>P1 a kinase\nMKvL\nL\n'
    """
    if width < 0:
        raise ValueError(f"a line cannot have {width} residues")

    def text_of(chunk: SequenceChunk) -> str | SequenceChunk:
        if len(chunk) == 1 and len(chunk.codes) > _PIECE_RESIDUES:
            return chunk  # its text need not be in memory as a whole
        headers = chunk.headers
        letters = database.alphabet.decode_table
        text = _native.write_fasta(headers.data, headers.ends, chunk.codes, chunk.lengths, letters, width)
        return text.tobytes().decode("utf-8", "surrogateescape")

    with Threads(threads) as used:
        chunks = remaining_chunks(database.parts, database.alphabet, used, chunk_residues=_PIECE_RESIDUES)
        for text in used.in_order(text_of, chunks):
            if isinstance(text, str):
                out.write(text)
            else:
                firsts = range(0, len(text.codes), _PIECE_RESIDUES)
                pieces = (database.alphabet.decode(text.codes[first : first + _PIECE_RESIDUES]) for first in firsts)
                write_pieces(out, text.headers[0], pieces, width)
