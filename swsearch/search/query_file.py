"""Files of queries: sequences, or profiles with scores of their own at each position.

``swsearch query`` reads one file into memory (:func:`read_queries_as`); ``swsearch batch`` takes many files and reads
them several times, one record at a time (:class:`QueryFiles`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from swsearch.errors import AlphabetMismatch, InputError
from swsearch.pssm.read import QUERY_FORMATS, detect_query_format, read_profiles
from swsearch.pssm.scale import scale_note
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.api import read_queries
from swsearch.search.needs import QueryNeeds
from swsearch.sequences.alphabet import PROTEIN, Alphabet
from swsearch.sequences.fasta import RefusedRecord, read_each
from swsearch.sequences.record import SequenceRecord
from swsearch.sequences.source import refuse_repeated_pipes, seekable, shown_name


@dataclass(frozen=True)
class QueryFile:
    """The queries of a file.

    Attributes
    ----------
    records : sequence of SequenceRecord
        The queries; profiles are :class:`swsearch.query.position_specific.PositionSpecificQuery`.
    parameters : dict of str to str
        For profiles, the parameters that a run stores: the format, and a digest of the scores, which the consensus
        letters do not determine. Empty for sequences.
    notes : tuple of str
        Messages for the user.
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
    force_alphabet: bool = False,
    needs: QueryNeeds | None = None,
) -> QueryFile:
    """All queries of a file (``-`` is stdin).

    Parameters
    ----------
    path : path
    query_format : str
        One of :data:`swsearch.pssm.read.QUERY_FORMATS`; ``auto`` recognizes a PSSM and Stockholm by their first line
        and takes every other file for FASTA or FASTQ.
    scheme : ScoringScheme
        The search's scheme; its matrix determines the scale of a profile.
    alphabet : Alphabet, optional
        The alphabet of sequences that are translated before they are aligned. By default, and always for profiles, it
        is the scheme's.
    force_alphabet : bool
        As for :func:`swsearch.search.api.read_queries`.
    needs : QueryNeeds, optional
        The search's needs; error messages then name the options that would work.

    Raises
    ------
    InputError
        The format is unknown, or the file cannot be read in this format.
    AlphabetMismatch
        The file is of the wrong alphabet, or holds profiles that look like DNA and ``force_alphabet`` is False.
    """
    path = seekable(path)
    detected = _format_of(path, query_format)
    if detected == "fasta":
        return QueryFile(
            read_queries(path, alphabet or scheme.alphabet, force_alphabet=force_alphabet, needs=needs), {}, ()
        )
    refuse_profiles(path, needs)
    profiles = read_profiles(path, detected, scheme.matrix)
    if needs is not None and not force_alphabet:
        needs.refuse_dna(path, "".join(map(known_letters, profiles)), profiles=True)
    notes = [note for profile in profiles if (note := scale_note(profile, scheme.matrix)) is not None]
    return QueryFile(profiles, _stored_parameters([detected], profiles), tuple(notes))


@dataclass(frozen=True)
class QueryFiles:
    """The files of a batch.

    Attributes
    ----------
    paths : tuple of paths
        For a pipe or standard input, the path of a copy, because a batch reads its files more than once.
    formats : tuple of str
        The format of each file, detected where the caller gave ``auto``.
    """

    paths: tuple[str | os.PathLike[str], ...]
    formats: tuple[str, ...]

    @classmethod
    def of(cls, paths: Sequence[str | os.PathLike[str]], query_format: str) -> Self:
        """The files of some paths, in a format of :data:`swsearch.pssm.read.QUERY_FORMATS`.

        Raises
        ------
        InputError
            The format is unknown, some files hold profiles and others sequences, or a pipe is named twice.
        """
        refuse_repeated_pipes(paths)
        paths = [seekable(path) for path in paths]
        formats = tuple(_format_of(path, query_format) for path in paths)
        files = cls(tuple(paths), formats)
        if files.hold_profiles and "fasta" in formats:
            profile = next(path for path, form in zip(paths, formats, strict=True) if form != "fasta")
            raise InputError(
                f"{shown_name(profile)} holds profiles and other files sequences; make two batches of them"
            )
        return files

    @property
    def hold_profiles(self) -> bool:
        """Whether the queries are profiles."""
        return any(form != "fasta" for form in self.formats)

    def by_file(
        self, scheme: ScoringScheme, needs: QueryNeeds
    ) -> Iterator[tuple[str | os.PathLike[str], str, Iterator[SequenceRecord | RefusedRecord]]]:
        """Path, format and records of each file; errors as for :meth:`records`."""
        for path, form in zip(self.paths, self.formats, strict=True):
            yield path, form, _records(path, form, scheme, needs)

    def records(self, scheme: ScoringScheme, needs: QueryNeeds) -> Iterator[SequenceRecord | RefusedRecord]:
        """All queries in order; a record that is not a sequence of the needed alphabet comes as a refused record.

        Raises
        ------
        InputError
            A file cannot be read; the records before the damage have been yielded.
        AlphabetMismatch
            A file holds profiles, and queries must be DNA.
        """
        for _, _, records in self.by_file(scheme, needs):
            yield from records

    def parameters(self, scheme: ScoringScheme) -> dict[str, str]:
        """The parameters that a run stores, as :attr:`QueryFile.parameters`; reads profiles once.

        Raises
        ------
        InputError
            A profile cannot be read.
        """
        if not self.hold_profiles:
            return {}
        read = zip(self.paths, self.formats, strict=True)
        profiles = (profile for path, form in read for profile in read_profiles(path, form, scheme.matrix))
        return _stored_parameters(sorted(set(self.formats)), profiles)


def _records(
    path: str | os.PathLike[str], form: str, scheme: ScoringScheme, needs: QueryNeeds
) -> Iterator[SequenceRecord | RefusedRecord]:
    if form != "fasta":
        refuse_profiles(path, needs)
        yield from read_profiles(path, form, scheme.matrix)
        return
    for record in read_each(path, needs.alphabet):
        if isinstance(record, RefusedRecord):
            yield replace(record, reason=needs.of_this_search(record.reason))
        else:
            yield record


def _format_of(path: str | os.PathLike[str], query_format: str) -> str:
    if query_format not in QUERY_FORMATS:
        raise InputError(f"--query-format {query_format!r}: choose {', '.join(QUERY_FORMATS)}")
    detected = detect_query_format(path) if query_format in ("auto", "fasta") else query_format
    if query_format == "fasta" and detected != "fasta":
        raise InputError(f"{shown_name(path)} is no FASTA, it is in format {detected}; leave --query-format fasta out")
    return detected


def refuse_profiles(path: str | os.PathLike[str], needs: QueryNeeds | None) -> None:
    """Refuse profiles, which are protein, where queries must be DNA.

    Raises
    ------
    AlphabetMismatch
        Queries must be DNA.
    """
    if needs is not None and needs.alphabet is not PROTEIN:
        advice = f"{needs.advice(PROTEIN)}; profiles of DNA are not read"
        raise AlphabetMismatch(needs.alphabet.name, PROTEIN.name, f"the profile {shown_name(path)}", advice)


def known_letters(profile: SequenceRecord) -> str:
    """The consensus of a profile without X, which marks positions without a known letter."""
    return profile.letters.replace("X", "")


def _stored_parameters(formats: Sequence[str], profiles: Iterable[PositionSpecificQuery]) -> dict[str, str]:
    """The formats, and the SHA-256 of all scores."""
    digest = hashlib.sha256()
    for profile in profiles:
        digest.update(len(profile).to_bytes(8, "little") + profile.scores.tobytes())
    return {"query_format": ",".join(formats), "query_digest": digest.hexdigest()}
