"""The judgement of hits among domains of SCOPe, for the benchmarks of sensitivity.

FASTA headers of the domains are ``>domain class.fold.superfamily.family …``. A hit is true if the superfamily is the
same, false if the fold differs, and ignored otherwise; the domain itself is ignored. *Clean* judgement also ignores
pairs of two Rossmann-like folds (c.2-c.5, c.27, c.28, c.30, c.31) and of two β-propellers (b.66-b.70), whose domains
are probably related. :class:`Judged` has what a search is measured by:

errors, found
    Numbers of false and of true hits per query with an E-value up to each of :data:`LIMITS`.
coverage
    Share of all true pairs that precede, in the list of all hits by E-value, the points at which it has each of
    :data:`RATES` of false hits per query; None where the list has fewer.
sensitivity
    Mean share of a query's true partners before its first, and before its fifth, false hit; of queries with a partner.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

LIMITS: Final = (0.001, 0.01, 0.1, 1.0, 10.0)
RATES: Final = (0.1, 1.0, 10.0)
FALSE_HITS: Final = {"first": 1, "fifth": 5}
JUDGEMENTS: Final = ("all", "clean")
ALIKE: Final = ({f"c.{n}" for n in (2, 3, 4, 5, 27, 28, 30, 31)}, {f"b.{n}" for n in range(66, 71)})
N_RESAMPLES: Final = 1000
_SEED: Final = 39


def records(path: Path) -> Iterator[tuple[str, str]]:
    """Header and sequence of each record of a FASTA file."""
    header, letters = "", []
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        for line in file:
            if line.startswith(">"):
                if header:
                    yield header, "".join(letters)
                header, letters = line[1:].strip(), []
            else:
                letters.append(line.strip())
    if header:
        yield header, "".join(letters)


@dataclass(frozen=True)
class Judged:
    """The hits of a sample of queries, by E-value; among equal E-values, those that are not true come first.

    Attributes
    ----------
    evalue, query : numpy.ndarray
        Of each hit; the number of its query.
    true : numpy.ndarray of bool
    false : dict
        By each of :data:`JUDGEMENTS`, whether each hit is false.
    partners : numpy.ndarray of int
        The number of true pairs of each query.
    """

    evalue: np.ndarray
    query: np.ndarray
    true: np.ndarray
    false: dict[str, np.ndarray]
    partners: np.ndarray

    def per_query(self, chosen: np.ndarray) -> dict[str, float]:
        """Chosen hits per query up to each limit."""
        counts = (chosen[self.evalue <= limit].sum() for limit in LIMITS)
        return {str(limit): round(float(n / len(self.partners)), 4) for limit, n in zip(LIMITS, counts, strict=True)}

    def coverage(self, judgement: str, weights: np.ndarray | None = None) -> dict[str, float | None]:
        """The coverage at each rate; ``weights`` are those of the queries."""
        weights = np.ones(len(self.partners)) if weights is None else weights
        of_hits = weights[self.query]
        errors, found = np.cumsum(of_hits * self.false[judgement]), np.cumsum(of_hits * self.true)
        total, n_true = weights.sum(), (weights * self.partners).sum()
        shares: dict[str, float | None] = {}
        for rate in RATES:
            end = int(np.searchsorted(errors, rate * total, side="right"))
            reached = end < len(errors) or (len(errors) and errors[-1] == rate * total)
            shares[str(rate)] = (float(found[end - 1] / n_true) if end else 0.0) if reached else None
        return shares

    def before(self, judgement: str, n_false: int) -> np.ndarray:
        """The share of each query's partners that rank before its false hit of this number; NaN without partners."""
        shares = np.full(len(self.partners), np.nan)
        by_query = np.argsort(self.query, kind="stable")
        ends = np.cumsum(np.bincount(self.query, minlength=len(self.partners)))
        for query, hits in enumerate(np.split(by_query, ends[:-1])):
            if self.partners[query]:
                is_before = np.cumsum(self.false[judgement][hits]) < n_false
                shares[query] = self.true[hits][is_before].sum() / self.partners[query]
        return shares

    def figures(self, judgement: str) -> dict[str, Any]:
        """All figures."""
        coverage = self.coverage(judgement)
        return {
            "errors": self.per_query(self.false[judgement]),
            "found": self.per_query(self.true),
            "coverage": {rate: None if share is None else round(share, 4) for rate, share in coverage.items()},
            "sensitivity": {
                name: round(float(np.nanmean(self.before(judgement, n))), 4) for name, n in FALSE_HITS.items()
            },
        }

    def gain(self, other: Judged, judgement: str) -> dict[str, list[float]]:
        """How much more is found than by another search of the same queries.

        For the coverage at each rate that both lists have, and for the first false hit: the ratio less 1, and its 95 %
        interval by a paired bootstrap over the queries.
        """
        n = len(self.partners)
        rng = np.random.default_rng(_SEED)
        samples = [np.ones(n), *(np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(N_RESAMPLES))]
        shares = [np.nan_to_num(one.before(judgement, 1)) for one in (self, other)]
        ratios: dict[str, list[float]] = {f"coverage at {rate}": [] for rate in RATES} | {"first": []}
        for weights in samples:
            ours, theirs = (one.coverage(judgement, weights) for one in (self, other))
            for rate, share in ours.items():
                ratios[f"coverage at {rate}"].append(_ratio(share, theirs[rate]))
            ratios["first"].append(_ratio(*(float((weights * share).sum()) for share in shares)))
        return {
            name: [round(value - 1, 3) for value in (all_of[0], *np.nanpercentile(all_of[1:], [2.5, 97.5]).tolist())]
            for name, all_of in ratios.items()
            if not np.isnan(all_of[0])
        }


def judged(lists: Mapping[str, Iterable[tuple[str, float]]], sccs: Mapping[str, str]) -> Judged:
    """The judgement of the hits of each query: subjects and E-values, of which the best of each subject counts.

    Subjects that are not in ``sccs``, the class of each domain, are ignored.
    """
    members = Counter(_superfamily(label) for label in sccs.values())
    rows = []
    for number, (query, hits) in enumerate(lists.items()):
        best: dict[str, float] = {}
        for subject, evalue in hits:
            if subject in sccs and subject != query:
                best[subject] = min(evalue, best.get(subject, np.inf))
        superfamily, fold = _superfamily(sccs[query]), _fold(sccs[query])
        for subject, evalue in best.items():
            other = _fold(sccs[subject])
            is_alike = any({fold, other} <= folds for folds in ALIKE)
            is_true = _superfamily(sccs[subject]) == superfamily
            rows.append((evalue, is_true, other != fold, other != fold and not is_alike, number))
    rows.sort(key=lambda row: row[:2])
    evalue, true, false, clean, query_of = np.array(rows, dtype=float).reshape(-1, 5).T
    partners = np.array([members[_superfamily(sccs[query])] - 1 for query in lists])
    return Judged(
        evalue,
        query_of.astype(int),
        true.astype(bool),
        {"all": false.astype(bool), "clean": clean.astype(bool)},
        partners,
    )


def _ratio(one: float | None, other: float | None) -> float:
    """NaN if either is unknown, or nothing is found by the other."""
    return np.nan if one is None or not other else one / other


def _superfamily(label: str) -> str:
    return label.rsplit(".", 1)[0]


def _fold(label: str) -> str:
    return label.rsplit(".", 2)[0]
