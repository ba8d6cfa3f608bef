"""Contexts: typical windows of columns, by which the column at a position is predicted from its neighbours.

Each of K contexts k has a prior probability P_k and 13 columns p_kj(a). For position i of a sequence or an alignment
that has c_i(a) observations of amino acid a there (Biegert and Söding 2009, doi 10.1073/pnas.0810767106)::

    weight_k  ∝  P_k · Π_j Π_a p_kj(a)^(w_j · c_(i+j)(a)),   j = -6 … 6,   w_j = 1.6 · 0.85^|j|
    t_i(a)    =  Σ_k weight_k · p_k0(a)

The contexts are those of the program, or of a file of CS-BLAST or HH-suite (:func:`read_contexts`).

The observations are whole numbers in units of 1/64, the logarithms in units of 1/100, the weights in units of 2^-20 of
the largest, and the columns in units of 2^-16. Sums are whole numbers below 2^53, so they are exact in any order, and
every machine computes the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError
from swsearch.sequences.alphabet import AMINO_ACIDS, N_AMINO_ACIDS
from swsearch.sequences.source import shown_name, text_lines
from swsearch.typing import Floats
from swsearch.words import counted, quoted

WIDTH: Final = 13
UNITS: Final = 100.0
"""Of a logarithm."""
PROGRAM_UNITS: Final = 20.0
"""Of a logarithm in the library of the program."""
TEXT_UNITS: Final = 1000.0 * 1.4426950408889634
"""Of a logarithm in a file that :func:`read_contexts` reads: a thousandth of a bit."""
MOST_COST: Final = 18_000
"""Largest of these logarithms: 18 bits, with which no sum of the native function leaves its range."""
MOST_CONTEXTS: Final = 100_000
SHARE_UNITS: Final = 65536.0
WEIGHT_UNITS: Final = 1048576.0
CENTRAL_WEIGHT: Final = 1.6
DECAY: Final = 0.85
COUNT_UNITS: Final = 64.0
"""Of an observation."""
_N_WEIGHTS: Final = 2048
"""A context whose logarithm is 20.47 below that of the best one, or lower, has the weight 0."""
_MULTIPLE: Final = 32
"""The number of contexts is rounded up to a multiple of it, with contexts that never have a weight."""
_NEVER: Final = 1 << 29
_TOLERANCE: Final = 0.01
"""Largest difference of a sum of probabilities from 1; thousandths of a bit cause less than 0.0004."""
_PROBABILITY: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{0,20})?([eE][-+]?[0-9]{1,3})?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Contexts:
    """A library of contexts.

    Attributes
    ----------
    priors : uint8 or float64 array, shape (K,)
        -ln P_k in units of 1 / ``units``; a constant may be subtracted from all.
    columns : uint8 or int16 array, shape (K, 13, 20)
        -ln p_kj(a) in units of 1 / ``units``.
    units : float
    digest : str, optional
        The SHA-256 of the text of the file, in hexadecimal; None for the library of the program.
    """

    priors: NDArray[np.uint8] | Floats
    columns: NDArray[np.uint8] | NDArray[np.int16]
    units: float = PROGRAM_UNITS
    digest: str | None = None

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int16], NDArray[np.int32], Floats, Floats]:
        """What the native function takes: -w_j ln p_kj(a) of each place and letter, shape (13 * 20, n), -ln P_k, shape
        (n,), the weights by the difference of the logarithms, and p_k0(a), shape (n, 20).
        """
        n = -(-len(self.priors) // _MULTIPLE) * _MULTIPLE
        costs = np.zeros((WIDTH, N_AMINO_ACIDS, n), dtype=np.int16)
        for place in range(WIDTH):
            weight = CENTRAL_WEIGHT * UNITS / self.units
            for _ in range(abs(place - WIDTH // 2)):
                weight *= DECAY
            costs[place, :, : len(self.priors)] = np.rint(weight * self.columns[:, place].T)
        priors = np.full(n, _NEVER, dtype=np.int32)
        priors[: len(self.priors)] = np.rint(self.priors * (UNITS / self.units))
        weights = np.rint(exp(np.arange(_N_WEIGHTS) / -UNITS) * WEIGHT_UNITS)
        central = np.zeros((n, N_AMINO_ACIDS))
        central[: len(self.priors)] = np.rint(exp(self.columns[:, WIDTH // 2] / -self.units) * SHARE_UNITS)
        return costs.reshape(WIDTH * N_AMINO_ACIDS, n), priors, weights, central

    def predicted(self, counts: Floats, n_threads: int = 1, instruction_set: str = "auto") -> Floats:
        """The predicted columns, float64 of shape (length, 20), whose rows sum to 1.

        ``counts``, float64 of shape (length, 20), has the observations c_i(a), at most 1,000 at a position. A residue
        of a sequence is one observation; positions without any, and places outside of the sequence, say nothing.
        ``n_threads`` and ``instruction_set`` do not affect the result.
        """
        observed = np.rint(counts * COUNT_UNITS).astype(np.int32)
        sums = np.empty(observed.shape)
        _native.context_sums(*self._arrays, observed, sums, n_threads, instruction_set)
        columns: Floats = sums / sum_in_order(sums, axis=1)[:, None]
        return columns


@lru_cache(maxsize=16)
def predicted_columns(library: Contexts, counts: bytes, n_threads: int = 1) -> Floats:
    """The columns that a library predicts; they are computed once where a query is prepared again.

    ``counts`` are the bytes of the array that :meth:`Contexts.predicted` takes.
    """
    columns = library.predicted(np.frombuffer(counts).reshape(-1, N_AMINO_ACIDS), n_threads)
    columns.flags.writeable = False
    return columns


@lru_cache(maxsize=1)
def program_contexts() -> Contexts:
    """The library of the program."""
    with np.load(Path(__file__).with_name("contexts.npz")) as file:
        return Contexts(file["priors"], file["columns"])


def read_contexts(path: str | os.PathLike[str]) -> Contexts:
    """The library of a text file in the format of CS-BLAST and HH-suite, as their ``context_data.lib``.

    Its first lines are ``ContextLibrary``, ``SIZE`` with the number of contexts, and ``LENG 13``. Each context has the
    line ``ContextProfile``, tags with their values, among them ``PRIOR`` with P_k, the line ``PROBS`` with the twenty
    letters, and for each place its number from 1 to 13 and -1000 log2 p_kj(a), a whole number, of each letter; its last
    line is ``//``. The numbers are kept as they are: rounded to 1/20, as in the library of the program, each
    probability could change by 2.5 %.

    Raises
    ------
    InputError
        The file is not of this format, is cut short, or has other windows, or the probabilities of a column or all
        priors do not sum to 1; the message names the line.
    """
    return _ContextReader(path).library()


class _ContextReader:
    """The lines of a file of contexts, one after the other."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._name = shown_name(path)
        self._lines = text_lines(path, self._name)
        self._number = 0
        self._digest = hashlib.sha256()

    def library(self) -> Contexts:
        """All contexts."""
        self._expect("ContextLibrary")
        n_contexts = self._expect("SIZE", 1)[0]
        if re.fullmatch("0*[1-9][0-9]{0,5}", n_contexts) is None or int(n_contexts) > MOST_CONTEXTS:
            raise self._problem(f"SIZE {quoted(n_contexts)} is not a number of contexts, 1 to {MOST_CONTEXTS:,}")
        self._check_length(self._expect("LENG", 1)[0])
        priors, columns = np.empty(int(n_contexts)), np.empty((int(n_contexts), WIDTH, N_AMINO_ACIDS), dtype=np.int16)
        for context in range(len(priors)):
            priors[context] = self._prior()
            columns[context] = [self._column(place) for place in range(1, WIDTH + 1)]
            self._expect("//")
        while (words := self._words()) is not None:
            if words:
                raise self._problem(f"{quoted(words[0])} follows the {counted(len(priors), 'context')} of SIZE")
        if abs(float(sum_in_order(priors)) - 1.0) > _TOLERANCE:
            raise InputError(f"{self._name}: the priors of all contexts do not sum to 1; the file may be damaged")
        return Contexts(-TEXT_UNITS * log(priors), columns, TEXT_UNITS, self._digest.hexdigest())

    def _prior(self) -> float:
        """The prior of a context, whose columns follow."""
        self._expect("ContextProfile")
        prior = 0.0
        while (words := self._words()) and words[0] != "PROBS":
            value = " ".join(words[1:])
            if words[0] == "PRIOR":
                prior = float(value) if _PROBABILITY.fullmatch(value) else 0.0
                if not 0.0 < prior <= 1.0:
                    raise self._problem(f"PRIOR {quoted(value)} is not a probability above 0")
            elif words[0] == "LENG":
                self._check_length(value)
            elif words[0] == "ISLOG" and value != "F":
                raise self._problem("a context with logarithms (ISLOG) is not read; convert it")
        if not words or words[1:] != list(AMINO_ACIDS):
            raise self._problem(f"the line `PROBS {' '.join(AMINO_ACIDS)}` is missing")
        if not prior:
            raise self._problem("the context has no PRIOR")
        return prior

    def _column(self, place: int) -> list[int]:
        """The logarithms of a column."""
        values = self._expect(str(place), N_AMINO_ACIDS)
        digits = "".join(values)
        is_short = digits.isascii() and digits.isdecimal() and max(map(len, values)) <= len(str(MOST_COST))
        costs = list(map(int, values)) if is_short else [MOST_COST + 1]
        if max(costs) > MOST_COST:
            raise self._problem(f"column {place} has a value that is not a whole number, 0 to {MOST_COST:,}")
        total = sum(map(_shares().__getitem__, costs))
        if abs(total - 1.0) > _TOLERANCE:
            raise self._problem(f"the probabilities of column {place} sum to {total:.3f}, not to 1")
        return costs

    def _words(self) -> list[str] | None:
        """The words of the next line; None at the end of the file."""
        line = next(self._lines, None)
        if line is None:
            return None
        self._number += 1
        self._digest.update(line.encode("utf-8", "surrogateescape"))
        return line.split()

    def _expect(self, first: str, n: int = 0) -> list[str]:
        """The words behind the first one of the next line, which has ``n`` of them."""
        words = self._words()
        if words is None:
            raise InputError(f"{self._name} ends behind line {self._number}, where {first} is due; it may be cut short")
        if words[:1] != [first]:
            found = quoted(words[0]) if words else "an empty line"
            raise self._problem(f"{found} where {first} is due; give a library of contexts, such as context_data.lib")
        if len(words) != n + 1:
            raise self._problem(f"{counted(len(words) - 1, 'value')} behind {first}, {n} are needed")
        return words[1:]

    def _check_length(self, length: str) -> None:
        if length != str(WIDTH):
            raise self._problem(f"LENG {quoted(length)}: contexts have {WIDTH} columns; give another library")

    def _problem(self, what: str) -> InputError:
        return InputError(f"{self._name}, line {self._number}: {what}")


@cache
def _shares() -> list[float]:
    """The probability of each logarithm up to :data:`MOST_COST`."""
    shares: list[float] = exp(np.arange(MOST_COST + 1) / -TEXT_UNITS).tolist()
    return shares
