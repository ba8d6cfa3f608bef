"""Conversion of the coordinates of alignments of translated sequences, from residues to bases of the forward DNA."""

from __future__ import annotations

from dataclasses import replace

from swsearch.hits.hit import Alignment
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.genetic_code import base_range
from swsearch.typing import Codes


def on_bases(
    alignment: Alignment, query: Codes, query_frame: int, n_query_bases: int, subject_frame: int, n_subject_bases: int
) -> Alignment:
    """An alignment of two frames, with coordinates in bases on each side that was translated.

    Parameters
    ----------
    alignment : Alignment
        The alignment of residues; its coordinates are residues of the frames.
    query : uint8 array
        Residue codes of the query, or of its frame.
    query_frame, subject_frame : int
        The translated frame; 0 if the sequence was not translated, so that its coordinates do not change.
    n_query_bases, n_subject_bases : int
        Lengths of the input sequences.
    """
    if not query_frame and not subject_frame:
        return alignment
    changes: dict[str, int | str] = {}
    if query_frame:
        start, end = alignment.query_start, alignment.query_end
        changes["query_letters"] = PROTEIN.decode(query[start:end])
        changes["query_start"], changes["query_end"] = base_range(start, end, query_frame, n_query_bases)
    if subject_frame:
        changes["subject_start"], changes["subject_end"] = base_range(
            alignment.subject_start, alignment.subject_end, subject_frame, n_subject_bases
        )
    return replace(alignment, **changes)  # type: ignore[arg-type]
