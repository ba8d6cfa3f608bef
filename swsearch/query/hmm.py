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
from typing import Final

import numpy as np

from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError, ScoringError
from swsearch.hits.result import N_AMINO_ACIDS
from swsearch.query.profile import PositionSpecificQuery, with_other_letters
from swsearch.query.profile_model import DD, DM, IM, MD, MM, N_TRANSITIONS, ProfileModel
from swsearch.query.scale import scaled_scores
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.ungapped import background
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.source import shown_name, text_lines
from swsearch.typing import Floats
from swsearch.words import counted, first_word, quoted

_MAGIC: Final = "HMMER3/"
_VERSIONS: Final = "abcdef"
_AMINO_ACIDS: Final = frozenset(PROTEIN.letters[:N_AMINO_ACIDS])
_NODE: Final = re.compile(
    rf"\s*([0-9]{{1,9}})((?:\s+(?:[0-9]{{1,9}}\.[0-9]{{1,20}}|\*)){{{N_AMINO_ACIDS}}})(?:\s+\S+\s+(\S))?", re.ASCII
)
"""Number, emissions, and the letter of the consensus behind the column of the alignment; the rest is annotation."""
_LEAVING_NODE: Final = re.compile(rf"(?:\s+(?:[0-9]{{1,9}}\.[0-9]{{1,20}}|\*)){{{N_TRANSITIONS}}}", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,20})?", re.ASCII)
_LENGTH: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_NEVER: Final = 100.0
"""Negative logarithm that stands for a probability of 0, which the files write as ``*``."""
_SUM_TOLERANCE: Final = 0.01
"""Largest difference of a sum of probabilities from 1; five decimals cause less than 0.001."""
THRESHOLDS: Final = ("GA", "TC", "NC")
_LEAVING: Final = (("a match", slice(MM, IM)), ("an insertion", slice(IM, DM)), ("a deletion", slice(DM, DD + 1)))
"""States, and the transitions that leave them."""


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
    """

    query: PositionSpecificQuery
    accession: str
    thresholds: dict[str, tuple[float, float]]
    forward_statistics: tuple[float, float] | None
    first_occupancy: float

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
    model: _Model | None = None
    n_found = 0
    for number, line in enumerate(text_lines(path, name), 1):
        try:
            if model is None:
                if line.strip():
                    _refuse_other_versions(line)
                    model = _Model()
            elif line.strip() == "//":
                yield model.family(matrix)
                model = None
                n_found += 1
            else:
                model.add(line)
        except (InputError, ScoringError) as error:
            raise type(error)(f"{name}, line {number}: {error.marked}") from error
    if model is not None:
        raise InputError(f"{name}: the last model has no end (//); the file may be cut short")
    if not n_found:
        raise InputError(f"{name} holds no model; a file of hmmbuild begins with '{_MAGIC}f'")


def _refuse_other_versions(line: str) -> None:
    if not line.startswith(_MAGIC):
        problem = f"expected '{_MAGIC}f' at the beginning of a model, found {quoted(line.strip())}"
        raise InputError(f"{problem}; hmmconvert of HMMER 3 writes this format")
    if line[len(_MAGIC) : len(_MAGIC) + 1] not in _VERSIONS:
        raise InputError(f"version {quoted(first_word(line))} of the format is not known; write it with hmmconvert")


class _Model:
    """A model whose lines are being read."""

    def __init__(self) -> None:
        self._tags: dict[str, str] = {}
        self._columns: list[int] = []
        self._body_lines = 0  # lines after the one with the letters
        self._begin = 0  # of them, lines before the first node
        self._nodes: list[str] = []
        self._transitions: list[str] = []
        self._consensus: list[str] = []

    def add(self, line: str) -> None:
        """A line between the first and the last of the model."""
        if not self._columns:
            tag, _, value = line.strip().partition(" ")
            if tag == "STATS":  # three lines
                words = value.split()
                tag, value = " ".join([tag, *words[:2]]), " ".join(words[2:])
            if tag == "HMM":
                self._letters(value.split())
            else:
                self._tags.setdefault(tag, value.strip())
            return
        self._body_lines += 1
        if self._body_lines == 2:  # the first line has the names of the transitions
            self._begin = 4 if line.split()[:1] == ["COMPO"] else 3
        if self._body_lines >= max(self._begin, 3):
            line_of_node = (self._body_lines - self._begin) % 3
            if line_of_node == 1:
                self._node(line)
            elif line_of_node == 0:
                self._leave_node(line)

    def _letters(self, letters: list[str]) -> None:
        kind = self._tags.get("ALPH", "")
        if kind.lower() != "amino":
            raise InputError(f"the model has the alphabet {quoted(kind)}; queries are profiles of proteins (amino)")
        if len(letters) != N_AMINO_ACIDS or set(letters) != _AMINO_ACIDS:
            raise InputError("the line HMM does not name the twenty amino acids; the file is damaged, write it again")
        self._columns = [PROTEIN.code(letter) for letter in letters]

    def _node(self, line: str) -> None:
        number = len(self._nodes) + 1
        match = _NODE.match(line)
        if match is None or int(match[1]) != number:
            problem = f"expected node {number} with {N_AMINO_ACIDS} emissions"
            raise InputError(f"{problem}, found {quoted(line.strip())}; the file is damaged, write it again")
        self._nodes.append(match[2])
        self._consensus.append((match[3] or "").upper() if self._tags.get("CONS") == "yes" else "")

    def _leave_node(self, line: str) -> None:
        if _LEAVING_NODE.fullmatch(line.rstrip()) is None:
            problem = f"expected the {N_TRANSITIONS} transitions of node {len(self._nodes)}"
            raise InputError(f"{problem}, found {quoted(line.strip())}; the file is damaged, write it again")
        self._transitions.append(line)

    def _numbers(self, tag: str) -> tuple[float, float] | None:
        """The two numbers of a line; None if there is no such line."""
        value = self._tags.get(tag)
        if value is None:
            return None
        found = [float(word) for word in value.rstrip("; ").split() if _NUMBER.fullmatch(word)]
        if len(found) != 2:
            raise InputError(f"the line {tag} has {quoted(value)} in place of two numbers; the file is damaged")
        return found[0], found[1]

    def family(self, matrix: SubstitutionMatrix) -> FamilyModel:
        """The complete model."""
        query, first_occupancy = self._query(matrix)
        thresholds = {tag: numbers for tag in THRESHOLDS if (numbers := self._numbers(tag)) is not None}
        statistics = self._numbers("STATS LOCAL FORWARD")
        return FamilyModel(query, self._tags.get("ACC", ""), thresholds, statistics, first_occupancy)

    def _query(self, matrix: SubstitutionMatrix) -> tuple[PositionSpecificQuery, float]:
        """The query, and the probability of its first position."""
        length = self._tags.get("LENG", "")
        complete = (self._body_lines - self._begin) % 3 == 0
        if not self._nodes or not complete or not _LENGTH.fullmatch(length) or int(length) != len(self._nodes):
            problem = f"the model ends after {counted(len(self._nodes), 'node')}, LENG is {quoted(length)}"
            raise InputError(f"{problem}; the file is damaged, write it again")
        logarithms = np.empty((len(self._nodes), N_AMINO_ACIDS))
        logarithms[:, self._columns] = _logarithms(self._nodes, N_AMINO_ACIDS)
        emissions = _probabilities(logarithms)
        sums = _checked_sums(emissions, "the emissions of node")
        before_first, *rows = _probabilities(_logarithms(self._transitions, N_TRANSITIONS))
        transitions = np.stack(rows)
        for state, leaving in _LEAVING:
            _checked_sums(transitions[:, leaving], f"the transitions from {state} of node")
        codes = logarithms.argmin(axis=1).astype(np.uint8)
        for position, letter in enumerate(self._consensus):
            if letter in _AMINO_ACIDS:
                codes[position] = PROTEIN.code(letter)
        odds = -logarithms - log(background(PROTEIN))
        scores = scaled_scores(odds, np.ones(len(codes), dtype=np.bool_), codes, matrix)
        header = " ".join(f"{self._tags.get('NAME', '')} {self._tags.get('DESC', '')}".split()) or "model"
        model = ProfileModel(emissions / sums[:, None], transitions)
        query = PositionSpecificQuery(header, codes, PROTEIN, with_other_letters(scores, codes, matrix), model)
        return query, 1.0 - float(before_first[MD])


def _logarithms(lines: list[str], n_columns: int) -> Floats:
    """The negative logarithms that lines of the file state, at most :data:`_NEVER`."""
    numbers = np.fromstring(" ".join(lines).replace("*", str(_NEVER)), sep=" ")
    return np.minimum(numbers, _NEVER).reshape(-1, n_columns)


def _probabilities(logarithms: Floats) -> Floats:
    return np.where(logarithms < _NEVER, exp(-logarithms), 0.0)


def _checked_sums(probabilities: Floats, what: str) -> Floats:
    """The sum of each row, which is about 1."""
    sums = sum_in_order(probabilities, axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _SUM_TOLERANCE)
    if wrong.size:
        problem = f"{what} {wrong[0] + 1} sum to {sums[wrong[0]]:.3g}, not to 1"
        raise InputError(f"{problem}; the file is damaged, write it again")
    return sums
