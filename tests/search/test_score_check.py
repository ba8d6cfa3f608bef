"""All scores of a run are counted, and the fit distinguishes correct statistics from wrong ones.

The expected values come from the theory, from the reference recurrence, or from calculation by hand.
"""

import dataclasses
import errno
from pathlib import Path

import numpy as np
import pytest

from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.reference import ReferenceEngine, local_scores
from swsearch.errors import InputError
from swsearch.query.profile import sequence_profile
from swsearch.search.options import SearchOptions
from swsearch.search.score_check import EDGES, ScoreCheck, expected_counts, write_score_plot
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.support import indexed, random_protein


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """1,500 random proteins of 250 to 350 residues, for which the statistics hold."""
    folder = tmp_path_factory.mktemp("check")
    rng = np.random.default_rng(4)
    lengths = rng.integers(250, 351, 1500).tolist()
    records = [(f"r{number}", PROTEIN.decode(random_protein(rng, length))) for number, length in enumerate(lengths)]
    with open_database(indexed(folder / "random.db", records)) as opened:
        yield opened


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(5)
    return [SequenceRecord(f"q{number}", random_protein(rng, 300), PROTEIN) for number in range(10)]


def check(database, queries, engine, lam=None, **options):
    """Return the searcher's results with its checked scores; ``lam`` gives the statistics a wrong λ."""
    with engine:
        searcher = Searcher(database, engine, SearchOptions(**options))
        if lam is not None:
            searcher.significance.statistics = dataclasses.replace(searcher.significance.statistics, lam=lam)
        counter = ScoreCheck(searcher)
        searcher.observe = counter.add
        return list(searcher.search(queries)), counter.result()


def test_random_sequences_follow_the_statistics(database, queries):
    """Source: the theory; random sequences of natural composition have as many hits as the E-values predict."""
    _, checked = check(database, queries, CpuEngine(2))
    assert checked.n_scores == 15_000
    assert 0.75 < checked.ratio < 1.33
    assert checked.warning is None
    assert checked.evalue == 10.0
    assert checked.cut == pytest.approx(np.log(1500 / 10.0))


@pytest.mark.parametrize(("lam", "too_many"), [(0.31, True), (0.22, False)])
def test_wrong_statistics_are_warned_of(database, queries, lam, too_many):
    """Source: the same scores, compared with a λ that is 16 % too large, or 18 % too small."""
    _, checked = check(database, queries, CpuEngine(2), lam=lam)
    assert (checked.ratio > 2.0) is too_many
    assert (checked.ratio < 0.5) is not too_many
    assert f"multiply its E-values by {checked.ratio:.2g}" in checked.warning


def test_relatives_of_the_query_do_not_spoil_the_fit(database, queries):
    """A subject equals the query; its score is counted, and lies far above the fitted range."""
    rows = [SequenceRecord(f"s{index}", database.codes(index), PROTEIN) for index in range(0, 1500, 150)]
    _, checked = check(database, rows, CpuEngine(2))
    assert checked.counts[-1] == 10
    assert 0.75 < checked.ratio < 1.33


def test_every_score_is_observed_and_no_hit_changes(database, queries):
    """Source: the search without a check, and the reference recurrence."""
    options = {"evalue": 5.0}
    results, _ = check(database, queries[:2], CpuEngine(2), **options)
    seen = []
    with CpuEngine(2) as engine:
        searcher = Searcher(database, engine, SearchOptions(**options))
        plain = list(searcher.search(queries[:2]))
        searcher.observe = lambda length, candidates: seen.append((length, candidates))
        list(searcher.search(queries[:2]))
    assert [result.hits for result in results] == [result.hits for result in plain]
    assert [(length, len(candidates)) for length, candidates in seen] == [(300, 1500)] * 2
    profile = sequence_profile(queries[0].codes, searcher.scheme)
    for index in (0, 700, 1499):
        row = int(np.flatnonzero(seen[0][1].subject_index == index)[0])
        assert seen[0][1].score[row] == local_scores(profile, [database.codes(index)])[0]


def test_engines_are_checked_alike(database, queries):
    """Source: the reference engine, on a short query."""
    short = [SequenceRecord("short", queries[0].codes[:20], PROTEIN)]
    _, slow = check(database, short, ReferenceEngine())
    _, fast = check(database, short, CpuEngine(1))
    np.testing.assert_array_equal(slow.counts, fast.counts)


def test_the_curve_of_the_statistics_is_the_standard_distribution(database, queries):
    """Source: by hand; half of all scores lie below -ln(ln 2) = 0.3665."""
    _, checked = check(database, queries[:1], CpuEngine(1))
    expected = expected_counts(checked)
    assert expected.sum() == pytest.approx(1500, rel=1e-3)
    below = np.interp(0.36651, EDGES[1:], np.cumsum(expected))
    assert below == pytest.approx(750, rel=1e-3)


@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_plots_are_files_of_their_kind(database, queries, tmp_path, suffix, begin):
    _, checked = check(database, queries[:1], CpuEngine(1))
    path = tmp_path / f"scores{suffix}"
    write_score_plot(checked, "$1$ query", path)
    assert path.read_bytes().startswith(begin)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_plot_that_cannot_be_written_is_one_line(database, queries, monkeypatch):
    """/proc accepts no files, not even from root; a read-only disk also refuses to remove the file that is missing."""
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.parent == Path("/proc"):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        unlink(path, missing_ok)  # Matplotlib's lock, when it is loaded for the first time

    monkeypatch.setattr(Path, "unlink", refuse)
    _, checked = check(database, queries[:1], CpuEngine(1))
    with pytest.raises(InputError, match=r"--plot /proc/scores.png: .*; choose another file"):
        write_score_plot(checked, "1 query", Path("/proc/scores.png"))


def test_too_few_or_equal_scores_are_not_fitted(database, queries):
    """By hand: a query of one tryptophan scores 11, or little, or nothing."""
    few, checked = check(database, [SequenceRecord("w", PROTEIN.encode("W"), PROTEIN)], CpuEngine(1), top=1)
    assert checked.n_scores == 1500
    assert (checked.fit, checked.ratio, checked.warning) == (None, None, None)
    assert len(few[0].hits) <= 1


def test_without_statistics_there_is_nothing_to_check(database):
    with CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions(gap_open=3, gap_extend=1))
        with pytest.raises(InputError, match="--plot compares scores with their statistics, and there are none"):
            ScoreCheck(searcher)
