"""Queries whose scores do not follow the statistics are warned of, others are not, and it costs next to nothing.

The sequences are real: coiled coils and a splicing factor rich in arginine and serine, by the names of their records in
data/proteins.fasta.gz; and proteins of data/queries.fasta. The fits are compared with those to all scores, which
another part of the program counts. Costs are counted in cells, by hand.
"""

import dnaio
import numpy as np
import pytest

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.reference import ReferenceEngine
from swsearch.search import score_check
from swsearch.search.options import SearchOptions
from swsearch.search.score_check import LARGEST_SAMPLE, SMALLEST_SAMPLE, SampleCheck, ScoreCheck
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.cli.conftest import DATA

COILED = ("tr|K1RCS4|K1RCS4_CRAGI", "tr|F9N1V1|F9N1V1_FINMA", "tr|B5T1P5|B5T1P5_EPICO")
USUAL = ("sp|B4RQP4|OBG_NEIG2", "sp|Q600K7|ENGB_MYCH2", "tr|L0A719|L0A719_DEIPD")


def records(path, names):
    with dnaio.open(path) as file:
        found = {one.id: SequenceRecord(one.name, PROTEIN.encode(one.sequence), PROTEIN) for one in file}
    return [found[name] for name in names]


@pytest.fixture(scope="module")
def coiled():
    return records(DATA / "proteins.fasta.gz", COILED)


@pytest.fixture(scope="module")
def usual():
    return records(DATA / "queries.fasta", USUAL)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "proteins.db"
    build_database([DATA / "proteins.fasta.gz"], path)
    with open_database(path) as opened:
        yield opened


@pytest.fixture
def free(monkeypatch):
    """Let the checks cost what they may."""
    monkeypatch.setattr(score_check, "FREE_CELLS", 10**13)


def checked(database, queries, engine=None, **options):
    with engine or CpuEngine(1) as opened:
        searcher = Searcher(database, opened, SearchOptions(**options))
        check = SampleCheck(searcher)
        searcher.observe_batch = check.add
        return list(searcher.search(queries)), check


def test_biased_queries_are_warned_of_and_usual_ones_are_not(database, coiled, usual, free):
    _, check = checked(database, [*usual, *coiled])
    assert [misfit.name for misfit in check.misfits] == list(COILED)
    assert (check.n_queries, check.n_checked) == (6, 6)
    assert all(misfit.n_scores == SMALLEST_SAMPLE for misfit in check.misfits)
    assert "3 of the 6 queries that were checked (" in check.warning
    _, alone = checked(database, usual)
    assert (alone.n_checked, alone.misfits, alone.warning) == (3, [], None)


def test_the_scale_is_that_of_all_scores(database, coiled, free):
    """Source: the fit to the scores of all 1,500 subjects; the sample's standard error is about 7 %."""
    _, check = checked(database, coiled)
    for query, misfit in zip(coiled, check.misfits, strict=True):
        with CpuEngine(1) as engine:
            searcher = Searcher(database, engine, SearchOptions())
            counter = ScoreCheck(searcher)
            searcher.observe = counter.add
            list(searcher.search([query]))
        assert misfit.scale == pytest.approx(counter.result().fit.lam, rel=0.25)


def test_no_hit_changes_and_engines_check_alike(database, coiled, usual, free):
    """Source: the search without a check, and the reference engine on a short query."""
    queries = [coiled[1], usual[1]]
    results, _ = checked(database, queries)
    with CpuEngine(2) as engine:
        plain = list(Searcher(database, engine, SearchOptions()).search(queries))
    assert [result.hits for result in results] == [result.hits for result in plain]
    short = [SequenceRecord("short", coiled[1].codes[:40], PROTEIN)]
    _, slow = checked(database, short, ReferenceEngine())
    _, fast = checked(database, short)
    assert slow.misfits == fast.misfits


def test_the_correction_for_composition_changes_the_fit(database, coiled, free):
    """Source: by hand; arginine and serine are frequent, so that the corrected scores decrease faster."""
    _, plain = checked(database, coiled[2:])
    _, corrected = checked(database, coiled[2:], composition="bias")
    assert len(plain.misfits) == 1
    assert corrected.misfits == []


def test_checks_cost_no_more_than_their_share(database, coiled, monkeypatch):
    """By hand: without a free part, one check of 200 residues needs the share of so many searched queries."""
    monkeypatch.setattr(score_check, "FREE_CELLS", 0)
    queries = [SequenceRecord(f"q{number}", coiled[1].codes, PROTEIN) for number in range(400)]
    with CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions())
        check = SampleCheck(searcher)
        length = len(coiled[1])
        sample = sum(part.n_residues for part in check._samples)
        cost = score_check.SAMPLE_COST * length * sample + score_check.THREAD_CELLS
        budget = score_check.SHARE * length * database.n_residues * len(queries)
        check.add([(query, searcher.preparer.frames(query)) for query in queries])
    assert check.n_queries == 400
    assert check.n_checked == int(budget / cost) > 0


def test_the_sample_has_the_lengths_of_the_database(database):
    """The sample is 400 of 1,500 subjects at equal distances, or all of fewer."""
    with CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions())
        lengths = np.concatenate([part.lengths for part in SampleCheck(searcher)._samples])
        assert len(lengths) == len(np.unique(np.concatenate([p.subject_index for p in SampleCheck(searcher)._samples])))
    assert len(lengths) == 400 < LARGEST_SAMPLE
    every = np.sort(database.lengths(np.arange(1500, dtype=np.uint32)))
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(lengths, share) == pytest.approx(np.quantile(every, share), rel=0.03)


@pytest.mark.parametrize(
    "options",
    [{"gap_open": 3, "gap_extend": 1}, {"iterations": 2}, {"min_length": 1000}],
    ids=["no statistics", "rounds", "few subjects"],
)
def test_searches_without_a_check(database, options):
    with CpuEngine(1) as engine:
        assert not SampleCheck.applies(Searcher(database, engine, SearchOptions(**options)))
        assert SampleCheck.applies(Searcher(database, engine, SearchOptions()))
