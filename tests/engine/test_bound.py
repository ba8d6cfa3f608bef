"""The theorem of ``docs/design/bound.md``: no cell of the bound is below the exact score.

Expected values: Gotoh's recurrence on the same pairs. The pairs are random and small, so that all gaps between two
bands and inside one occur; most of them are built around one path with gaps, whose pairs are the only ones that score
above 0, so that the exact score depends on every gap of the path. Every test that changes the recurrence shows that
these pairs find the change.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from swsearch.engine.reference import local_scores
from swsearch.query.profile import QueryProfile
from swsearch.scoring.scheme import GapPenalty
from tests.engine.bound_reference import (
    COLUMNS_PER_LOOK,
    HIGHEST_SCORE,
    LARGEST_WRAPPING,
    LOWEST_SCORE,
    NEVER,
    RECURRENCE,
    WRAPPING,
    Pairs,
    Step,
    Values,
    bounds,
    exact_cells,
    largest,
    wrapped,
)
from tests.tiers import mostly_thorough

ROWS = range(2, 9)
N_PAIRS = 2_000
"""Pairs per array: the arrays of a column stay in the processor's cache."""


def gap_costs(rng: np.random.Generator, rows: int) -> tuple[Values, Values]:
    """Open and extend of each pair; a third lies where ``rows * extend`` equals open + extend, or beside it."""
    extend = rng.integers(0, 5, N_PAIRS)
    open_ = rng.integers(0, 16, N_PAIRS)
    edge = (rows - 1) * extend + rng.integers(-1, 2, N_PAIRS)
    open_ = np.where(rng.random(N_PAIRS) < 1 / 3, np.maximum(edge, 0), open_)
    return open_.astype(np.int32), np.where(open_ + extend == 0, 1, extend).astype(np.int32)


def on_a_path(rng: np.random.Generator, n_rows: int, n_columns: int) -> Values:
    """Scores that are positive only on one path of pairs; gaps of 0 to 8 rows and of 0 to 8 columns separate them."""
    other = rng.choice([-128, -20, -4, -1], N_PAIRS)
    scores = np.broadcast_to(other, (n_rows, n_columns, N_PAIRS)).astype(np.int32)
    everyone = np.arange(N_PAIRS)
    row, column = rng.integers(0, 4, (2, N_PAIRS))
    down, right = (np.where(rng.random(N_PAIRS) < 0.7, rng.integers(1, 9, N_PAIRS), 0) for _ in range(2))
    highest = rng.choice([3, 8, 30, 127], N_PAIRS)
    while True:
        inside = (row < n_rows) & (column < n_columns)
        if not inside.any():
            return scores
        scores[row[inside], column[inside], everyone[inside]] = rng.integers(1, highest[inside] + 1)
        gap = rng.integers(0, 4, N_PAIRS)  # none, down, right, or both
        row = row + 1 + np.where(gap & 1, np.where(rng.random(N_PAIRS) < 0.8, down, rng.integers(0, 9, N_PAIRS)), 0)
        column = column + 1 + np.where(gap & 2, np.where(rng.random(N_PAIRS) < 0.8, right, 1), 0)


def of_letters(rng: np.random.Generator, n_rows: int, n_columns: int) -> Values:
    """Scores of sequences over two to four letters, the subject a copy of the query with deletions in it."""
    letters = rng.integers(2, 5, N_PAIRS)
    query = rng.integers(0, letters, (n_rows, N_PAIRS))
    step = np.where(rng.random((n_columns, N_PAIRS)) < 0.2, rng.integers(0, 6, (n_columns, N_PAIRS)), 1)
    copied = np.take_along_axis(query, np.cumsum(step, axis=0) % n_rows, axis=0)
    subject = np.where(rng.random((n_columns, N_PAIRS)) < 0.2, rng.integers(0, letters, copied.shape), copied)
    equal = query[:, None] == subject[None]
    return np.where(equal, rng.integers(1, 12, N_PAIRS), -rng.integers(0, 12, N_PAIRS)).astype(np.int32)


def extreme(rng: np.random.Generator, n_rows: int, n_columns: int) -> Values:
    """Scores of a matrix with the largest and the smallest bytes."""
    scores = rng.choice([-128, -127, 0, 126, 127], (n_rows, n_columns, N_PAIRS), p=[0.5, 0.2, 0.1, 0.1, 0.1])
    return scores.astype(np.int32)


def some_pairs(seed: int, rows: int) -> Iterator[Pairs]:
    """Arrays of pairs of each kind."""
    rng = np.random.default_rng([seed, rows])
    for make in (on_a_path, on_a_path, of_letters, extreme):
        scores = make(rng, int(rng.integers(rows, 3 * rows + 2)), int(rng.integers(4, 15)))
        yield Pairs(scores, *gap_costs(rng, rows))


def violation(pairs: Pairs, rows: int, steps: dict[str, Step]) -> str | None:
    """What the recurrence breaks for some of the pairs, or None if all their cells and scores are bounded."""
    exact = exact_cells(pairs)
    found = bounds(pairs, rows, steps)
    below = found.kept < exact
    if below.any():
        i, j, pair = np.argwhere(below)[0]
        return f"cell ({i}, {j}) of pair {pair}: {found.kept[i, j, pair]}, exact {exact[i, j, pair]}"
    best = exact.max(axis=(0, 1))
    if (found.score < best).any():
        pair = np.flatnonzero(found.score < best)[0]
        return f"score of pair {pair}: {found.score[pair]}, exact {best[pair]}"
    return None


@pytest.mark.parametrize("rows", ROWS)
def test_no_cell_is_below_its_exact_score(rows: int) -> None:
    for seed in range(10):  # 80,000 pairs
        for pairs in some_pairs(seed, rows):
            assert violation(pairs, rows, dict(RECURRENCE)) is None, seed


CHANGES: dict[str, dict[str, Step]] = {
    "pairs score one less": {"paired": lambda diagonal, score: diagonal + score - 1},
    "pairs ignore the cell before": {"paired": lambda diagonal, score: score + 0 * diagonal},
    "the band leaves out its first row": {"band": lambda paired: paired[1:].max(axis=0)},
    "the band leaves out its last row": {"band": lambda paired: paired[:-1].max(axis=0)},
    "the band takes its last row": {"band": lambda paired: paired[-1]},
    "opening costs one more": {"opened": lambda best, first: best - first - 1},
    "gaps omit E": {"highest_gap": lambda e, f, opened: largest(f, opened, 0)},
    "gaps omit F": {"highest_gap": lambda e, f, opened: largest(e, opened, 0)},
    "gaps omit the gap that opens": {"highest_gap": lambda e, f, opened: largest(e, f, 0)},
    "gaps omit 0": {"highest_gap": largest},
    "gaps cost one more": {"highest_gap": lambda e, f, opened: largest(largest(e, f, opened) - 1, 0)},
    "cells omit their pair": {"kept": lambda paired, gap: largest(gap, NEVER + 0 * paired)},
    "cells omit gaps": {"kept": lambda paired, gap: largest(paired, 0 * gap)},
    "E omits the gap that opens": {"next_e": lambda e, opened, extend: e - extend},
    "E omits the longer gap": {"next_e": lambda e, opened, extend: opened},
    "E costs one more": {"next_e": lambda e, opened, extend: largest(e - extend - 1, opened)},
    "E pays for the gap that opens twice": {"next_e": lambda e, opened, extend: largest(e - extend, opened - extend)},
    "F omits the gap that opens": {"next_f": lambda gap, opened, cost: gap - cost},
    "F omits the longer gap": {"next_f": lambda gap, opened, cost: opened},
    "F costs one more": {"next_f": lambda gap, opened, cost: largest(gap - cost - 1, opened)},
    "F pays for the gap that opens": {"next_f": lambda gap, opened, cost: largest(gap, opened) - cost},
    "a band costs its rows alone": {"band_cost": lambda rows, first, extend: rows * extend},
    "a band costs an opening": {"band_cost": lambda rows, first, extend: first},
    "a band costs one row more": {"band_cost": lambda rows, first, extend: np.minimum((rows + 1) * extend, first)},
    "a band costs one more": {"band_cost": lambda rows, first, extend: np.minimum(rows * extend, first) + 1},
    "the look omits the opening": {"look": lambda e, open_, extend: e + COLUMNS_PER_LOOK * extend},
    "the look omits the extensions": {"look": lambda e, open_, extend: e + open_ + extend},
    "the look is one column short": {"look": lambda e, open_, extend: e + open_ + (COLUMNS_PER_LOOK - 1) * extend},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("rows", mostly_thorough([2, 4, 6], 4))
def test_a_change_of_any_step_is_found(change: str, rows: int) -> None:
    steps = {**RECURRENCE, **CHANGES[change]}
    assert any(violation(pairs, rows, steps) for seed in range(10) for pairs in some_pairs(seed, rows))


def test_a_change_of_every_step_is_tried() -> None:
    assert {name for change in CHANGES.values() for name in change} == set(RECURRENCE)


@pytest.mark.parametrize("rows", [2, 3, 4, 6, 8])
def test_saturating_lanes_bound_every_score_below_theirlargest(rows: int) -> None:
    """A score that lanes of 8 bits cannot represent leaves a bound that reaches their largest number."""
    for seed in range(3):
        for pairs in some_pairs(100 + seed, rows):
            best = exact_cells(pairs).max(axis=(0, 1))
            assert (bounds(pairs, rows, lanes=True).score >= np.minimum(best, 255)).all()


def narrow_pairs(seed: int, rows: int) -> Iterator[Pairs]:
    """Pairs whose scores and gap costs fit wrapping lanes; some have scores below the lowest that these lanes add."""
    for pairs in some_pairs(seed, rows):
        extend = np.minimum(pairs.extend, 8)
        opening = np.minimum(pairs.open, -LOWEST_SCORE - 2 * extend)
        # Every second matrix has high scores, so that numbers reach the largest one of a lane.
        scores = np.minimum(pairs.scores + np.where(np.arange(N_PAIRS) % 2, 16, 0), HIGHEST_SCORE)
        yield Pairs(scores.astype(np.int32), opening.astype(np.int32), extend.astype(np.int32))


def wrapping_violation(rows: int, largest_bound: int, steps: dict[str, Step]) -> bool:
    """Whether wrapping lanes miss a score, where bounds from ``largest_bound`` on stand for all larger ones."""
    for seed in range(6):
        for pairs in narrow_pairs(seed, rows):
            best = exact_cells(pairs).max(axis=(0, 1))
            if (bounds(pairs, rows, steps).score < np.minimum(best, largest_bound)).any():
                return True
    return False


@pytest.mark.parametrize("rows", [2, 3, 4, 6, 8])
def test_wrapping_lanes_bound_every_score_below_their_largest(rows: int) -> None:
    """They also give the same bounds as numbers without limits, if no score is below the lowest that they add."""
    assert not wrapping_violation(rows, LARGEST_WRAPPING, dict(WRAPPING))
    n_compared = 0
    for pairs in narrow_pairs(31, rows):
        limited = Pairs(np.maximum(pairs.scores, LOWEST_SCORE), pairs.open, pairs.extend)
        defined = np.minimum(bounds(limited, rows).score, LARGEST_WRAPPING)
        found = np.minimum(bounds(limited, rows, WRAPPING).score, LARGEST_WRAPPING)
        np.testing.assert_array_equal(found, defined)
        n_compared += int((defined > 30).sum())
    assert n_compared > 1000


def test_wrapping_lanes_need_their_limits() -> None:
    """Without the room for the highest score, or without the 0 of every cell, a score is missed."""
    assert wrapping_violation(4, LARGEST_WRAPPING + HIGHEST_SCORE, dict(WRAPPING))
    assert wrapping_violation(4, LARGEST_WRAPPING, {**WRAPPING, "highest_gap": largest})


def test_wrapping_lanes_need_raised_scores() -> None:
    """A score that is too low wraps to a high number, so that bounds are higher than with raised scores."""
    pairs = next(narrow_pairs(1, 4))
    low = Pairs(np.where(pairs.scores < 0, -128, pairs.scores).astype(np.int32), pairs.open, pairs.extend)
    not_raised: dict[str, Step] = {**WRAPPING, "paired": lambda diagonal, score: wrapped(diagonal + score)}
    assert (bounds(low, 4, not_raised).score > bounds(low, 4, WRAPPING).score).any()


def test_the_exact_cells_are_those_of_the_reference_engine() -> None:
    """Expected values: the reference engine, on the largest cell of each pair."""
    pairs = next(some_pairs(7, 4))
    n_rows, n_columns, _ = pairs.scores.shape
    best = exact_cells(pairs).max(axis=(0, 1))
    for pair in range(200):
        table = np.full((n_rows, 32), -128, np.int8)
        table[:, :n_columns] = pairs.scores[:, :, pair]
        gap = GapPenalty(int(pairs.open[pair]), int(pairs.extend[pair]))
        profile = QueryProfile(np.arange(n_rows, dtype=np.int32), table, gap)
        assert local_scores(profile, [np.arange(n_columns, dtype=np.uint8)])[0] == best[pair]
