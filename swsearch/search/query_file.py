"""The file of a query in whatever form it comes: sequences, or profiles with scores of their own at each position."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from swsearch.errors import InputError
from swsearch.profiles.read import QUERY_FORMATS, detect_query_format, read_profiles
from swsearch.profiles.scale import scale_note
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.api import read_queries
from swsearch.sequences.alphabet import Alphabet
from swsearch.sequences.record import SequenceRecord


@dataclass(frozen=True)
class QueryFile:
    """What a file held.

    Attributes
    ----------
    records : sequence of SequenceRecord
        Profiles are :class:`swsearch.query.position_specific.PositionSpecificQuery`.
    parameters : dict of str to str
        What a run must keep of it: the format and a digest of the scores, which a sequence's letters do not tell;
        empty for sequences.
    notes : tuple of str
        What a person should hear of it.
    """

    records: Sequence[SequenceRecord]
    parameters: dict[str, str]
    notes: tuple[str, ...]


def read_queries_as(
    path: str | os.PathLike[str],
    query_format: str,
    scheme: ScoringScheme,
    *,
    alphabet: Alphabet | None = None,
    as_asked: bool = False,
) -> QueryFile:
    """All queries of a file (``-`` is stdin).

    Parameters
    ----------
    path : path
    query_format : str
        One of :data:`swsearch.profiles.read.QUERY_FORMATS`; ``auto`` knows a PSSM and Stockholm by their first line and
        takes everything else for FASTA or FASTQ.
    scheme : ScoringScheme
        Of the search: its matrix gives a profile its scale.
    alphabet : Alphabet, optional
        Of sequences that are translated before they are aligned; else they are of the scheme's, as profiles always are.
    as_asked : bool
        As for :func:`swsearch.search.api.read_queries`.

    Raises
    ------
    InputError
        The format is unknown, or the file cannot be read in it.
    """
    if query_format not in QUERY_FORMATS:
        raise InputError(f"--query-format {query_format!r}: choose {', '.join(QUERY_FORMATS)}")
    found = detect_query_format(path) if query_format == "auto" else query_format
    if found == "fasta":
        return QueryFile(read_queries(path, alphabet or scheme.alphabet, as_asked=as_asked), {}, ())
    profiles = read_profiles(path, found, scheme.matrix)
    notes = [note for profile in profiles if (note := scale_note(profile, scheme.matrix)) is not None]
    return QueryFile(profiles, {"query_format": found, "query_digest": _digest(profiles)}, tuple(notes))


def _digest(profiles: Sequence[PositionSpecificQuery]) -> str:
    """SHA-256 of all scores."""
    digest = hashlib.sha256()
    for profile in profiles:
        digest.update(len(profile).to_bytes(8, "little") + profile.scores.tobytes())
    return digest.hexdigest()
