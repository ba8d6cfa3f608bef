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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp, log, sum_in_order, total
from swsearch.errors import InputError
from swsearch.sequences.alphabet import AMINO_ACIDS, N_AMINO_ACIDS
from swsearch.sequences.source import shown_name, text_lines
from swsearch.typing import Floats
from swsearch.words import quoted

WIDTH: Final = 13
UNITS: Final = 100.0
"""Of a logarithm."""
FILE_UNITS: Final = 20.0
"""Of a logarithm in the file of the program, and in memory."""
TEXT_UNITS: Final = 1000.0 * 1.4426950408889634
"""Of a logarithm in a file that :func:`read_contexts` reads: a thousandth of a bit."""
SHARE_UNITS: Final = 65536.0
WEIGHT_UNITS: Final = 1048576.0
CENTRAL_WEIGHT: Final = 1.6
DECAY: Final = 0.85
COUNT_UNITS: Final = 64.0
"""Of an observation."""
_N_WEIGHTS: Final = 1456
"""A context whose logarithm is 14.56 below that of the best one, or lower, has a weight that is rounded to 0."""
_MULTIPLE: Final = 32
"""The number of contexts is rounded up to a multiple of it, with contexts that never have a weight."""
_NEVER: Final = 1 << 29
_TOLERANCE: Final = 0.01
"""Largest difference of a sum of probabilities from 1; thousandths of a bit cause less than 0.0004."""
_PRIOR: Final = r"PRIOR ([0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,3})?)"


@dataclass(frozen=True, eq=False)
class Contexts:
    """A library of contexts.

    Attributes
    ----------
    priors : uint8 array, shape (K,)
        -ln P_k in units of 1/20, less that of the largest prior.
    columns : uint8 array, shape (K, 13, 20)
        -ln p_kj(a) in units of 1/20.
    digest : str, optional
        The SHA-256 of the text of the file, in hexadecimal; None for the library of the program.
    """

    priors: NDArray[np.uint8]
    columns: NDArray[np.uint8]
    digest: str | None = None

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int16], NDArray[np.int32], Floats, Floats]:
        """What the native function takes: -w_j ln p_kj(a) of each place and letter, shape (13 * 20, n), -ln P_k, shape
        (n,), the weights by the difference of the logarithms, and p_k0(a), shape (n, 20).
        """
        n = -(-len(self.priors) // _MULTIPLE) * _MULTIPLE
        costs = np.zeros((WIDTH, N_AMINO_ACIDS, n), dtype=np.int16)
        for place in range(WIDTH):
            weight = CENTRAL_WEIGHT * UNITS / FILE_UNITS
            for _ in range(abs(place - WIDTH // 2)):
                weight *= DECAY
            costs[place, :, : len(self.priors)] = np.rint(weight * self.columns[:, place].T)
        priors = np.full(n, _NEVER, dtype=np.int32)
        priors[: len(self.priors)] = self.priors * (UNITS / FILE_UNITS)
        weights = np.rint(exp(np.arange(_N_WEIGHTS) / -UNITS) * WEIGHT_UNITS)
        central = np.zeros((n, N_AMINO_ACIDS))
        central[: len(self.priors)] = np.rint(exp(self.columns[:, WIDTH // 2] / -FILE_UNITS) * SHARE_UNITS)
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
    letters, for each place its number from 1 to 13 and -1000 log2 p_kj(a), a whole number, of each letter, and ``//``.
    Numbers are rounded to the units of :class:`Contexts`, by which a probability changes by at most 2.5 %.

    Raises
    ------
    InputError
        The file is not of this format or is cut short, or the probabilities of a column, or all priors, do not sum
        to 1; the message names the line.
    """
    digest = hashlib.sha256()
    lines = _lines(path, digest.update)
    _match(lines, "ContextLibrary")
    _, size = _match(lines, "SIZE ([1-9][0-9]{0,4})", "SIZE and the number of contexts, at most 99,999,")
    _match(lines, f"LENG {WIDTH}")
    priors, columns = np.empty(int(size)), np.empty((int(size), WIDTH, N_AMINO_ACIDS), dtype=np.int32)
    shares = exp(np.arange(10**5) / -TEXT_UNITS).tolist()
    for context in range(len(priors)):
        _match(lines, "ContextProfile")
        where, prior = _match(lines, _PRIOR, "PRIOR and a probability")
        priors[context] = float(prior)
        if not 0.0 < priors[context] <= 1.0:
            raise InputError(f"{where}: the prior is not above 0 and at most 1; correct it")
        for line in ("ISLOG F", f"LENG {WIDTH}", f"ALPH {N_AMINO_ACIDS}", f"PROBS {' '.join(AMINO_ACIDS)}"):
            _match(lines, line)
        for place in range(WIDTH):
            due = f"{place + 1} and {N_AMINO_ACIDS} whole numbers"
            where, values = _match(lines, f"{place + 1}((?: [0-9]{{1,5}}){{{N_AMINO_ACIDS}}})", due)
            costs = list(map(int, values.split()))
            if abs(total([shares[cost] for cost in costs]) - 1.0) > _TOLERANCE:
                raise InputError(f"{where}: the probabilities of the column do not sum to 1; correct them")
            columns[context, place] = costs
        _match(lines, "//")
    where, _ = _match(lines, "", "the end of the file")
    if abs(total(priors) - 1.0) > _TOLERANCE:
        raise InputError(f"{where}: the priors of all contexts do not sum to 1; correct them")
    return Contexts(_in_units(log(priors.max() / priors)), _in_units(columns / TEXT_UNITS), digest.hexdigest())


def _in_units(logarithms: Floats) -> NDArray[np.uint8]:
    return np.minimum(np.rint(logarithms * FILE_UNITS), 255).astype(np.uint8)


def _lines(path: str | os.PathLike[str], take: Callable[[bytes], None]) -> Iterator[tuple[str, str]]:
    """Where each line is, and its words, without names and colours; in the end, an empty line. ``take`` takes all."""
    name, number = shown_name(path), 0
    for number, line in enumerate(text_lines(path, name), 1):
        take(line.encode("utf-8", "surrogateescape"))
        words = line.split()
        if words and words[0] not in ("NAME", "COLOR"):
            yield f"{name}, line {number}", " ".join(words)
    yield f"{name}, line {number}", ""


def _match(lines: Iterator[tuple[str, str]], form: str, due: str = "") -> tuple[str, str]:
    """Where the next line is, and the part of it that ``form`` captures; ``due`` describes it for messages."""
    where, line = next(lines)
    if (found := re.fullmatch(form, line, re.ASCII)) is None:
        given = quoted(line) if line else "the end of the file"
        problem = f"{given} where {due or quoted(form)} is due"
        raise InputError(f"{where}: {problem}; give a whole library of contexts, such as context_data.lib")
    return where, found[found.lastindex or 0]
