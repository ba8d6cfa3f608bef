"""Readings: the ways in which a query is searched. Each strand of DNA is one, each frame of a translated query is one.

What comes after sees no difference: a reading has codes and a profile, and engines score profiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import reverse_complement
from swsearch.sequences.genetic_code import frame_length
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes


@dataclass(frozen=True, eq=False)
class Reading:
    """A query in one reading direction.

    Attributes
    ----------
    strand : str
        ``plus`` or ``minus``.
    frame : int
        Frame that was translated, 0 where none was.
    codes : uint8 array, shape (length,)
        Along the reading, of the alphabet that is aligned.
    profile : QueryProfile
        Of these codes.
    """

    strand: str
    frame: int
    codes: Codes
    profile: QueryProfile


def reading_lengths(n_letters: int, options: SearchOptions, strands: tuple[str, ...]) -> list[int]:
    """Residues of each reading of a query of ``n_letters``, the empty ones left out."""
    if options.query_frames == (0,):
        return [n_letters] * len(strands)
    return [length for frame in options.query_frames if (length := frame_length(n_letters, frame))]


def readings(
    query: SequenceRecord, options: SearchOptions, strands: tuple[str, ...], scheme: ScoringScheme
) -> list[Reading]:
    """The readings of a query, in the order that breaks ties; frames without a whole codon are left out.

    Parameters
    ----------
    query : SequenceRecord
    options : SearchOptions
    strands : tuple of str
        Those searched where nothing is translated.
    scheme : ScoringScheme
        Of the alphabet that is aligned.
    """
    found = []
    if options.code is None or options.query_frames == (0,):
        for strand in strands:
            codes = reverse_complement(query.codes) if strand == "minus" else query.codes
            found.append(Reading(strand, 0, codes, sequence_profile(codes, scheme)))
        return found
    for frame in options.query_frames:
        codes = options.code.translate(query.codes, frame)
        if len(codes):
            found.append(Reading("plus" if frame > 0 else "minus", frame, codes, sequence_profile(codes, scheme)))
    return found
