"""The domains of proteins by a library of families.

The proteins are the database, and each model is the query of a search, which scores all of them exactly. Those whose
E-value is not far above the limit get a Forward score, and those that may be reported by it are decoded
(:mod:`swsearch.domains.decoding`). Scores and E-values are those of HMMER's ``hmmscan``: a protein with S bits has E =
Z exp(-λ (S - τ)), where Z is the number of models, and λ and τ are the statistics of the model in its file.

What is reported of a model with gathering thresholds is what reaches them; of other models, what has a small E-value.
Of two domains of one protein that share more than half of the residues of the shorter alignment, the one with the lower
score is left out, so that related families do not repeat each other. Residues count that are aligned to a position of
the model, so a domain may lie within another one.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from swsearch.database.opening import Databases, opened
from swsearch.database.partition import Partition
from swsearch.deterministic import exp, log
from swsearch.domains.decoding import DecodedProtein, Decoder, Domain, with_mean_scores
from swsearch.domains.model_library import ModelLibrary
from swsearch.engine.registry import Machine
from swsearch.errors import InputError
from swsearch.options import DOMAIN_EVALUE, EVERY_SUBJECT, option_of
from swsearch.query.hmm import FamilyModel
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher, searcher_on
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import split_header
from swsearch.sequences.source import refuse_repeated_pipes, shown_name
from swsearch.threads import Threads
from swsearch.typing import Progress, SubjectIndex
from swsearch.words import counted

SEARCHED: Final = 30.0
"""How many times the largest E-value of a reported protein the one in the search may be. Of 13,779 families that
``hmmsearch`` finds in 30,000 proteins up to an E-value of 0.01, 38 are not reported with this factor, and 1,371 others
are (``benchmarks/results/domains.json``)."""
NEAR_BITS: Final = 4.0
"""By how many bits the score of :meth:`Decoder.expected_bits` may be below the reported one; 3.15 were seen."""
LEAST_SEARCHED: Final = 0.001
"""The share of unrelated proteins that the search of a model finds at least. With 20,000 as the number of models, the
families that 120 models have in 30,000 proteins were the same as without a limit."""

_FEW: Final = 32
"""Proteins that are decoded without a first estimate, which would take longer: so few do not fill its vectors."""
_MODELS_AT_ONCE: Final = 4
"""Models whose proteins are decoded at the same time, so that no thread waits for the longest protein of one."""


_Searched = tuple[int, Callable[[], FamilyModel], SubjectIndex]
"""The number of a model, what reads it, and the proteins that its search found."""


@dataclass(frozen=True)
class DomainLimits:
    """Which families and domains are reported.

    Attributes
    ----------
    evalue : float
        Largest E-value of a protein, and of a domain, for families without thresholds.
    thresholds : str
        Thresholds of the models that decide in place of the E-value: ``GA``, ``TC``, ``NC``, or ``none``.
    overlaps : bool
        Whether domains are reported that overlap better ones.

    Raises
    ------
    InputError
        A value is out of its range.
    """

    evalue: float = DOMAIN_EVALUE
    thresholds: str = "GA"
    overlaps: bool = False

    def __post_init__(self) -> None:
        for one in fields(self):
            option_of(one.name).check(getattr(self, one.name))

    def searched_evalue(self, n_models: int, n_proteins: int) -> float:
        """The largest E-value in the search of one model, whose E-values count proteins."""
        return max(LEAST_SEARCHED, SEARCHED * self.evalue / max(1, n_models)) * n_proteins


@dataclass(frozen=True)
class Family:
    """What a report says about a model; ``number`` is its place in the library, from 0."""

    number: int
    name: str
    accession: str
    description: str
    length: int


@dataclass(frozen=True, eq=False)
class FoundDomain:
    """A domain of a protein.

    ``evalue`` is the expected number of domains with this score or a higher one, in a protein and all models, and
    ``conditional_evalue`` the same among the models that are reported for the protein. ``number`` is its place among
    the ``n_domains`` reported domains of its family in the protein, from 1.
    """

    domain: Domain
    evalue: float
    conditional_evalue: float = 0.0
    number: int = 0
    n_domains: int = 0


@dataclass(frozen=True, eq=False)
class FoundFamily:
    """A family of a protein; ``domains`` are in the order of its residues."""

    family: Family
    bits: float
    bias: float
    evalue: float
    domains: tuple[FoundDomain, ...]


@dataclass(frozen=True, eq=False)
class AnnotatedProtein:
    """A protein and its families, the smallest E-value first."""

    header: str
    length: int
    families: tuple[FoundFamily, ...]


@dataclass(frozen=True, eq=False)
class Annotation:
    """A library, whose number of models is Z, and whose families are looked for in the proteins of a database."""

    families: ModelLibrary
    searcher: Searcher
    limits: DomainLimits

    @property
    def facts(self) -> dict[str, str]:
        """What a report says about it."""
        run = self.searcher.run_info("")
        n_models, paths = self.families.n_models, self.families.paths
        families = f"{counted(n_models, 'model')} of {', '.join(map(shown_name, paths))}"
        return {"Proteins": run.database.name, "Families": families, "Program": run.program}

    @property
    def cells(self) -> int:
        """Number of cells of the alignment matrices of all models with all proteins."""
        return self.families.n_positions * self.searcher.database.n_residues

    def proteins(self, progress: Progress | None = None) -> Iterator[AnnotatedProtein]:
        """All proteins of the database, in its order, each with its families. The call searches all models.

        ``progress`` is called with the number of cells completed since the last call.

        Raises
        ------
        InputError
            A file cannot be read, or a model has no statistics.
        """
        return self._annotated(self._found(progress))

    def _annotated(self, found: dict[int, list[FoundFamily]]) -> Iterator[AnnotatedProtein]:
        database = self.searcher.database
        lengths = database.lengths(np.arange(database.n_subjects, dtype=np.uint32)).tolist()
        for subject, length in enumerate(lengths):
            families = found.pop(subject, [])
            if not self.limits.overlaps:
                families = without_overlaps(families)
            yield AnnotatedProtein(database.header(subject), length, _in_order(families, self.families.n_models))

    def _found(self, progress: Progress | None) -> dict[int, list[FoundFamily]]:
        """The families of each protein that has any, in the order of the library."""
        found: defaultdict[int, list[FoundFamily]] = defaultdict(list)
        with Threads(min(_MODELS_AT_ONCE, self.searcher.threads)) as threads:
            for of_model in threads.in_order(self._families, self._searched(progress)):
                for subject, one in of_model:
                    found[subject].append(one)
        return found

    def _searched(self, progress: Progress | None) -> Iterator[_Searched]:
        """Each model, and the proteins that its search found."""
        waiting: deque[tuple[int, Callable[[], FamilyModel]]] = deque()
        for subjects in self.searcher.passing(self._queries(waiting), progress):
            yield *waiting.popleft(), subjects

    def _families(self, searched: _Searched) -> list[tuple[int, FoundFamily]]:
        """The proteins that have a family, with what is reported of it."""
        number, read, subjects = searched
        found: list[tuple[int, FoundFamily]] = []
        if not subjects.size:
            return found
        model = read()
        name, description = split_header(model.query.header)
        family = Family(number, name, model.accession, description, len(model.query))
        threads, decoder, least_bits = self.searcher.threads, Decoder(model), self._least_bits(model)
        for rows, residues, starts, lengths in self.searcher.database.stored_ranges(subjects):
            near = part = Partition(residues, starts, lengths, subjects[rows])
            if len(part) > _FEW:
                near = part[np.flatnonzero(decoder.expected_bits(part, threads) >= least_bits - NEAR_BITS)]
            several = decoder.decode(near, least_bits - 1.0, threads)
            for subject, decoded in zip(near.subject_index.tolist(), several, strict=True):
                one = self._reported(family, model, decoded)
                if one is not None:
                    found.append((subject, one))
        return found

    def _queries(self, waiting: deque[tuple[int, Callable[[], FamilyModel]]]) -> Iterator[PositionSpecificQuery]:
        """The queries of all models; the numbers of the models, and what reads them, are appended to ``waiting``."""
        for number, (query, read) in enumerate(self.families.models()):
            self.searcher.check(query)
            waiting.append((number, read))
            yield replace(query, scores=with_mean_scores(query.scores))

    def _least_bits(self, model: FamilyModel) -> float:
        """The least score of a protein and of a domain that is reported."""
        thresholds = model.thresholds.get(self.limits.thresholds)
        if thresholds is not None:
            return min(thresholds)
        assert model.forward_statistics is not None
        location, slope = model.forward_statistics
        if self.limits.evalue >= self.families.n_models:  # the E-value of every score
            return -np.inf
        return location + float(log(self.families.n_models / self.limits.evalue)) / slope

    def _reported(self, family: Family, model: FamilyModel, decoded: DecodedProtein) -> FoundFamily | None:
        """What is reported of a family in a protein."""
        assert model.forward_statistics is not None
        location, slope = model.forward_statistics
        bits = np.array([decoded.bits, *(domain.bits for domain in decoded.domains)])
        evalue, *evalues = (self.families.n_models * exp(-slope * np.maximum(bits - location, 0.0))).tolist()
        thresholds = model.thresholds.get(self.limits.thresholds)

        def passes(score: float, its_evalue: float, threshold: float) -> bool:
            return its_evalue <= self.limits.evalue if thresholds is None else score >= threshold

        of_protein, of_domain = thresholds or (0.0, 0.0)
        domains = tuple(
            FoundDomain(domain, its_evalue)
            for domain, its_evalue in zip(decoded.domains, evalues, strict=True)
            if passes(domain.bits, its_evalue, of_domain)
        )
        if not domains or not passes(decoded.bits, evalue, of_protein):
            return None
        return FoundFamily(family, decoded.bits, decoded.bias, evalue, domains)


@contextmanager
def open_annotation(
    proteins: Databases, models: Sequence[str | os.PathLike[str]], limits: DomainLimits, machine: Machine
) -> Iterator[Annotation]:
    """The families of some files of models in the proteins of a database, or of a sequence file.

    Parameters
    ----------
    proteins : path or PackedDatabase
        As for :func:`swsearch.database.opening.open_database`.
    models : sequence of paths
        They are read twice; ``-`` is standard input.
    limits : DomainLimits
    machine : Machine

    Raises
    ------
    InputError
        A file cannot be read, the sequences are not proteins, or a limit is out of range.
    DatabaseError
        The database cannot be opened.
    EngineUnavailable
        The requested engine cannot be used on this machine.
    """
    refuse_repeated_pipes(models)
    library = ModelLibrary(models, SearchOptions().scheme(PROTEIN).matrix)
    with opened(proteins) as database:
        if database.alphabet is not PROTEIN:
            raise InputError(f"{database.name} is {database.alphabet.name}; domains are found in proteins")
        evalue = limits.searched_evalue(library.n_models, database.n_subjects)
        with searcher_on(machine, database, SearchOptions(evalue=evalue, top=EVERY_SUBJECT)) as searcher:
            yield Annotation(library, searcher, limits)


def without_overlaps(families: Sequence[FoundFamily]) -> list[FoundFamily]:
    """The families of a protein with those domains that do not overlap better ones."""
    taken: list[tuple[int, frozenset[int]]] = []
    kept: defaultdict[int, list[FoundDomain]] = defaultdict(list)
    every = [(place, one) for place, found in enumerate(families) for one in found.domains]
    for place, one in sorted(every, key=lambda each: (-each[1].domain.bits, each[0], each[1].domain.first)):
        residues = frozenset(one.domain.pairs[:, 1].tolist())
        if all(2 * len(residues & other) <= min(len(residues), n_other) for n_other, other in taken):
            taken.append((len(residues), residues))
            kept[place].append(one)
    return [
        replace(found, domains=tuple(sorted(kept[place], key=lambda one: one.domain.first)))
        for place, found in enumerate(families)
        if place in kept
    ]


def _in_order(families: Sequence[FoundFamily], n_families: int) -> tuple[FoundFamily, ...]:
    """The families by E-value, with numbered domains."""
    numbered = []
    for found in sorted(families, key=lambda one: (one.evalue, -one.bits, one.family.number)):
        n_domains = len(found.domains)
        domains = tuple(
            replace(
                one,
                number=number,
                n_domains=n_domains,
                conditional_evalue=one.evalue * len(families) / n_families,
            )
            for number, one in enumerate(found.domains, 1)
        )
        numbered.append(replace(found, domains=domains))
    return tuple(numbered)
