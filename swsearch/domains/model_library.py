"""A library of families: the queries of all its models, and what reads one of the models completely.

A search needs the scores of a model, and of the few families that a protein may have everything else. To read all
models of a large library takes many times as long as to search one protein with them. The first search of a file
therefore keeps the scores in the user's cache, with the places of the models in the file; later searches read the
models that they need at these places.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np

from swsearch import __version__
from swsearch.errors import InputError
from swsearch.folders import user_cache, write_complete
from swsearch.query.hmm import FamilyModel, ModelPlace, read_families, read_family
from swsearch.query.profile import PositionSpecificQuery
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import split_header
from swsearch.sequences.source import MAX_LINE_BYTES, HeldFile, seekable, shown_name, text_stream
from swsearch.words import named_twice, quoted

LEAST_BYTES: Final = 1 << 20
"""Size of the smallest file whose scores are kept; a smaller one is read in hundredths of a second."""
_BLOCK_BYTES: Final = 1 << 20
_LENGTH: Final = re.compile(rb"\nLENG +([0-9]{1,9})")
_NAME: Final = re.compile(rb"\nNAME +(\S+)")

LibraryModel = tuple[PositionSpecificQuery, Callable[[], FamilyModel]]
"""The query of a model, and the function that returns the complete model."""


class ModelLibrary:
    """The models of some files.

    Parameters
    ----------
    paths : sequence of path
        They are read twice; ``-`` is standard input.
    matrix : SubstitutionMatrix
        As for :func:`~swsearch.query.hmm.read_families`.

    Attributes
    ----------
    paths : tuple of path
    n_models, n_positions : int
        The number of models, and the sum of their lengths.

    Raises
    ------
    InputError
        A file cannot be read, or two models have one name, as in a file that is named twice.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], matrix: SubstitutionMatrix) -> None:
        self.paths = tuple(map(seekable, paths))
        self._matrix = matrix
        self._kept = [kept_models(path, matrix) for path in self.paths]
        found = [
            _found(path) if kept is None else (_names(kept), len(kept), sum(len(query) for query, _ in kept))
            for path, kept in zip(self.paths, self._kept, strict=True)
        ]
        _refuse_repeated_names(self.paths, (names for names, *_ in found))
        self.n_models = sum(n_models for _, n_models, _ in found)
        self.n_positions = sum(n_positions for *_, n_positions in found)

    def models(self) -> Iterator[LibraryModel]:
        """All models, in order.

        Raises
        ------
        InputError
            A model cannot be read, or has no statistics.
        """
        for path, kept in zip(self.paths, self._kept, strict=True):
            yield from self._read(path) if kept is None else kept

    def _read(self, path: str | os.PathLike[str]) -> Iterator[LibraryModel]:
        """The models of a file, whose scores are then kept, if that is worthwhile."""
        keeps = not isinstance(path, HeldFile) and os.stat(path).st_size >= LEAST_BYTES
        key = _key(path, self._matrix) if keeps else b""
        read: list[tuple[PositionSpecificQuery, ModelPlace]] = []
        for model in read_families(path, self._matrix):
            if model.forward_statistics is None:
                name = split_header(model.query.header)[0]
                problem = f"{shown_name(path)}: model {quoted(name)} has no statistics (STATS LOCAL FORWARD)"
                raise InputError(f"{problem}; hmmconvert of HMMER 3.1 or later writes them")
            if keeps:
                read.append((replace(model.query, model=None), model.place))
            yield model.query, partial(_itself, model)
        if keeps:
            _keep(path, key, read)


def _itself(model: FamilyModel) -> FamilyModel:
    return model


def _names(kept: Sequence[LibraryModel]) -> list[bytes]:
    return [query.identifier.encode("utf-8", "surrogateescape") for query, _ in kept]


def _refuse_repeated_names(paths: Sequence[str | os.PathLike[str]], of_files: Iterable[Sequence[bytes]]) -> None:
    """Refuse two models of one name, which no report could tell apart; hmmpress refuses them, too."""
    files: dict[bytes, int] = {}
    for number, names in enumerate(of_files):
        for name in names:
            first = files.get(name)
            if first is not None:
                raise InputError(_repetition(name, paths[first], None if first == number else paths[number]))
            files[name] = number


def _repetition(name: bytes, path: str | os.PathLike[str], other: str | os.PathLike[str] | None) -> str:
    """The message that two models have a name, in one file or also in another one."""
    if other is None:
        problem = f"{shown_name(path)} has two models"
    elif os.path.realpath(path) == os.path.realpath(other):
        return named_twice(f"{shown_name(other)} is named twice", "models", "file")
    else:
        problem = f"{shown_name(path)} and {shown_name(other)} have a model"
    model = quoted(name.decode("utf-8", "surrogateescape"))
    return f"{problem} {model}; give one of them another name, or leave it out"


def _found(path: str | os.PathLike[str]) -> tuple[list[bytes], int, int]:
    """The names of the models of a file, their number, and that of all their positions, by single lines of them."""
    names: list[bytes] = []
    n_models = n_positions = 0
    with text_stream(path, shown_name(path)) as stream:
        while block := stream.read(_BLOCK_BYTES):
            lines = b"\n" + block + stream.readline(MAX_LINE_BYTES)
            names += _NAME.findall(lines)
            n_models += lines.count(b"\n//")
            n_positions += sum(map(int, _LENGTH.findall(lines)))
    return names, n_models, n_positions


# --- the scores in the cache ---


def kept_models(path: str | os.PathLike[str], matrix: SubstitutionMatrix) -> list[LibraryModel] | None:
    """The models of a file whose scores are kept; None if they are not, or if the file has changed since."""
    if isinstance(path, HeldFile):
        return None
    unusable = OSError, ValueError, LookupError, EOFError, BadZipFile
    with suppress(*unusable), open(_cache(path), "rb") as file, np.load(file) as found:
        if found["key"].tobytes() == _key(path, matrix):
            places = [ModelPlace(*row) for row in found["places"].tolist()]
            headers = found["headers"].tobytes().decode("utf-8", "surrogateescape").split("\n")
            codes, scores = (np.split(found[name], found["ends"][:-1]) for name in ("codes", "scores"))
            return [
                (
                    PositionSpecificQuery(header, letters, PROTEIN, table),
                    partial(_read_again, path, matrix, header, place),
                )
                for header, letters, table, place in zip(headers, codes, scores, places, strict=True)
            ]
    return None


def _read_again(
    path: str | os.PathLike[str], matrix: SubstitutionMatrix, header: str, place: ModelPlace
) -> FamilyModel:
    """A complete model, whose header is known, read from the file."""
    model = read_family(path, place, matrix)
    if model.query.header != header:
        raise InputError(f"{shown_name(path)} was changed while it was read; run the command again")
    return model


def _keep(path: str | os.PathLike[str], key: bytes, read: Sequence[tuple[PositionSpecificQuery, ModelPlace]]) -> None:
    """Write the scores of the models of a file to the cache; one that cannot be written is not an error.

    Nothing is written if the text of the file is not what was read: in an archive, or if lines end with two characters.
    """
    queries, places = [query for query, _ in read], [place for _, place in read]
    with suppress(OSError):
        if os.stat(path).st_size != places[-1].end:
            return
        headers = "\n".join(query.header for query in queries).encode("utf-8", "surrogateescape")
        written = io.BytesIO()
        np.savez(
            written,
            key=np.frombuffer(key, dtype=np.uint8),
            places=np.array(places, dtype=np.int64),
            headers=np.frombuffer(headers, dtype=np.uint8),
            ends=np.cumsum([len(query) for query in queries]),
            codes=np.concatenate([query.codes for query in queries]),
            scores=np.concatenate([query.scores for query in queries]),
        )
        write_complete(_cache(path), written.getvalue())


def _key(path: str | os.PathLike[str], matrix: SubstitutionMatrix) -> bytes:
    """What the scores depend on: the state of the file, the matrix and the program."""
    found = os.stat(path)
    known = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, __version__]
    return hashlib.sha256(repr(known).encode() + matrix.scores.tobytes()).digest()


def _cache(path: str | os.PathLike[str]) -> Path:
    """The file of the cache, one for each file of models."""
    return user_cache("models") / f"{hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()}.npz"
