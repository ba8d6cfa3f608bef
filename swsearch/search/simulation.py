"""λ and K of scoring schemes without published parameters, estimated from the scores of random sequences.

:func:`estimate` returns the parameters of the exact theory if gaps cost too much to occur, and simulated
ones otherwise.

The simulation scores 256 random queries against 256 random subjects of 1,000 residues of natural composition, and fits
the extreme-value distribution, with the same finite-size area as E-values, to the 65,536 scores. The mean length of an
alignment is estimated from alignments of some of the pairs. The random letters are computed by a generator defined in
this module and the scores are exact, so the parameters are the same on every machine; they are rounded to their
significant digits, as published ones are. A scheme whose scores grow with the length instead of its logarithm (the
linear phase: gaps are so cheap that any two sequences align over their complete length) has no such distribution and is
refused.

Simulated parameters are cached in memory and in ``$XDG_CACHE_HOME/swsearch/statistics`` (``~/.cache`` if that variable
is not set); the folder may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.deterministic import exp, expm1, log
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import ScoreRequest
from swsearch.file_registry import registry
from swsearch.folders import user_cache, write_complete
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.extreme_value import ExtremeValueFit, fit_extreme_value
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import NoStatistics, estimated_statistics
from swsearch.scoring.scheme import ScoringScheme
from swsearch.scoring.ungapped import Ungapped, background, matrix_parameters
from swsearch.search.frames import Frame
from swsearch.typing import Codes, Floats

METHOD: Final = 2
"""Version of the method, a part of the cache key. It must be increased with every change below that alters a result."""

LENGTH: Final = 1000
N_SEQUENCES: Final = 256
SHORT_LENGTH: Final = 250
N_SHORT: Final = 64
LOGARITHMIC_GROWTH: Final = 1.7
"""Largest accepted ratio of the mean score at 1,000 residues to that at 250. It is 1.28 to 1.43 for published schemes,
and 4 if scores grow in proportion to the length; BLOSUM62 has 1.53 with gaps 8/1 and 1.92 with 7/1."""

_N_ALIGNED_QUERIES: Final = 32
_RARE_GAPS: Final = 1e-3
_ROOM_FOR_GAPS: Final = 200.0  # positions, in both sequences, at which an alignment of 100 columns may have a gap
_UNIFORM_STEP: Final = 1.0 / 2**53
_QUERY_SEED: Final = 1
_SUBJECT_SEED: Final = 2


@dataclass(frozen=True)
class Simulated:
    """The result of a simulation.

    ``growth`` is the ratio of the mean score at 1,000 residues to that at 250; above :data:`LOGARITHMIC_GROWTH`, λ and
    K do not exist and are 0. ``a`` is the mean aligned length per unit of score, ``lam_error`` the relative standard
    error of λ.
    """

    growth: float
    lam: float
    k: float
    a: float
    lam_error: float


def estimate(scheme: ScoringScheme, unpublished: str, threads: int | None = None) -> Statistics | NoStatistics:
    """Statistics of a scheme without published ones, which ``unpublished`` states; or the reason why there are none.

    A simulation takes some seconds of CPU time, once per scheme, by default on all cores; the number of threads does
    not affect the result.
    """
    ungapped = matrix_parameters(scheme.matrix)
    if ungapped is None:
        return NoStatistics(
            f"{unpublished}; nor do any exist: random residues score 0 or more on average with {scheme.matrix.name}, "
            "so longer sequences always score more"
        )
    if _gaps_are_rare(scheme, ungapped):
        source = f"ungapped Karlin-Altschul theory, {scheme}: gaps cost too much to occur by chance"
        return estimated_statistics(scheme, ungapped, ungapped.lam, ungapped.k, ungapped.a, source, gapped=False)
    found = _simulated(scheme, threads)
    if found.growth > LOGARITHMIC_GROWTH:
        return NoStatistics(
            f"{unpublished}; nor can they be estimated: with these gap costs scores grow with the length of the "
            f"sequences ({found.growth:.1f}-fold from {SHORT_LENGTH} to {LENGTH} random residues), so that no score is "
            "significant; choose larger gap costs"
        )
    source = (
        f"simulated with {N_SEQUENCES * N_SEQUENCES:,} pairs of random sequences of {LENGTH:,} residues, {scheme}; "
        f"standard error of lambda {found.lam_error:.1%}"
    )
    return estimated_statistics(scheme, ungapped, found.lam, found.k, found.a, source)


def _gaps_are_rare(scheme: ScoringScheme, ungapped: Ungapped) -> bool:
    """Whether gaps change K by less than one part in a thousand."""
    chance = float(exp(-ungapped.lam * scheme.gap.first))
    longer = -float(expm1(-ungapped.lam * scheme.gap.extend))
    return longer > 0 and _ROOM_FOR_GAPS * chance / longer < _RARE_GAPS


# --- Random sequences ---


def random_letters(seed: int, n: int, frequencies: Floats) -> Codes:
    """``n`` independent letters, the same on every machine and with every version of NumPy.

    The generator is SplitMix64 (Steele, Lea and Flood 2014, doi 10.1145/2714064.2660195): the i-th number is a hash of
    ``seed * 2**32 + i``, and its upper 53 bits define a uniform number in [0, 1).

    >>> random_letters(1, 8, np.array([0.25, 0.25, 0.25, 0.25])).tolist()
    [1, 3, 2, 0, 2, 2, 0, 1]
    """
    state = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * _UNIFORM_STEP
    bounds = np.cumsum(frequencies)
    return np.searchsorted(bounds[:-1], uniform, side="right").astype(np.uint8)


def _random_sequences(seed: int, frequencies: Floats) -> list[Codes]:
    return list(random_letters(seed, N_SEQUENCES * LENGTH, frequencies).reshape(N_SEQUENCES, LENGTH))


def score_all(profiles: list[QueryProfile], subjects: Partition, threads: int | None = None) -> NDArray[np.int64]:
    """Scores of all profiles with all subjects; int64, shape (n_profiles, n_subjects), subjects in stored order."""
    scores = np.empty((len(profiles), len(subjects)), dtype=np.int64)
    with CpuEngine(threads) as engine:
        for row, profile in enumerate(profiles):
            (block,) = engine.score([ScoreRequest(profile)], subjects)
            scores[row] = block.score[np.argsort(block.subject_index)][subjects.subject_index]
    return scores


# --- Parameters from scores ---


def simulate(scheme: ScoringScheme, threads: int | None = None) -> Simulated:
    """Simulate a scheme, regardless of published parameters and of the cache.

    Raises :class:`ValueError` for a scheme without ungapped parameters
    (:func:`swsearch.scoring.ungapped.matrix_parameters`).
    """
    frequencies = background(scheme.alphabet)
    ungapped = matrix_parameters(scheme.matrix)
    if ungapped is None:
        raise ValueError(f"{scheme} has no ungapped parameters")
    queries = _random_sequences(_QUERY_SEED, frequencies)
    sequences = _random_sequences(_SUBJECT_SEED, frequencies)
    subjects = Partition.pack(sequences)

    short_queries = [sequence_profile(query[:SHORT_LENGTH], scheme) for query in queries[:N_SHORT]]
    short_subjects = Partition.pack([sequence[:SHORT_LENGTH] for sequence in sequences[:N_SHORT]])
    profiles = [sequence_profile(query, scheme) for query in queries]
    few = score_all(profiles[:N_SHORT], Partition.pack(sequences[:N_SHORT]), threads)
    fewer = score_all(short_queries, short_subjects, threads)
    growth = int(few.sum(dtype=np.int64)) / int(fewer.sum(dtype=np.int64))  # both have the same number of scores
    if growth > LOGARITHMIC_GROWTH:
        return Simulated(_digits(growth, 3), 0.0, 0.0, 0.0, 0.0)

    scores = score_all(profiles, subjects, threads)
    a = _length_per_score(queries, profiles, scores, subjects, scheme, ungapped)
    fit = _fit(scores, scheme, ungapped, a)
    return Simulated(
        _digits(growth, 3), _digits(fit.lam, 4), _digits(float(exp(fit.log_k)), 3), a, _digits(fit.lam_error, 2)
    )


def _length_per_score(
    queries: list[Codes],
    profiles: list[QueryProfile],
    scores: NDArray[np.int64],
    subjects: Partition,
    scheme: ScoringScheme,
    ungapped: Ungapped,
) -> float:
    """Mean aligned length per unit of score, from alignments of pairs that score above the median.

    The mean length at score S is ``a * S + 2 G (a_u - a)``, where G is the cost of a gap's first residue; this equation
    is solved for a at the mean score. If the mean score is too close to 2 G for that, gaps are rare, and the length is
    assumed to be proportional to the score.
    """
    median = float(np.median(scores))
    twice_lengths: list[int] = []
    aligned_scores: list[int] = []
    for row in range(_N_ALIGNED_QUERIES):
        high = np.flatnonzero(scores[row] > median)
        query = Frame("plus", 0, queries[row], profiles[row])
        best = [several[0] for several in LocalAligner(scheme.alphabet).paths(query, subjects[high])]
        twice_lengths += [one.query_end - one.query_start + one.subject_end - one.subject_start for one in best]
        aligned_scores += scores[row, high].tolist()
    length, score = sum(twice_lengths) / (2 * len(twice_lengths)), sum(aligned_scores) / len(aligned_scores)
    both = 2.0 * scheme.gap.first
    a = (length - both * ungapped.a) / (score - both) if score > 1.5 * both else length / score
    return _digits(max(a, ungapped.a), 3)


def _fit(scores: NDArray[np.int64], scheme: ScoringScheme, ungapped: Ungapped, a: float) -> ExtremeValueFit:
    """λ and K, fitted with the area of E-values. The lower bounds of the area depend on λ, so the fit is iterated."""
    counts = np.bincount(scores.ravel())
    lowest = int(np.flatnonzero(counts)[0])
    edges = np.arange(lowest + 1, len(counts))
    cells = np.concatenate(([counts[lowest]], counts[lowest + 1 :]))
    lam = ungapped.lam
    while True:
        trial = estimated_statistics(scheme, ungapped, lam, 1.0, a, "")
        # E within one subject is K * area * exp(-lam * S); with K = 1, log(E) + lam * S is the logarithm of the area.
        log_area = log(trial.evalue(edges, LENGTH, LENGTH, LENGTH)) + lam * edges
        fit = fit_extreme_value(edges.astype(np.float64), cells, log_area)
        if abs(fit.lam - lam) < 1e-6 * lam:
            return fit
        lam = fit.lam


def _digits(value: float, digits: int) -> float:
    """``value`` rounded to ``digits`` significant digits."""
    return float(f"{value:.{digits}g}")


# --- The cache ---


def cache_folder() -> Path:
    """The folder of the cached parameters."""
    return user_cache("statistics")


def _cache_path(scheme: ScoringScheme) -> Path:
    digest = hashlib.sha256(scheme.matrix.scores.tobytes())
    digest.update(f"{scheme.alphabet.name} {scheme.gap} method {METHOD}".encode())
    return cache_folder() / f"{digest.hexdigest()[:32]}.json"


@lru_cache(maxsize=64)
def _simulated(scheme: ScoringScheme, threads: int | None) -> Simulated:
    """The result of :func:`simulate`, from the cache if possible; a cache that cannot be used is not an error."""
    path = _cache_path(scheme)
    registry().read(path, is_source=False)
    with contextlib.suppress(OSError, ValueError, TypeError):  # the file is missing or damaged
        return Simulated(**json.loads(path.read_text("utf-8")))
    found = simulate(scheme, threads)
    with contextlib.suppress(OSError):
        write_complete(path, json.dumps(asdict(found)).encode())
    return found
