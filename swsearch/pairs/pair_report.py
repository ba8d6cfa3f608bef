"""Reports of pairs: ``table``, ``tsv``, ``json``, ``jsonl``, ``pairwise``.

Coordinates are 1-based and inclusive, as in the reports of searches; unknown values are empty, or null in JSON. Columns
that exist in BLAST have BLAST's names. ``score`` is the distance for ``edit``, and the length of the common subsequence
for ``lcs``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

from swsearch.engine.pair_arrays import FreeEnds
from swsearch.hits.cigar import gapped, parse
from swsearch.hits.formatting import GappedRow, row_blocks
from swsearch.pairs.pair_alignment import FREE_ENDS, PairAlignment, free_ends_of_mode
from swsearch.words import counted

FIELDS: Final = (
    "qseqid", "sseqid", "mode", "score", "pident", "length", "mismatch", "gapopen", "gaps", "qstart", "qend", "sstart",
    "send", "qlen", "slen", "cigar",
)  # fmt: skip
_SCORE_NAMES: Final = {"edit": "Edit distance", "lcs": "Common subsequence"}

Value = str | int | float | None


def row(pair: PairAlignment) -> dict[str, Value]:
    """The values of a pair by the names of :data:`FIELDS`."""
    counts = pair.counts
    columns = counts.columns if counts is not None else 0
    gaps = counts.insertions + counts.deletions if counts is not None else None
    identity = None if counts is None or not columns else round(100 * counts.identities / columns, 3)
    return {
        "qseqid": pair.query.identifier,
        "sseqid": pair.subject.identifier,
        "mode": pair.mode,
        "score": pair.score,
        "pident": identity,
        "length": None if counts is None else columns,
        "mismatch": None if counts is None else counts.mismatches,
        "gapopen": None if counts is None else counts.gap_openings,
        "gaps": gaps,
        "qstart": None if pair.query_start is None else pair.query_start + 1,
        "qend": pair.query_end,
        "sstart": None if pair.subject_start is None else pair.subject_start + 1,
        "send": pair.subject_end,
        "qlen": len(pair.query),
        "slen": len(pair.subject),
        "cigar": pair.cigar,
    }


def write(format_name: str, pairs: Iterable[PairAlignment], stream: TextIO) -> None:
    """Write a report of pairs; all formats except ``json`` write each pair as soon as ``pairs`` yields it."""
    if format_name == "tsv":
        stream.write("\t".join(FIELDS) + "\n")
        for pair in pairs:
            stream.write("\t".join(_cell(name, value) for name, value in row(pair).items()) + "\n")
    elif format_name == "jsonl":
        for pair in pairs:
            stream.write(json.dumps(_document(pair), ensure_ascii=False) + "\n")
    elif format_name == "json":
        document = {"schema_version": 1, "pairs": [_document(pair) for pair in pairs]}
        stream.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    else:
        for number, pair in enumerate(pairs):
            stream.write("\n" if number else "")
            _write_summary(pair, stream)
            if format_name == "pairwise":
                _write_blocks(pair, stream)


def _cell(name: str, value: Value) -> str:
    if value is None:
        return ""
    text = f"{value:.3f}" if name == "pident" else str(value)
    return " ".join(text.split()) if isinstance(value, str) else text


def _document(pair: PairAlignment) -> dict[str, object]:
    """A pair for JSON: its row, and the edits or the common subsequence if the mode has them."""
    document: dict[str, object] = {**row(pair), "scoring": pair.scoring.name}
    if pair.mode in ("semiglobal", "edit"):
        document["free_ends"] = _names(pair.free_ends)
    if pair.cigar is not None and pair.mode == "edit":
        document["edits"] = list(edits(*pair.aligned, pair.cigar))
    if pair.cigar is not None and pair.mode == "lcs":
        document["subsequence"] = common_letters(pair.aligned[0], pair.cigar)
    return document


def _write_summary(pair: PairAlignment, stream: TextIO) -> None:
    unit = "letter" if pair.query.record is None else "residue"
    lines = [
        ("Query", f"{pair.query.header or 'unnamed'} ({counted(len(pair.query), unit)})"),
        ("Subject", f"{pair.subject.header or 'unnamed'} ({counted(len(pair.subject), unit)})"),
        ("Mode", f"{_mode(pair)}; {pair.scoring.name}"),
        (_SCORE_NAMES.get(pair.mode, "Score"), str(pair.score)),
    ]
    if pair.free_ends:
        for name, start, end in (
            ("Query part", pair.query_start, pair.query_end),
            ("Subject part", pair.subject_start, pair.subject_end),
        ):
            lines.append((name, f"up to {end}" if start is None else f"{start + 1}-{end}" if end > start else "none"))
    counts = pair.counts
    if counts is not None and counts.columns:
        gaps = counts.insertions + counts.deletions
        share = 100 * counts.identities / counts.columns
        columns = "column" if counts.columns == 1 else "columns"
        lines.append(
            ("Identities", f"{counts.identities} of {counts.columns} {columns} ({share:.1f}%), {gaps} in gaps")
        )
    if pair.cigar is not None:
        lines.append(("CIGAR", pair.cigar or "none"))
        if pair.mode == "lcs":
            lines.append(("Subsequence", common_letters(pair.aligned[0], pair.cigar)))
    width = max(len(name) for name, _ in lines) + 1
    for name, text in lines:
        stream.write(f"{name + ':':<{width}} {' '.join(text.split())}\n")
    if pair.cigar is not None and pair.mode == "edit":
        stream.writelines(f"{edit}\n" for edit in edits(*pair.aligned, pair.cigar))


def _mode(pair: PairAlignment) -> str:
    """The mode, with its free ends unless they are those that it has by default."""
    if pair.free_ends == free_ends_of_mode(pair.mode):
        return pair.mode
    return f"{pair.mode}, free ends: {', '.join(_names(pair.free_ends))}"


def _names(ends: FreeEnds) -> list[str]:
    """The free ends by the fewest words of :data:`swsearch.pairs.pair_alignment.FREE_ENDS`."""
    names = []
    for name, part in FREE_ENDS.items():
        if part in ends:
            names.append(name)
            ends &= ~part
    return names


def _write_blocks(pair: PairAlignment, stream: TextIO) -> None:
    """The rows in blocks, with ``|`` between equal letters."""
    if not pair.cigar:
        return
    assert pair.query_start is not None
    assert pair.subject_start is not None
    above, below = ("".join(x if x.isprintable() else " " for x in side) for side in gapped(*pair.aligned, pair.cigar))
    marks = "".join(("|" if operation == "=" else " ") * length for length, operation in parse(pair.cigar))
    rows = GappedRow(above, pair.query_start + 1), GappedRow(below, pair.subject_start + 1)
    for block in row_blocks(*rows, marks, max(pair.query_end, pair.subject_end)):
        stream.write(f"\n{block}")


# --- edits ---


def edits(query: str, subject: str, cigar: str) -> Iterator[str]:
    """The edits in order, one per letter of the aligned parts; unchanged letters are omitted.

    ``I`` of the CIGAR consumes the query (a deletion from it), ``D`` the subject (an insertion).

    >>> list(edits("RISOTTO", "PRESTO", "1D1=1X1=1I1=1I1="))
    ['insert P', 'substitute I with E', 'delete O', 'delete T']
    """
    i = j = 0
    for length, operation in parse(cigar):
        for _ in range(length):
            if operation == "X":
                yield f"substitute {_shown(query[i])} with {_shown(subject[j])}"
            elif operation == "I":
                yield f"delete {_shown(query[i])}"
            elif operation == "D":
                yield f"insert {_shown(subject[j])}"
            i += operation != "D"
            j += operation != "I"


def common_letters(query: str, cigar: str) -> str:
    """The letters of the columns marked ``=``; for an LCS alignment, they are the longest common subsequence.

    >>> common_letters("RISOTTO", "1D1=1X1=1I1=1I1=")
    'RSTO'
    """
    parts = []
    i = 0
    for length, operation in parse(cigar):
        if operation == "=":
            parts.append(query[i : i + length])
        if operation != "D":
            i += length
    return "".join(parts)


def _shown(letter: str) -> str:
    """A letter, escaped if it cannot be printed on a line."""
    return letter if letter.isprintable() and not letter.isspace() else repr(letter)
