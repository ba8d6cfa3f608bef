"""Reader of HMMER3's profile hidden Markov models (``.hmm``) as profiles of scores.

A text file has one or several models, each terminated by ``//``: lines of a tag and its value, a line with the letters
of the columns (``HMM``), and three lines for each node. The first has the negative logarithms of the emission
probabilities e of the match state, the second those of insertions, and the third those of the transitions. All versions
of the format, 3/a to 3/f, agree in these.

The match states are the positions of the profile. Their scores are ln(e / p) with the background p of natural proteins,
on the scale of the search's matrix (:func:`swsearch.query.scale.scaled_scores`). Their gap costs are those of the
search; the Forward scores of a sensitive search take the transitions of the file. Inserted residues have the
composition of natural proteins, as in HMMER. The letter of a position is the consensus in the file (``CONS``) or, if
there is none, its most probable amino acid; among equals, the first in ``ARNDCQEGHILKMFPSTWYV``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from swsearch import _native
from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError
from swsearch.query.profile import LEAVING, MD, N_TRANSITIONS, PositionSpecificQuery, ProfileModel, with_other_letters
from swsearch.query.scale import scaled_scores
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.ungapped import background
from swsearch.sequences.alphabet import AMINO_ACIDS, N_AMINO_ACIDS, PROTEIN
from swsearch.sequences.source import MAX_LINE_BYTES, shown_name, text_stream
from swsearch.typing import Floats
from swsearch.words import counted, first_word, quoted

_MAGIC: Final = "HMMER3/"
_VERSIONS: Final = "abcdef"
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,20})?", re.ASCII)
_LENGTH: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_NEVER: Final = 100
"""Negative logarithm that stands for a probability of 0, which the files write as ``*``."""
_CONSENSUS: Final = 1
"""The word behind the emissions of a node that is the letter of the consensus; the first is a column's number."""
_BLOCK_BYTES: Final = 1 << 18
_END: Final = b"\n//"
_LETTERS: Final = re.compile(rb"\nHMM [^\n]*")
_COMPOSITION: Final = re.compile(rb"\n[^\n]*\n *COMPO ")
_SUM_TOLERANCE: Final = 0.01
"""Largest difference of a sum of probabilities from 1; five decimals cause less than 0.001."""
THRESHOLDS: Final = ("GA", "TC", "NC")


class ModelPlace(NamedTuple):
    """Where the text of a model is: its first byte, and the byte after its end, of the file as it is read; its first
    line.
    """

    first: int
    end: int
    first_line: int


@dataclass(frozen=True, eq=False)
class FamilyModel:
    """A model with what its file says about its family.

    Attributes
    ----------
    query : PositionSpecificQuery
        Its header is the name and the description.
    accession : str
        Empty if there is none.
    thresholds : dict of str to (float, float)
        The scores in bits that a sequence and a domain of the family have at least: gathering (``GA``), trusted
        (``TC``) and noise (``NC``) thresholds, as far as the file has them.
    forward_statistics : (float, float) or None
        Location τ and slope λ of the scores in bits of unrelated sequences.
    first_occupancy : float
        The probability that a sequence of the family has the first position.
    place : ModelPlace
    """

    query: PositionSpecificQuery
    accession: str
    thresholds: dict[str, tuple[float, float]]
    forward_statistics: tuple[float, float] | None
    first_occupancy: float
    place: ModelPlace

    @property
    def model(self) -> ProfileModel:
        """Its columns and transitions."""
        assert self.query.model is not None
        return self.query.model


def read_families(path: str | os.PathLike[str], matrix: SubstitutionMatrix) -> Iterator[FamilyModel]:
    """The models of a file, in order.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    matrix : SubstitutionMatrix
        Matrix for the scale of the scores, and for the scores of letters that are not amino acids.

    Raises
    ------
    InputError
        The file is not in this format, or a model is not of proteins; the message names the line.
    ScoringError
        The matrix has no ungapped λ.
    """
    name = shown_name(path)
    n_found = 0
    for text, place in _texts(path, name):
        n_found += 1
        yield _Model(text, name, place).family(matrix)
    if not n_found:
        raise InputError(f"{name} holds no model; a file of hmmbuild begins with '{_MAGIC}f'")


def read_family(path: str | os.PathLike[str], place: ModelPlace, matrix: SubstitutionMatrix) -> FamilyModel:
    """One model of a file that is not compressed, whose lines end with one character.

    Raises
    ------
    InputError
        There is no such model, since the file has changed.
    """
    name = shown_name(path)
    try:
        with open(path, "rb") as file:
            file.seek(place.first)
            text = file.read(place.end - place.first)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}; choose another file") from error
    text, _ = _begun(text.removesuffix(b"\n").removesuffix(_END), place.first_line, name)
    return _Model(text, name, place).family(matrix)


def _texts(path: str | os.PathLike[str], name: str) -> Iterator[tuple[bytes, ModelPlace]]:
    """The text of each model before its ``//``, and its place, up to the end of the line of ``//``."""
    number, first, rest, block = 1, 0, b"", b"\n"
    with text_stream(path, name) as stream:
        while block:
            block = stream.read(_BLOCK_BYTES)
            *models, rest = (rest + block).split(_END)
            for model in models:
                text, first_line = _begun(model + _END, number, name)
                yield text[: -len(_END)], ModelPlace(first, first + len(model) + len(_END) + 1, first_line)
                number += model.count(b"\n") + 1
                first += len(model) + len(_END)
            if b"\n" in rest.lstrip():  # a first line, perhaps of another format
                _begun(rest, number, name)
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(f"{name}: more than {MAX_LINE_BYTES:,} bytes of a model; the file is damaged")
    if _begun(rest, number, name)[0]:
        raise InputError(f"{name}: the last model has no end (//); the file may be cut short")


def _begun(text: bytes, number: int, name: str) -> tuple[bytes, int]:
    """A text, which begins in line ``number``, without the blank lines before a model, and the model's first line."""
    found = text.lstrip()
    number += text.count(b"\n", 0, len(text) - len(found))
    if found:
        _refuse_other_versions(_decoded(found.partition(b"\n")[0]), f"{name}, line {number}")
    return found, number


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _refuse_other_versions(line: str, where: str) -> None:
    if not line.startswith(_MAGIC):
        problem = f"expected '{_MAGIC}f' at the beginning of a model, found {quoted(line.strip())}"
        raise InputError(f"{where}: {problem}; hmmconvert of HMMER 3 writes this format")
    if line[len(_MAGIC) : len(_MAGIC) + 1] not in _VERSIONS:
        problem = f"version {quoted(first_word(line))} of the format is not known"
        raise InputError(f"{where}: {problem}; write it with hmmconvert")


class _Model:
    """A model as its text before ``//``, and the place of the text in the file."""

    def __init__(self, text: bytes, name: str, place: ModelPlace) -> None:
        self._text, self._name, self._place = text, name, place
        self._n_lines = text.count(b"\n") + 1
        found = _LETTERS.search(text)
        self._head = found.end() if found else len(text)  # which ends with the line of the letters
        lines = _decoded(text[: self._head]).split("\n")
        self._body = len(lines)  # the place of the line behind it
        self._tags: dict[str, str] = {}
        self._places: dict[str, int] = {}  # of the lines of tags
        for number, line in enumerate(lines):
            tag, _, value = line.strip().partition(" ")
            if tag == "STATS":  # three lines
                words = value.split()
                tag, value = " ".join([tag, *words[:2]]), " ".join(words[2:])
            self._tags.setdefault(tag, value.strip())
            self._places.setdefault(tag, number)

    def family(self, matrix: SubstitutionMatrix) -> FamilyModel:
        """The complete model."""
        query, first_occupancy = self._query(matrix)
        thresholds = {tag: numbers for tag in THRESHOLDS if (numbers := self._two_numbers(tag)) is not None}
        statistics = self._two_numbers("STATS LOCAL FORWARD")
        if statistics is not None and statistics[1] <= 0.0:
            problem = f"the slope of STATS LOCAL FORWARD is {statistics[1]:g}, not above 0"
            raise self._damaged(self._places["STATS LOCAL FORWARD"], problem)
        return FamilyModel(query, self._tags.get("ACC", ""), thresholds, statistics, first_occupancy, self._place)

    def _query(self, matrix: SubstitutionMatrix) -> tuple[PositionSpecificQuery, float]:
        """The query, and the probability of its first position."""
        columns = self._column_codes()
        # The names of the transitions, perhaps the composition (COMPO), and two lines of node 0 precede node 1.
        first = self._body + (4 if _COMPOSITION.match(self._text, self._head) else 3)
        numbers, consensus = _native.leading_numbers(self._text, first, 3, 1 + N_AMINO_ACIDS, _CONSENSUS, _NEVER)
        n_nodes = len(numbers)
        wrong = np.flatnonzero((numbers[:, 0] != np.arange(1, n_nodes + 1)) | ~(numbers >= 0).all(axis=1))
        if wrong.size:
            raise self._unexpected(first + 3 * wrong[0], f"node {wrong[0] + 1} with {N_AMINO_ACIDS} emissions")
        leaving, _ = _native.leading_numbers(self._text, first - 1, 3, N_TRANSITIONS, 0, _NEVER)
        wrong = np.flatnonzero(~(leaving >= 0).all(axis=1))
        if wrong.size:
            raise self._unexpected(first - 1 + 3 * wrong[0], f"the {N_TRANSITIONS} transitions of node {wrong[0]}")
        length = self._tags.get("LENG", "")
        complete = (self._n_lines - first) % 3 == 0
        if not n_nodes or not complete or not _LENGTH.fullmatch(length) or int(length) != n_nodes:
            problem = f"the model ends after {counted(n_nodes, 'node')}, LENG is {quoted(length)}"
            raise self._damaged(self._n_lines, problem)
        logarithms = np.empty((n_nodes, N_AMINO_ACIDS))
        logarithms[:, columns] = np.minimum(numbers[:, 1:], _NEVER)
        emissions = _probabilities(logarithms)
        sums = self._checked_sums(emissions, first, "the emissions of node")
        before_first, transitions = np.split(_probabilities(leaving), [1])
        for state, of_state in LEAVING:
            self._checked_sums(transitions[:, of_state], first + 2, f"the transitions from {state} of node")
        codes = logarithms.argmin(axis=1).astype(np.uint8)
        if self._tags.get("CONS") == "yes":
            given = PROTEIN.encode_table[np.frombuffer(consensus.upper(), dtype=np.uint8)]
            codes = np.where(given < N_AMINO_ACIDS, given, codes)
        odds = -logarithms - log(background(PROTEIN))
        scores = scaled_scores(odds, np.ones(n_nodes, dtype=np.bool_), codes, matrix)
        if not self._tags.get("NAME"):
            raise self._damaged(self._body - 1, "the model has no NAME")
        header = " ".join(f"{self._tags['NAME']} {self._tags.get('DESC', '')}".split())
        model = ProfileModel(emissions / sums[:, None], transitions)
        query = PositionSpecificQuery(header, codes, PROTEIN, with_other_letters(scores, codes, matrix), model)
        return query, 1.0 - float(before_first[0, MD])

    def _column_codes(self) -> list[int]:
        """The residue codes of the columns of emissions."""
        kind = self._tags.get("ALPH", "")
        if kind.lower() != "amino":
            problem = f"the model has the alphabet {quoted(kind)}; queries are profiles of proteins (amino)"
            raise self._refused(self._places.get("ALPH", self._body - 1), problem)
        letters = self._tags.get("HMM", "").split()
        if len(letters) != N_AMINO_ACIDS or set(letters) != set(AMINO_ACIDS):
            raise self._damaged(self._body - 1, "the line HMM does not name the twenty amino acids")
        return [AMINO_ACIDS.index(letter) for letter in letters]

    def _checked_sums(self, probabilities: Floats, first: int, what: str) -> Floats:
        """The sum of each row, which is about 1; ``first`` is the place of the line of the first one."""
        sums = sum_in_order(probabilities, axis=1)
        for row in np.flatnonzero(np.abs(sums - 1.0) > _SUM_TOLERANCE)[:1].tolist():
            raise self._damaged(first + 3 * row, f"{what} {row + 1} sum to {sums[row]:.3g}, not to 1")
        return sums

    def _two_numbers(self, tag: str) -> tuple[float, float] | None:
        """The two numbers of a line; None if there is no such line."""
        value = self._tags.get(tag)
        if value is None:
            return None
        found = [float(word) for word in value.rstrip("; ").split() if _NUMBER.fullmatch(word)]
        if len(found) != 2:
            raise self._damaged(self._places[tag], f"the line {tag} has {quoted(value)} in place of two numbers")
        return found[0], found[1]

    def _unexpected(self, place: int, expected: str) -> InputError:
        line = _decoded(self._text.split(b"\n")[place])
        return self._damaged(place, f"expected {expected}, found {quoted(line.strip())}")

    def _damaged(self, place: int, problem: str) -> InputError:
        return self._refused(place, f"{problem}; the file is damaged, write it again")

    def _refused(self, place: int, problem: str) -> InputError:
        """The error of a line, by its place in the model."""
        return InputError(f"{self._name}, line {self._place.first_line + place}: {problem}")


def _probabilities(logarithms: Floats) -> Floats:
    """Of negative logarithms."""
    return np.where(logarithms < _NEVER, exp(-logarithms), 0.0)
