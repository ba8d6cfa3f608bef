"""Iterated searches: which subjects enter when, and that nothing but the queries and the options decides it.

Expected values: rounds composed by hand of single searches, and invented families whose distant members a plain search
misses.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import ScoreEngine
from swsearch.engine.reference import ReferenceEngine
from swsearch.engine.registry import Machine
from swsearch.errors import InputError, ScoringError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.query.estimation import estimated_query
from swsearch.query.multiple_alignment import anchored_rows
from swsearch.run import Run
from swsearch.scoring.matrix import named_matrix
from swsearch.search.options import SearchOptions
from swsearch.search.queries import QueriesInMemory
from swsearch.search.ranking import adjustment_of
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.store.store import Store
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.support import coded, indexed, random_codes, random_protein, write_fasta

LENGTH = 90
N_OTHERS = 400


def relatives(rng: np.random.Generator, base: np.ndarray, names: str, shares: list[float]) -> Iterator[tuple[str, str]]:
    """Sequences in which a share of the positions differs from ``base``; conserved positions differ less."""
    conserved = rng.random(len(base)) < 0.35
    for number, share in enumerate(shares):
        changed = rng.random(len(base)) < np.where(conserved, share / 4, share)
        member = base.copy()
        member[changed] = random_protein(rng, int(changed.sum()))
        yield f"{names}{number}", PROTEIN.decode(np.concatenate((random_protein(rng, 8), member)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three families of near and distant members among unrelated proteins; a query of each, and one without any."""
    rng = np.random.default_rng(17)
    path = tmp_path_factory.mktemp("rounds")
    queries, subjects = [], []
    for family in "abc":
        base = random_protein(rng, LENGTH)
        shares = [0.4] * 4 + [0.7] * 8 + [0.95] * 10
        subjects += list(relatives(rng, base, family, shares))
        queries.append((f"query_{family} given", PROTEIN.decode(base)))
    queries.insert(1, ("lonely given", PROTEIN.decode(random_protein(rng, LENGTH))))
    others = ((f"other{n}", int(length)) for n, length in enumerate(rng.integers(30, 150, N_OTHERS)))
    subjects += [(name, PROTEIN.decode(random_protein(rng, length))) for name, length in others]
    write_fasta(path / "q.fasta", queries)
    indexed(path / "s.db", subjects)
    return path


def records(folder: Path) -> list[SequenceRecord]:
    return list(read_sequences(folder / "q.fasta", PROTEIN))


def search(folder: Path, engine: ScoreEngine | None = None, **options: Any) -> list[QueryResult]:
    threads = options.pop("threads", 1)
    partition_residues = options.pop("partition_residues", None)
    with open_database(folder / "s.db") as database, engine or CpuEngine(threads) as opened:
        chosen = SearchOptions(**options)
        searcher = Searcher(
            database, opened, chosen, machine=Machine(threads=threads, partition_residues=partition_residues)
        )
        return list(searcher.search(records(folder)))


def comparable(results: list[QueryResult]) -> list[object]:
    """Everything but the times."""
    return [replace(result, stats=None) for result in results]  # type: ignore[arg-type]


def names(result: QueryResult, evalue: float = 0.001) -> set[str]:
    return {hit.subject_id for hit in result.hits if hit.evalue is not None and hit.evalue <= evalue}


# --- what is found ---


def test_distant_members_are_found_in_later_rounds(folder):
    """Source: the families that the fixture planted; a first round misses some of their members."""
    first = search(folder, top=100)
    second, third = (search(folder, top=100, iterations=n, inclusion_evalue=0.001) for n in (2, 3))
    for query, family in ((0, "a"), (2, "b"), (3, "c")):
        assert names(first[query]) < names(second[query]) <= names(third[query])
        assert all(name.startswith(family) for name in names(third[query]))
        entered = {hit.subject_id: hit.round for hit in third[query].hits}
        assert {name for name, found in entered.items() if found == 1} == names(first[query])
        assert {name for name, found in entered.items() if found in (1, 2)} == names(second[query])
        assert set(entered.values()) <= {0, 1, 2, 3}
        assert third[query].pssm is not None
    lonely = third[1]
    assert (lonely.n_rounds, lonely.converged, lonely.pssm) == (1, True, None)
    assert comparable([replace(lonely, converged=False)]) == comparable([first[1]])


def test_rounds_end_when_nothing_new_is_found(folder):
    many = search(folder, top=100, iterations=30)
    for result in many:
        assert result.converged
        assert result.n_rounds < 30
        last = max((hit.round for hit in result.hits), default=0)
        assert last < result.n_rounds
        if result.n_rounds > 1:
            again = search(folder, top=100, iterations=result.n_rounds)[result.number]
            assert comparable([again]) == comparable([result])
            assert not search(folder, top=100, iterations=result.n_rounds - 1)[result.number].converged


def adjusted(result: QueryResult, query: SequenceRecord, searcher: Searcher) -> list[Hit]:
    """The hits of a single search with E-values adjusted for composition, ranked again."""
    options = replace(searcher.options, composition="adjust", iterations=2)
    adjustment = adjustment_of(query, options, searcher.scheme, searcher.significance.statistics)
    assert adjustment is not None
    hits = []
    for hit in result.hits:
        evalue, score = np.array([hit.evalue]), np.array([hit.score], dtype=np.int32)
        found = hit.alignment
        parts = coded([query.letters[found.query_start : found.query_end]]), coded([found.subject_letters])
        (changed,) = adjustment.adjusted(evalue, score, *parts).tolist()
        hits.append(replace(hit, evalue=changed))
    hits = [hit for hit in hits if hit.evalue is not None and hit.evalue <= searcher.options.evalue]
    hits.sort(key=lambda hit: (hit.evalue, -hit.score, hit.subject_index))
    return [replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)]


def test_a_round_is_a_search_with_the_profile_of_the_hits_before(folder):
    """Source: single searches, whose hits are made into the next profile by hand."""
    matrix = named_matrix("BLOSUM62")
    options = SearchOptions(top=1000, evalue=5.0, composition="none")
    with open_database(folder / "s.db") as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, options)
        for expected in search(folder, top=1000, evalue=5.0, iterations=3, inclusion_evalue=0.01):
            given = records(folder)[expected.number]
            query = given
            for _ in range(expected.n_rounds):
                (result,) = searcher.search([query])
                hits = adjusted(result, query, searcher)
                included = [hit for hit in hits if hit.evalue is not None and hit.evalue <= 0.01]
                query = estimated_query(given, anchored_rows(len(given), included), matrix)
            assert [replace(hit, round=0) for hit in expected.hits] == hits
            assert expected.pssm == result.pssm
            assert expected.n_passed == result.n_passed


# --- what has no influence ---


class SmallGroups(CpuEngine):
    """An engine that takes two short queries at a time."""

    profiles_per_call = 2
    rows_per_call = 2 * LENGTH


@pytest.mark.parametrize("changed", ["threads", "partitions", "groups", "reference"])
@pytest.mark.parametrize("sensitive", [False, True])
def test_threads_partitions_groups_and_engines_do_not_matter(folder, changed, sensitive):
    options: dict[str, Any] = {"top": 30, "iterations": 3, "sensitive": sensitive}
    expected = search(folder, **options)
    engine: ScoreEngine | None = None
    if changed == "threads":
        options["threads"] = 3
    elif changed == "partitions":
        options["partition_residues"] = 4000
    elif changed == "groups":
        engine = SmallGroups(1)
    else:
        engine = ReferenceEngine()
    assert comparable(search(folder, engine, **options)) == comparable(expected)


@pytest.mark.parametrize("sensitive", [False, True])
def test_the_cuda_engine_has_the_same_rounds(tmp_path, sensitive):
    """Two groups at a time on an emulated device, whose subjects are few and short."""
    rng = np.random.default_rng(23)
    base = random_codes(rng, 40)
    subjects = [*relatives(rng, base, "a", [0.3, 0.35, 0.4, 0.5, 0.55, 0.6, 0.65])]
    subjects += [(f"other{n}", PROTEIN.decode(random_protein(rng, 30))) for n in range(40)]
    indexed(tmp_path / "s.db", subjects)
    query, other = PROTEIN.decode(base), PROTEIN.decode(random_protein(rng, 30))
    write_fasta(tmp_path / "q.fasta", [("q", query), ("other", other), ("again", query[3:])])

    class Groups(CudaEngine):
        profiles_per_call = 1

    options: dict[str, Any] = {"top": 10, "iterations": 3, "inclusion_evalue": 0.01, "sensitive": sensitive}
    expected = search(tmp_path, **options)
    assert expected[0].n_rounds > 1
    assert comparable(search(tmp_path, Groups(EmulatedDevice()), **options)) == comparable(expected)


def test_a_resumed_run_has_the_same_results(folder, tmp_path):
    """Interrupted after two queries; the others are searched later, and the stored ones are read again."""
    options = SearchOptions(top=30, iterations=3)
    expected = search(folder, top=30, iterations=3)
    queries = QueriesInMemory(records(folder))
    with (
        Store(tmp_path / "hits.sqlite", create=True) as store,
        open_database(folder / "s.db") as database,
        CpuEngine(1) as engine,
    ):
        searcher = Searcher(database, engine, options)

        def stop(outcome: Any) -> None:
            if outcome.n_done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Run(queries, searcher, store=store, on_query_done=stop).execute()
        outcome = Run(queries, searcher, store=store, resume="latest").execute()
        assert (outcome.n_before, outcome.n_done) == (2, 2)
        assert outcome.run_id is not None
        assert comparable(list(store.results.queries(outcome.run_id))) == comparable(expected)


# --- other options ---


def test_progress_counts_the_cells_of_all_rounds(folder):
    """Rounds that a converged query does not need are counted when it ends."""
    with open_database(folder / "s.db") as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions(iterations=4))
        counted: list[int] = []
        results = list(searcher.search(records(folder), counted.append))
        one_round = LENGTH * database.n_residues
        assert sum(counted) == sum(map(searcher.cells, records(folder))) == 4 * 4 * one_round
        assert [result.stats.cells for result in results] == [result.n_rounds * one_round for result in results]


def test_masked_positions_stay_masked_in_all_rounds(folder, tmp_path):
    """A hard mask keeps the scores of X; a soft mask finds no subject in any round, but aligns."""
    first = records(folder)[0]
    letters = first.letters[:45] + first.letters[45:].lower()
    write_fasta(tmp_path / "q.fasta", [(first.header, letters)])
    for name in ("s.fasta", "s.db"):
        (tmp_path / name).symlink_to(folder / name)
    (hard,) = search(tmp_path, top=50, iterations=3, mask="lower", mask_mode="hard")
    assert hard.pssm is not None
    assert (hard.pssm.scores[45:] == named_matrix("BLOSUM62").scores[PROTEIN.code("X"), :20]).all()
    (soft,) = search(tmp_path, top=50, iterations=3, mask="lower")
    assert soft.pssm is not None
    assert soft.letters == letters
    assert (soft.pssm.scores[45:] != named_matrix("BLOSUM62").scores[PROTEIN.code("X"), :20]).any()
    assert max(hit.alignment.query_end for hit in soft.hits) == LENGTH


def test_the_composition_is_corrected_in_all_rounds(tmp_path):
    """A family rich in glutamate: unrelated proteins that are rich in it too score less, also with the profile."""
    rng = np.random.default_rng(29)

    def rich(length: int) -> np.ndarray:
        return np.where(rng.random(length) < 0.45, PROTEIN.code("E"), random_protein(rng, length)).astype(np.uint8)

    base = rich(LENGTH)
    subjects = [*relatives(rng, base, "a", [0.2] * 5)]
    subjects += [(f"rich{n}", PROTEIN.decode(rich(80))) for n in range(30)]
    subjects += [(f"other{n}", PROTEIN.decode(random_protein(rng, 80))) for n in range(300)]
    write_fasta(tmp_path / "q.fasta", [("q", PROTEIN.decode(base))])
    indexed(tmp_path / "s.db", subjects)
    options: dict[str, Any] = {"top": 500, "iterations": 2, "inclusion_evalue": 1e-9}
    (plain,), (corrected,) = (search(tmp_path, composition=each, **options) for each in ("none", "bias"))
    assert plain.n_rounds == corrected.n_rounds == 2
    assert names(corrected, 1e-9) == {f"a{n}" for n in range(5)} < names(plain, 1e-9)
    before, after = ({hit.subject_id: hit.score for hit in one.hits} for one in (plain, corrected))
    lower = [before[name] - score for name, score in after.items() if name.startswith("rich")]
    assert len(lower) >= 10
    assert sum(lower) >= 10 * len(lower)


def test_conditions_on_alignments_also_decide_what_is_included(folder):
    """By their meaning: a subject that is not reported is not part of the profile."""
    strict = search(folder, top=1000, iterations=3, min_query_coverage=80.0)
    for result in strict:
        assert all(hit.alignment.query_end - hit.alignment.query_start >= 0.8 * LENGTH for hit in result.hits)
    assert strict[0].pssm != search(folder, top=1000, iterations=3)[0].pssm


def test_rounds_of_a_stricter_search_include_all_that_it_reports(folder):
    strict = search(folder, iterations=3, evalue=1e-9)
    assert comparable(strict) == comparable(search(folder, iterations=3, evalue=1e-9, inclusion_evalue=1e-9))
    assert SearchOptions(iterations=3, evalue=1e-9).as_parameters()["inclusion_evalue"] == 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations=0: choose a whole number, 1 to 100"),
        ({"iterations": 101}, "iterations=101"),
        ({"inclusion_evalue": 0.02}, "inclusion_evalue=0.02 is for iterated searches"),
        ({"iterations": 2, "inclusion_evalue": 0.0}, "inclusion_evalue=0: choose a number above 0"),
        ({"iterations": 2, "inclusion_evalue": math.nan}, "inclusion_evalue=nan"),
        ({"iterations": 2, "evalue": math.inf, "inclusion_evalue": math.inf}, "choose a number above 0, and not inf"),
        ({"iterations": 2, "inclusion_evalue": 11.0}, "inclusion_evalue=11 is above evalue=10"),
        ({"iterations": 2, "inclusion_evalue": 2e-3, "evalue": 1e-3}, "inclusion_evalue=0.002 is above evalue=0.001"),
        ({"iterations": 2, "translate": "query"}, "no profile is made of a translated query"),
        ({"iterations": 2, "gap_open": 3}, "there are no E-values for inclusion"),
    ],
)
def test_what_cannot_be_iterated_is_refused(folder, options, message):
    with pytest.raises(InputError, match=message):
        search(folder, **options)


def test_a_matrix_without_a_scale_cannot_be_iterated(folder, tmp_path):
    letters = "ARNDCQEGHILKMFPSTWYVX"
    table = "\n".join([" ".join(letters), *(f"{a} {' '.join(['1'] * 21)}" for a in letters)])
    (tmp_path / "flat").write_text(table + "\n")
    with pytest.raises(ScoringError, match="no profile can be estimated"):
        search(folder, iterations=2, matrix=str(tmp_path / "flat"))


def test_a_search_with_dna_cannot_be_iterated(tmp_path):
    with (
        open_database(indexed(tmp_path / "s.db", [("s", "ACGTACGTACGT")], DNA)) as database,
        CpuEngine(1) as engine,
        pytest.raises(InputError, match="only searches with proteins can be iterated; say iterations=1"),
    ):
        Searcher(database, engine, SearchOptions(iterations=2))
