"""Random searches for the test of complete lists: databases of data that hurt, and searches of them in many ways.

A :class:`World` is one small database with a few queries and one scoring scheme; seed and number determine it. A
:class:`Case` is one search of it: options, and the way in which it is run. :meth:`World.problems` runs a case and
compares each list with :mod:`tests.search.complete_lists`. Databases are shared by the cases of a world, because an
index takes longer than a search.

The data: runs of one letter, repeats, few letters, X, one residue, equal subjects, relatives beside biased segments,
lower case, biased reading frames, and scores beyond 8 and 16 bits. Some databases have so many subjects that a search
without a cut by E-value begins with a provisional one. Limits are often E-values and scores of the complete list
itself, because a fault shows where a value equals its limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

import swsearch
from swsearch.database import segment_writer
from swsearch.database.changes import add_to_database
from swsearch.database.reader import PackedDatabase
from swsearch.engine.cpu.engine import CpuEngine, usable_instruction_sets
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.protocol import ScoreEngine
from swsearch.engine.reference import ReferenceEngine
from swsearch.engine.registry import Machine
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo, n_left_out
from swsearch.hits.shards import AskedQueries, Shard
from swsearch.merge import Source, plan_merge
from swsearch.query.profile import PositionSpecificQuery, SubjectRecord, with_other_letters
from swsearch.report.narrowing import Narrowing
from swsearch.search import threshold
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import CODE_MASK, DNA, PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.store.store import Store
from tests.engine.cuda.emulation.emulated_device import opener
from tests.search.complete_lists import CompleteLists, ExpectedList, essence, expected_list, lowest_score
from tests.search.test_slices import SlicedSearch
from tests.support import ROBINSON_FREQUENCIES, indexed, write_fasta

AMINO_ACIDS: Final = "ARNDCQEGHILKMFPSTWYV"
MOTIFS: Final = ("Q", "A", "QN", "GS", "EK", "P", "PQ", "LLVIAF", "RS", "GPP", "HQ", "DE", "X", "W")
"""Runs and repeats of proteins."""
DNA_MOTIFS: Final = ("A", "T", "CAG", "GC", "AT", "GGC", "N", "TTA", "ACGT")
ALL: Final = 100_000
"""More subjects and alignments than any of these databases has."""
INFINITE: Final = math.inf
GIVEN, SUBJECTS, PROFILES = "given", "subjects", "profiles"
NARROWED: Final = "narrowed"
LOWEST: Final = ("min_score", "min_bits", "min_identity", "min_query_coverage", "min_subject_coverage")
SENSITIVE_SHARE: Final = 0.12
"""Share of the searches that are sensitive, where they may be; emulated GPUs take too long for them."""


@dataclass(frozen=True)
class Case:
    """One search of a world.

    Attributes
    ----------
    options : dict
        Options in addition to those of the world's scheme.
    way : str
        How it is searched, one of :data:`WAYS`, or ``narrowed``: as a report of the world's stored run.
    queries : str
        ``given``; ``subjects``, which are compared only with those before them, as in a search of all against all; or
        ``profiles``.
    """

    options: dict[str, Any]
    way: str
    queries: str = GIVEN


@dataclass(frozen=True)
class Kind:
    """A kind of worlds.

    Attributes
    ----------
    options : tuple of dict
        The scoring and translation, one of which is drawn.
    n_subjects, subject_length, query_length : (int, int)
        Ranges, both ends included.
    evalue : float
        Largest E-value of its searches; lower scores than it needs are not computed for the complete list.
    """

    options: tuple[dict[str, Any], ...]
    n_subjects: tuple[int, int]
    subject_length: tuple[int, int]
    query_length: tuple[int, int]
    evalue: float = INFINITE


KINDS: Final = {
    "low complexity": Kind(
        (
            {}, {}, {"matrix": "BLOSUM80", "gap_open": 10, "gap_extend": 1},
            {"matrix": "PAM30", "gap_open": 9, "gap_extend": 1},
        ),
        (20, 230), (1, 18), (1, 22),
    ),
    "biased queries": Kind(({},), (300, 700), (3, 14), (10, 40)),
    "domains": Kind(
        ({}, {}, {"matrix": "BLOSUM45", "gap_open": 14, "gap_extend": 2}), (20, 225), (1, 44), (24, 56), 20.0,
    ),
    "equal": Kind(({}, {"gap_open": 16383, "gap_extend": 1}), (20, 230), (1, 9), (1, 12)),
    "bases": Kind(({}, {}, {"match": 1, "mismatch": -2}, {"match": 5, "mismatch": -4}), (20, 215), (1, 18), (1, 20)),
    "long bases": Kind(
        ({"match": 127, "mismatch": -127, "gap_open": 381, "gap_extend": 254},), (8, 30), (1, 330), (200, 330), 1e-6,
    ),
    "translated queries": Kind(({"translate": "query"},), (20, 205), (1, 11), (3, 33)),
    "translated subjects": Kind(({"translate": "subject"},), (20, 205), (1, 33), (1, 11)),
    "both translated": Kind(({"translate": "both"},), (12, 40), (1, 30), (3, 30), 1e4),
    "no statistics": Kind(
        ({"match": 5, "mismatch": -1, "gap_open": 5, "gap_extend": 2},), (20, 205), (1, 14), (1, 14),
    ),
}  # fmt: skip
ORDER: Final = (
    "low complexity", "domains", "biased queries", "bases", "domains", "low complexity", "equal", "translated queries",
    "low complexity", "translated subjects", "domains", "both translated", "no statistics", "low complexity",
    "biased queries", "long bases",
)  # fmt: skip
"""The kinds of worlds, used in turn."""


class Letters:
    """Draws sequences of one alphabet."""

    def __init__(self, rng: np.random.Generator, is_protein: bool) -> None:
        self.rng = rng
        self.is_protein = is_protein
        self.motifs = MOTIFS if is_protein else DNA_MOTIFS
        self.favourites = [str(rng.choice(self.motifs)) for _ in range(3)]
        self.domain = self.natural(int(rng.integers(12, 28)))

    def natural(self, length: int) -> str:
        """Unrelated residues."""
        if not self.is_protein:
            return "".join(self.rng.choice(list("ACGT"), length))
        frequencies = ROBINSON_FREQUENCIES / ROBINSON_FREQUENCIES.sum()
        return "".join(self.rng.choice(list(AMINO_ACIDS), length, p=frequencies))

    def repeat(self, length: int) -> str:
        """A run of one letter, or a repeat, mostly one of those that the world prefers."""
        motif = str(self.rng.choice(self.favourites if self.rng.random() < 0.7 else self.motifs))
        return (motif * length)[:length]

    def mixture(self, length: int) -> str:
        """Two or three letters in any order."""
        letters = list(str(self.rng.choice(self.favourites)) + str(self.rng.choice(self.motifs)))
        return "".join(self.rng.choice(letters, length))

    def biased(self, length: int) -> str:
        """A run with some other residues, as in the proteins that an adjustment raises most."""
        run, other = self.repeat(length), self.natural(length)
        share = self.rng.choice((0.0, 0.1, 0.3, 0.5))
        return "".join(new if self.rng.random() < share else old for old, new in zip(run, other, strict=True))

    def relative(self, length: int) -> str:
        """A part of the world's domain with substitutions and perhaps a gap."""
        whole = list(self.domain)
        other = self.natural(len(whole))
        rate = self.rng.choice((0.0, 0.1, 0.3, 0.5))
        changed = [new if self.rng.random() < rate else old for old, new in zip(whole, other, strict=True)]
        if self.rng.random() < 0.3 and len(changed) > 4:
            del changed[int(self.rng.integers(1, len(changed) - 1))]
        return "".join(changed)[:length]

    def sequence(self, length: int) -> str:
        """One to three pieces; 1 letter at least."""
        pieces: list[str] = []
        n_pieces = int(self.rng.choice((1, 1, 2, 3)))
        for _ in range(n_pieces):
            kind = self.rng.choice(("repeat", "repeat", "mixture", "natural", "relative"))
            pieces.append(getattr(self, str(kind))(max(1, length // n_pieces)))
        return "".join(pieces)[: max(1, length)]

    def lowered(self, letters: str) -> str:
        """The letters with a part in lower case, in half of the cases."""
        if self.rng.random() < 0.5:
            return letters
        first, last = sorted(self.rng.integers(0, len(letters) + 1, 2).tolist())
        return letters[:first] + letters[first:last].lower() + letters[last:]


EVERY: Final = 5
"""One world of so many has subjects that are part of others."""


class World:
    """One database with its queries; seed and number determine it.

    Parameters
    ----------
    seed, number : int
    folder : Path
        An empty folder for the databases and the store.

    A context manager: it closes its databases.
    """

    def __init__(self, seed: int, number: int, folder: Path) -> None:
        self.seed, self.number, self.folder = seed, number, folder
        self._opened = ExitStack()
        self._opened.enter_context(patch.object(segment_writer, "SHORTEST_PART", 16))
        self._opened.enter_context(patch.object(threshold, "SELECTIVE_SHARE", np.inf))
        self.rng = np.random.default_rng([seed, number])
        self._of_parts = np.random.default_rng([seed, number, 1])
        rng = self.rng
        self.kind_name = ORDER[number % len(ORDER)]
        self.kind = KINDS[self.kind_name]
        self.scheme_options = self.kind.options[rng.integers(len(self.kind.options))]
        scoring = SearchOptions(**self.scheme_options)
        is_dna = self.kind_name in ("bases", "long bases", "no statistics")
        subjects_are_dna = is_dna or scoring.translate in ("subject", "both")
        queries_are_dna = is_dna or scoring.translate in ("query", "both")
        self.alphabet = DNA if subjects_are_dna else PROTEIN
        letters = Letters(rng, not subjects_are_dna)
        self.records = self._records(letters)
        of_queries = letters if queries_are_dna == subjects_are_dna else Letters(rng, not queries_are_dna)
        self.queries = self._queries(of_queries, "dna" if queries_are_dna else "protein")
        self.query_sets = self._query_sets()
        self.lists = self._lists()
        self.treatment = self._treatment()
        self.counts: Counter[str] = Counter()
        self.parts = self._parts()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    # --- its sequences ---

    def _records(self, letters: Letters) -> list[tuple[str, str]]:
        rng = self.rng
        fewest, most = self.kind.n_subjects
        n_subjects = int(rng.integers(fewest, most, endpoint=True))
        if most > 200 > fewest + 100:  # many have enough for a provisional cut, and none has many more
            n_subjects = int(rng.integers(192, most, endpoint=True) if rng.random() < 0.5 else rng.integers(fewest, 80))
        shortest, longest = self.kind.subject_length
        found: list[str] = []
        while len(found) < n_subjects:
            length = int(rng.integers(shortest, longest, endpoint=True))
            if self.kind_name == "domains" and rng.random() < 0.5:
                one = letters.repeat(length // 2) + letters.relative(length) if rng.random() < 0.5 else letters.domain
            elif self.kind_name == "long bases" and rng.random() < 0.5:
                one = letters.domain if found else letters.natural(longest)
                letters.domain = letters.domain if found else one
            elif self.kind_name == "equal":
                one = letters.mixture(length)
            elif self.kind_name == "biased queries":
                one = letters.natural(length) if rng.random() < 0.9 else letters.biased(length)
            else:
                one = letters.sequence(length)
            copies = int(rng.choice((1, 1, 1, 2, 7)))
            found += [one] * copies
        if self.number % EVERY == EVERY - 2:
            found = [self._part(one) for one in found]
        order = rng.permutation(n_subjects)
        return [(f"s{place} subject", found[index]) for place, index in enumerate(order.tolist())]

    def _part(self, one: str) -> str:
        """A sequence or, for every second one, a part of it; of its copies, some are whole."""
        begin, length = self._of_parts.integers(0, 6), self._of_parts.integers(1, len(one) + 1)
        return one[begin:][:length] or one if self._of_parts.random() < 0.5 else one

    def _queries(self, letters: Letters, alphabet: str) -> list[SequenceRecord]:
        rng = self.rng
        shortest, longest = self.kind.query_length
        if self.alphabet.name == alphabet:
            some = [self.records[index][1] for index in rng.integers(0, len(self.records), 2)]
        else:
            some = []
        found = []
        for number in range(2):
            length = int(rng.integers(shortest, longest, endpoint=True))
            kind = rng.random()
            if self.kind_name == "domains" and kind < 0.7:
                biased = letters.repeat(int(rng.integers(4, 26)))
                text = biased + letters.domain if rng.random() < 0.7 else letters.domain + biased
            elif self.kind_name == "long bases" and kind < 0.7:
                text = letters.domain
            elif self.kind_name == "biased queries" and kind < 0.9:
                text = letters.biased(length)
            elif some and kind < 0.3:
                text = some[number]
            else:
                text = letters.sequence(length)
            text = (text + letters.natural(shortest))[: max(longest, shortest)] if len(text) < shortest else text
            text = text[: 3 * longest]
            found.append(swsearch.sequence(letters.lowered(text), alphabet, header=f"q{number}"))
        return found

    def _query_sets(self) -> dict[str, list[SequenceRecord]]:
        sets = {GIVEN: self.queries}
        if "translate" not in self.scheme_options:
            indices = self.rng.integers(0, len(self.records), 2).tolist()
            sets[SUBJECTS] = [
                SubjectRecord(header, self.alphabet.encode(letters), self.alphabet, index)
                for index, (header, letters) in ((index, self.records[index]) for index in indices)
            ]
        if self.queries[0].alphabet is PROTEIN and self.scheme_options.get("translate") != "query":
            sets[PROFILES] = [self._profile(query) for query in self.queries]
        return sets

    def _profile(self, query: SequenceRecord) -> PositionSpecificQuery:
        """The scores of the matrix for each position, changed by a little."""
        matrix = SearchOptions(**self.scheme_options).scheme(PROTEIN).matrix
        codes = query.codes & np.uint8(CODE_MASK)
        scores = matrix.scores[codes][:, :20].astype(np.int64) + self.rng.integers(-2, 2, (len(codes), 20))
        return PositionSpecificQuery(query.header, codes, PROTEIN, with_other_letters(scores, codes, matrix))

    def _lists(self) -> CompleteLists:
        lists = CompleteLists(self.records, self.alphabet, self.scheme_options)
        options = SearchOptions(**self.scheme_options, evalue=self.kind.evalue)
        queries = [query for several in self.query_sets.values() for query in several]
        lengths = {len(query) for query in queries}
        searches = [options] if lists.aligned is PROTEIN and options.query_frames == (0,) else []
        searches = searches or [options, replace(options, strand="plus")]  # fewer comparisons have lower E-values
        floor = min(lowest_score(lists, length, one) for one in searches for length in lengths)
        return CompleteLists(self.records, self.alphabet, self.scheme_options, floor)

    def _treatment(self) -> dict[str, Any]:
        """Options that many of its cases share, because each choice needs a complete list of its own."""
        is_protein = self.lists.aligned is PROTEIN
        masks = ("lower", "tantan", "tantan,lower") if is_protein else ("lower", "tantan", "dust", "dust,lower")
        n_residues = sum(self.lists.lengths)
        sizes = (n_residues, 10 * n_residues, 10**7) + (() if math.isfinite(self.kind.evalue) else (1, 50))
        chosen = {"mask": str(self.rng.choice(masks)), "dbsize": int(self.rng.choice(sizes))}
        if self.rng.random() < 0.25:
            chosen["mask_mode"] = "hard"
        if self.rng.random() < 0.3:
            chosen["strand"] = str(self.rng.choice(("plus", "minus")))
        if is_protein and self.rng.random() < 0.3:
            chosen["composition"] = "bias"
        return chosen

    # --- its databases ---

    def _parts(self) -> list[Path]:
        """The database, in slices or segments; or two databases that are searched as one."""
        n_subjects = len(self.records)
        first = int(self.rng.integers(1, n_subjects))
        way = self.number // len(ORDER) % 3 if self.number >= len(ORDER) else self.number % 3
        one, other = self.folder / "one.db", self.folder / "other.db"
        if way == 0:
            return [indexed(one, self.records, self.alphabet, slices=min(3, n_subjects))]
        indexed(one, self.records[:first], self.alphabet)
        if way == 1:
            add_to_database(one, write_fasta(self.folder / "rest.fasta", self.records[first:]))
            return [one]
        return [one, indexed(other, self.records[first:], self.alphabet)]

    @cached_property
    def database(self) -> PackedDatabase:
        return self._opened.enter_context(swsearch.open_database(self.parts))

    def engine(self, name: str) -> ScoreEngine:
        """An engine by its name in :data:`WAYS`."""
        if name not in self._engines:
            sets = usable_instruction_sets()
            made: dict[str, Callable[[], Any]] = {
                "reference": ReferenceEngine,
                "cpu": lambda: CpuEngine(1),
                "two threads": lambda: CpuEngine(2),
                "emulated GPU": lambda: CudaDevices([0], opener()),
                "exact cells": lambda: CpuEngine(1, sets[self.number % len(sets)], band_rows=0),
            }
            self._engines[name] = self._opened.enter_context(made[name]())
        return self._engines[name]

    @cached_property
    def _engines(self) -> dict[str, ScoreEngine]:
        return {}

    # --- its cases ---

    def options(self, case: Case) -> SearchOptions:
        return SearchOptions(**self.scheme_options, **case.options)

    def found(self, case: Case) -> list[QueryResult]:
        return WAYS[case.way](self, self.query_sets[case.queries], self.options(case))

    def problems(self, case: Case) -> list[str]:
        """What is wrong in the lists of a case; one line each."""
        if case.way == NARROWED:
            return self._problems_of_report(case)
        options = self.options(case)
        self.counts[f"searches, {case.way}"] += 1
        problems = []
        for number, (query, result) in enumerate(zip(self.query_sets[case.queries], self.found(case), strict=True)):
            wanted = expected_list(self.lists, (case.queries, number), query, options)
            self._count(wanted)
            problems += [f"query {number}: {one}" for one in differences(result, wanted, is_search=True)]
        return problems

    def _count(self, wanted: ExpectedList) -> None:
        """Count what makes a list difficult."""
        self.counts["lists"] += 1
        firsts = [several[0] for several in wanted.subjects]
        self.counts["hits"] += sum(map(len, wanted.subjects))
        self.counts["subjects whose best alignment has not the best score"] += sum(
            -one[1] < one[-1].of.best_score(one[-1].subject) for one in firsts
        )
        self.counts["lists that are cut"] += len(firsts) < wanted.n_complete

    # --- reports of a stored run ---

    @cached_property
    def wide(self) -> Case:
        """The stored run, which reports narrow."""
        rng = np.random.default_rng([self.seed, self.number, 1])
        options = draw_options(self, rng)
        for name in LOWEST:
            if rng.random() < 0.8:
                options.pop(name, None)
        options["max_hsps"] = int(rng.choice((1, 2, 4, 9)))
        options["top"] = int(rng.choice((5, 30, ALL, ALL)))
        if rng.random() < 0.7:
            options["evalue"] = self.kind.evalue
        return Case(options, "cpu")

    @cached_property
    def stored(self) -> tuple[RunInfo, list[QueryResult]]:
        """The stored run, as it is read again."""
        options = self.options(self.wide)
        searcher = Searcher(self.database, self.engine("cpu"), options)
        results = list(searcher.search(self.queries))
        with Store(self.folder / "wide.sqlite", create=True) as store:
            run = store.runs.start(searcher.run_info("wide"))
            for result in results:
                store.results.add(run, result)
            store.runs.finish(run)
            return store.runs.get(run).info, list(store.results.queries(run))

    def _problems_of_report(self, case: Case) -> list[str]:
        """A narrowed report is the search with its limits, except where it says that the search cut its list."""
        info, stored = self.stored
        self.counts["reports"] += 1
        options = self.options(self.wide)
        last = replace(options, iterations=1, inclusion_evalue=SearchOptions.inclusion_evalue, **case.options)
        problems = []
        for number, (query, result) in enumerate(zip(self.queries, stored, strict=True)):
            narrowing = Narrowing(**case.options)
            narrowing.of_run(info)
            (report,) = narrowing.results(info, [result])
            whole = expected_list(self.lists, (GIVEN, number), query, options)
            if narrowing.n_incomplete:
                # Subjects behind the end of a full list are not aligned, so nobody knows whether a filter admits them.
                was_cut = n_left_out(options.top, len(whole.subjects), whole.n_passed) > 0
                problems += [] if was_cut else [f"query {number}: a warning, though the list is complete"]
                continue
            wanted = expected_list(self.lists, (GIVEN, number), query, options, last)
            found = differences(report, wanted, is_search=False)
            problems += [f"query {number}: {one}" for one in found]
        return problems


def differences(result: QueryResult, wanted: ExpectedList, *, is_search: bool) -> list[str]:
    """How a list differs from the expected one."""
    found: dict[int, list[Hit]] = {}
    for hit in result.hits:
        found.setdefault(hit.rank, []).append(hit)
    problems = []
    ranks = [hit.rank for hit in result.hits]
    if ranks != sorted(ranks) or sorted(found) != list(range(1, len(found) + 1)):
        problems.append(f"the ranks are {ranks}")
    listed = [[essence(hit) for hit in several] for _, several in sorted(found.items())]
    expected = [[one[-1].essence(one[0]) for one in several] for several in wanted.subjects]
    if listed != expected:
        place = next((n for n, (a, b) in enumerate(zip(listed, expected, strict=False)) if a != b), None)
        counts = f"{len(listed)} subjects, expected {len(expected)}"
        if place is None:
            place = min(len(listed), len(expected))
        mine, theirs = (shown(rows[place]) if place < len(rows) else "none" for rows in (listed, expected))
        problems.append(f"{counts}; rank {place + 1}: {mine}, expected {theirs}")
    for several in found.values():
        numbers = [hit.hsp for hit in several]
        if numbers != list(range(1, len(several) + 1)):
            problems.append(f"the alignments of rank {several[0].rank} have the numbers {numbers}")
    if problems:
        return problems
    rounds = [several[0].round for _, several in sorted(found.items())]
    if rounds != wanted.rounds:
        problems.append(f"the rounds are {rounds}, expected {wanted.rounds}")
    ended = (result.n_rounds, result.converged)
    if ended != (wanted.n_rounds, wanted.converged):
        problems.append(f"(n_rounds, converged) are {ended}, expected {(wanted.n_rounds, wanted.converged)}")
    if is_search and result.n_passed != wanted.n_passed:
        problems.append(f"n_passed is {result.n_passed}, expected {wanted.n_passed}")
    return problems


def shown(rows: Iterable[tuple[Any, ...]]) -> str:
    """Alignments of one subject, short enough for a message."""
    texts = []
    for subject, score, _, evalue, strand, query_frame, subject_frame, *ends in rows:
        where = f"{ends[0]}-{ends[1]}/{ends[2]}-{ends[3]}"
        e = "none" if evalue is None else repr(evalue)
        texts.append(f"s{subject} score {score} E {e} {strand} {query_frame} {subject_frame} {where} {ends[4]}")
    return "[" + ", ".join(texts) + "]"


# --- options ---


def draw_options(world: World, rng: np.random.Generator) -> dict[str, Any]:
    """Options of one search, those that differ from the defaults."""
    is_protein = world.lists.aligned is PROTEIN
    has_evalues = world.lists.statistics is not None
    options: dict[str, Any] = {"top": int(rng.choice((1, 1, 1, 2, 2, 3, 5, 5, 10, 10, 25, ALL)))}
    if world.kind_name == "biased queries" and rng.random() < 0.6:
        return {**options, "evalue": INFINITE}

    def one_of(share: float, name: str, *values: Any) -> None:
        if rng.random() < share:
            options[name] = values[rng.integers(len(values))]

    one_of(0.35, "ties", "all")
    one_of(0.4, "max_hsps", 2, 2, 3, 5, 20, ALL)
    shared = world.treatment
    if world.alphabet is not PROTEIN or world.scheme_options.get("translate") == "query":
        one_of(0.3, "strand", shared.get("strand", "both"))
    if world.scheme_options.get("translate") == "subject":
        options.pop("strand", None)
    one_of(0.4, "mask", shared["mask"])
    if "mask" in options and "mask_mode" in shared:
        one_of(0.6, "mask_mode", "hard")
    if is_protein:
        one_of(0.4, "composition", "none", shared.get("composition", "none"))
    one_of(0.1, "min_identity", 30.0, 50.0, 80.0, 100.0)
    one_of(0.1, "min_query_coverage", 20.0, 50.0, 90.0)
    one_of(0.08, "min_subject_coverage", 20.0, 50.0, 100.0)
    one_of(0.1, "min_alignment_length", 2, 5, 9)
    one_of(0.07, "min_length", 2, 5, 10)
    one_of(0.07, "max_length", 10, 15, 40)
    one_of(0.07, "id_pattern", "[05]$", "[1-3]", "s1")
    if has_evalues:
        one_of(0.25, "dbsize", shared["dbsize"])
    one_of(0.2 if is_protein and has_evalues and world.alphabet is PROTEIN else 0.0, "iterations", 2, 3, 4)
    if "query" in (world.scheme_options.get("translate"),):
        options.pop("iterations", None)
    if not world.lists.searched(SearchOptions(**world.scheme_options, **options)):
        for name in ("min_length", "max_length", "id_pattern"):
            options.pop(name, None)
    number = int(rng.integers(len(world.queries)))
    _draw_limits(world, rng, options, number)
    return options


def _draw_limits(world: World, rng: np.random.Generator, options: dict[str, Any], number: int) -> None:
    """Limits of E-values and scores, half of them values of the complete list of a query."""
    largest = world.kind.evalue
    once = {name: value for name, value in options.items() if name != "iterations"}
    chosen = SearchOptions(**world.scheme_options, **once)
    complete = world.lists.complete((GIVEN, number), world.queries[number], chosen)
    firsts = [several[0] for several in complete.alignments if several]
    any_of = firsts if rng.random() < 0.6 else [one for several in complete.alignments for one in several[:6]]
    any_of = any_of[:: max(1, len(any_of) // 200)]
    if world.lists.statistics is None:
        options["evalue"] = INFINITE
    else:
        usual = (INFINITE, INFINITE, INFINITE, 1e4, 10.0, 1.0, 1e-3)
        options["evalue"] = float(rng.choice(usual))
        if any_of and rng.random() < 0.4:
            options["evalue"] = any_of[rng.integers(len(any_of))][0]
        options["evalue"] = min(max(options["evalue"], 1e-300), largest)
    if any_of and rng.random() < 0.15:
        options["min_score"] = -any_of[rng.integers(len(any_of))][1]
    if any_of and world.lists.statistics is not None and rng.random() < 0.1:
        score = -any_of[rng.integers(len(any_of))][1]
        options["min_bits"] = max(0.0, float(world.lists.statistics.bits(np.array([score]))[0]))
    if "iterations" in options:
        limits = (1e-3, 0.1, 1.0, 100.0)
        inclusion = float(limits[rng.integers(4)])
        if any_of and rng.random() < 0.5:
            ranked = sorted(one[0] for one in any_of)
            inclusion = max(ranked[min(len(ranked) - 1, int(rng.integers(1, 40)))], 1e-300)
        options["inclusion_evalue"] = min(inclusion, options["evalue"], 1e300)


def draw_limits_of_report(world: World, rng: np.random.Generator) -> dict[str, Any]:
    """Limits of a report within those of the world's stored run."""
    wide = world.options(world.wide)
    drawn = draw_options(world, rng)
    limits: dict[str, Any] = {}
    if wide.iterations > 1:  # other limits would change what the rounds include, and are refused
        limits = {name: drawn[name] for name in ("top", "evalue") if drawn[name] <= getattr(wide, name)}
        return limits or {"top": 1}
    for name in ("top", "evalue", "max_hsps"):
        if name in drawn and rng.random() < 0.5 and drawn[name] <= getattr(wide, name):
            limits[name] = drawn[name]
    if world.lists.statistics is None:
        limits.pop("evalue", None)
    for name in (*LOWEST, "min_alignment_length"):
        if name in drawn and drawn[name] >= (getattr(wide, name) or 0):
            limits[name] = drawn[name]
    if rng.random() < 0.4 and wide.max_hsps > 1:
        limits["max_hsps"] = int(rng.integers(1, wide.max_hsps, endpoint=True))
    if rng.random() < 0.3:
        limits["min_identity"] = max(wide.min_identity or 0.0, float(rng.choice((30.0, 50.0, 80.0))))
    if not limits:
        limits["top"] = min(wide.top, int(rng.choice((1, 2, 3))))
    return limits


def draw_case(world: World, number: int) -> Case:
    rng = np.random.default_rng([world.seed, world.number, 2, number])
    ways = list(WAYS)
    shares = np.array([SHARES[way] for way in ways], float)
    way = str(rng.choice([*ways, NARROWED], p=np.append(shares * 0.8 / shares.sum(), 0.2)))
    if way == NARROWED:
        return Case(draw_limits_of_report(world, rng), way)
    if way == "slices" and len(world.parts) > 1:
        way = "cpu"
    queries = str(rng.choice(list(world.query_sets))) if rng.random() < 0.25 else GIVEN
    options = draw_options(world, rng)
    if queries == SUBJECTS:
        options.pop("iterations", None)
        options.pop("inclusion_evalue", None)
    if queries == PROFILES:
        for name in ("mask", "mask_mode"):
            options.pop(name, None)
        if options.get("composition") == "bias":
            del options["composition"]
    share = SENSITIVE_SHARE if _may_be_sensitive(world) and way != "emulated GPU" and queries == GIVEN else 0.0
    if np.random.default_rng([world.seed, world.number, 3, number]).random() < share:
        options["sensitive"] = True
        for name in ("mask", "mask_mode", "composition", "max_hsps"):
            options.pop(name, None)
    return Case(options, way, queries)


def _may_be_sensitive(world: World) -> bool:
    """Whether its scheme admits sensitive searches, and its complete lists have the scores of all candidates."""
    is_given = world.alphabet is PROTEIN and "translate" not in world.scheme_options
    return is_given and world.lists.statistics is not None and world.kind.evalue == INFINITE


# --- ways of searching ---


Queries = Sequence[SequenceRecord]


SMALL_PARTITIONS: Final = Machine(threads=1, partition_residues=200)


def _search(
    world: World, queries: Queries, engine: str, options: SearchOptions, *, observed: bool = False, **more: Any
) -> list[QueryResult]:
    searcher = Searcher(world.database, world.engine(engine), options, **more)
    if observed:
        searcher.observe = lambda length, scores: None
    return list(searcher.search(queries))


def _in_slices(world: World, queries: Queries, options: SearchOptions) -> list[QueryResult]:
    with ExitStack() as opened:
        return list(SlicedSearch(world.parts[0], world.engine("cpu"), options, opened).search(queries))


def _in_shards(world: World, queries: Queries, options: SearchOptions) -> list[QueryResult]:
    """Two shards of the queries, each with a run in the store, merged."""
    with Store(world.folder / "shards.sqlite", create=True) as store:
        sources = []
        for index in (1, 2):
            shard = Shard(index, 2)
            numbers = list(shard.numbers(len(queries)))
            searcher = Searcher(world.database, world.engine("cpu"), options)
            run = store.runs.start(searcher.run_info("shard"), AskedQueries(shard, len(queries), "digest"))
            for number, result in zip(numbers, searcher.search([queries[n] for n in numbers]), strict=True):
                store.results.add(run, replace(result, number=number))
            store.runs.finish(run)
            sources.append(Source(store, store.runs.get(run)))
        merged = plan_merge(sources).carry_out(store, "merge")
        return list(store.results.queries(merged))


WAYS: Final[dict[str, Callable[[World, Queries, SearchOptions], list[QueryResult]]]] = {
    "cpu": lambda world, queries, options: _search(world, queries, "cpu", options),
    "two threads": lambda world, queries, options: _search(
        world, queries, "two threads", options, machine=Machine(threads=2)
    ),
    "exact cells": lambda world, queries, options: _search(world, queries, "exact cells", options),
    "small partitions": lambda world, queries, options: _search(
        world, queries, "cpu", options, machine=SMALL_PARTITIONS
    ),
    "observed": lambda world, queries, options: _search(world, queries, "cpu", options, observed=True),
    "reference": lambda world, queries, options: _search(world, queries, "reference", options),
    "emulated GPU": lambda world, queries, options: _search(world, queries, "emulated GPU", options),
    "slices": _in_slices,
    "shards": _in_shards,
}
SHARES: Final = {
    "emulated GPU": 0.0,  # slow, and needs a compiler; only the campaign has it
    "cpu": 8.0, "two threads": 1.0, "exact cells": 1.0, "small partitions": 1.0,
    "observed": 0.7, "reference": 1.5, "slices": 3.0,
    "shards": 0.15,
}  # fmt: skip


def shrunk(world: World, case: Case) -> Case:
    """The case with only those options without which it does not fail."""
    smaller = True
    while smaller:
        smaller = False
        for name in list(case.options):
            options = {key: value for key, value in case.options.items() if key != name}
            less = Case(options, case.way, case.queries)
            if _fails(world, less):
                case, smaller = less, True
    return case


def _fails(world: World, case: Case) -> bool:
    try:
        return (bool(case.options) or case.way != NARROWED) and _is_complete(world, case) and bool(world.problems(case))
    except Exception:  # options that do not fit together without the one that is left out
        return False


def _is_complete(world: World, case: Case) -> bool:
    """Whether the complete list has all alignments that the options may need."""
    return case.way == NARROWED or world.options(case).evalue <= world.kind.evalue


def failures(world: World, numbers: Sequence[int]) -> list[str]:
    """A message about each of these cases that fails."""
    messages = []
    for number in numbers:
        case = draw_case(world, number)
        try:
            problems = world.problems(case)
        except Exception as error:
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            stored = f" of a run with {world.wide.options}" if case.way == NARROWED else ""
            what = f"{world.kind_name} {world.scheme_options}, {case.way}, {case.queries} {case.options}{stored}"
            least = f"some fault also shows with {shrunk(world, case).options}"
            messages.append("\n    ".join([f"case {number}: {what}", *problems, least]))
    return messages
