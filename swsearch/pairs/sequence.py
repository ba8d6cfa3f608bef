"""The sequences of a pair: residues of an alphabet, or texts whose letters are compared literally.

:func:`read_pairs` and :func:`read_text_pairs` read them from files. A text file that begins with ``>`` is FASTA, and
each record is a text without its line ends. Any other file is one text, without its final line end. Texts are UTF-8; a
letter is one code point, and case is significant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.errors import AlphabetMismatch, InputError
from swsearch.sequences.alphabet import Alphabet
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord, identifier
from swsearch.sequences.source import refuse_repeated_pipes, shown_name, text_stream
from swsearch.typing import Letters
from swsearch.words import counted

MAX_LETTERS: Final = 65_000
"""Largest number of distinct letters of a pair of texts; letters are 16-bit numbers in the kernels."""


@dataclass(frozen=True, eq=False)
class PairSequence:
    """One side of a pair: its letters as written and, except for a text, the record of its residues."""

    header: str
    letters: str
    record: SequenceRecord | None = None

    @property
    def identifier(self) -> str:
        """First word of the header; ``unnamed`` if it is empty."""
        return identifier(self.header)

    def __len__(self) -> int:
        return len(self.letters)


def from_record(record: SequenceRecord) -> PairSequence:
    """The pair sequence of a record of a sequence file."""
    return PairSequence(record.header, record.letters, record)


def read_pairs(
    query_path: str, subject_path: str | None, alphabet: Alphabet | None
) -> list[tuple[PairSequence, PairSequence]]:
    """Pairs of residue sequences: record i of one file with record i of the other, or successive records of one file.

    The only record of a file is paired with each record of the other.

    Raises :class:`AlphabetMismatch` if one file looks like protein and the other like DNA, and :class:`InputError` if
    the files cannot be read or differ in their number of records.
    """
    refuse_repeated_pipes([path for path in (query_path, subject_path) if path is not None])
    queries = [from_record(record) for record in read_sequences(query_path, alphabet)]
    if subject_path is None:
        return _in_turns(queries, query_path)
    subjects = [from_record(record) for record in read_sequences(subject_path, alphabet)]
    for query, subject in zip(queries[:1], subjects[:1], strict=True):
        assert query.record is not None
        assert subject.record is not None
        if query.record.alphabet is not subject.record.alphabet:
            raise AlphabetMismatch(
                query.record.alphabet.name,
                subject.record.alphabet.name,
                shown_name(subject_path),
                f"{shown_name(query_path)} is {query.record.alphabet.name}; if both are the same, give --alphabet",
            )
    return _matched(queries, subjects, query_path, subject_path)


def read_text_pairs(query_path: str, subject_path: str | None) -> list[tuple[PairSequence, PairSequence]]:
    """Pairs of texts, formed as by :func:`read_pairs` and with its errors."""
    refuse_repeated_pipes([path for path in (query_path, subject_path) if path is not None])
    if subject_path is None:
        return _in_turns(_read_texts(query_path), query_path)
    return _matched(_read_texts(query_path), _read_texts(subject_path), query_path, subject_path)


def _in_turns(sides: list[PairSequence], path: str) -> list[tuple[PairSequence, PairSequence]]:
    if len(sides) % 2 or not sides:
        raise InputError(
            f"{shown_name(path)} has {counted(len(sides), 'record')}; --pairs needs queries and subjects alternately"
        )
    return list(zip(sides[::2], sides[1::2], strict=True))


def _matched(
    queries: list[PairSequence], subjects: list[PairSequence], query_path: str, subject_path: str
) -> list[tuple[PairSequence, PairSequence]]:
    if len(queries) == 1:
        queries *= len(subjects)
    if len(subjects) == 1:
        subjects *= len(queries)
    if len(queries) != len(subjects):
        raise InputError(
            f"{shown_name(query_path)} has {counted(len(queries), 'record')}, {shown_name(subject_path)} has "
            f"{len(subjects):,}; they are aligned pair by pair and need equal numbers, or one record in one of them"
        )
    return list(zip(queries, subjects, strict=True))


def _read_texts(path: str) -> list[PairSequence]:
    name = shown_name(path)
    with text_stream(path, name) as stream:
        raw = stream.read()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: byte {error.start + 1} is not UTF-8; convert the text to UTF-8") from error
    if not text.startswith(">"):
        return [PairSequence(name, text.removesuffix("\n").removesuffix("\r"))]
    texts = []
    for part in text[1:].replace("\r\n", "\n").split("\n>"):
        header, _, body = part.partition("\n")
        texts.append(PairSequence(header.rstrip(), body.replace("\n", "")))
    return texts


def number_texts(texts: Sequence[str]) -> list[Letters]:
    """The letters of texts as uint16 numbers, one per code point; equal letters have equal numbers in all texts.

    Raises :class:`InputError` for more than :data:`MAX_LETTERS` distinct letters.

    >>> [text.tolist() for text in number_texts(["aba", "cb"])]
    [[0, 1, 0], [2, 1]]
    """
    points = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")
    different, numbers = np.unique(points, return_inverse=True)
    if len(different) > MAX_LETTERS:
        raise InputError(
            f"the texts have {len(different):,} different letters; at most {MAX_LETTERS:,} can be distinguished"
        )
    return np.split(numbers.astype(np.uint16), np.cumsum([len(text) for text in texts])[:-1])
