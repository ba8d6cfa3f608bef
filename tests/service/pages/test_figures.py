"""Figures of a result, against counts made by hand or one by one."""

import re
from dataclasses import replace

import numpy as np
import pytest

from swsearch.service.pages.figures import coverage_figure, score_figure
from tests.store.conftest import RUN

FILTERED = replace(RUN, parameters={"evalue": "inf", "chosen_subjects": 40})


def run_with(n_subjects, evalue):
    """A run that searched all of so many subjects."""
    return replace(RUN, parameters={"evalue": evalue}, database=replace(RUN.database, n_subjects=n_subjects))


def heights(svg):
    return [float(height) for height in re.findall(r'class="count"[^>]* height="([\d.]+)"', svg)]


def test_coverage_counts_the_alignments_over_each_position():
    """By hand: 0-4, 2-6 and 3-4 of ten positions; 6 of 10 are covered, position 4 (index 3) by all three."""
    figure = coverage_figure(np.array([0, 2, 3]), np.array([4, 6, 4]), 10)
    assert "6 of 10 positions of the query lie in at least one of 3 alignments" in figure.caption
    assert "at most 3 alignments lie over one position" in figure.caption
    path = re.search(r'class="area" d="([^"]*)"', figure.svg)[1]
    tops = [float(y) for y in re.findall(r"L[\d.]+ ([\d.]+)L", path)]
    assert tops == pytest.approx([180 * (1 - depth / 3) for depth in (1, 1, 2, 3, 1, 1, 0, 0, 0, 0)])


def test_coverage_of_a_long_query_shows_its_deepest_position_in_each_step():
    """By hand: one alignment of a single position of 100,000 is drawn."""
    figure = coverage_figure(np.array([70_000]), np.array([70_001]), 100_000)
    assert figure.svg.count(" 0.0L") == 2  # the two corners of its step


def test_every_subject_is_in_one_bar():
    rng = np.random.default_rng(1)
    bits = rng.uniform(20, 300, 500)
    figure = score_figure(bits, 1e6 * np.exp2(-bits), run_with(500, 10.0), 500)
    counts = [int(count.replace(",", "")) for count in re.findall(r"bits: ([\d,]+)</title>", figure.svg)]
    assert sum(counts) == 500
    assert f"500 subjects of the list, which have {bits.min():.1f} to {bits.max():.1f} bits" in figure.caption
    assert "the limit was 10" in figure.caption


def test_the_curve_predicts_what_the_e_values_do():
    """Source: E = c 2^-bits; between two edges lie E(lower) - E(upper) subjects, so the curve has these heights."""
    bits = np.array([10.0, 10.5, 11.0, 20.0, 30.0])
    figure = score_figure(bits, 4096 * np.exp2(-bits), run_with(900, 10.0), 5)
    edges = np.arange(10.0, 32.0)
    expected = 4096 * (np.exp2(-edges[:-1]) - np.exp2(-edges[1:]))
    top = 2.0  # subjects in the tallest bar: 10.0 and 10.5
    share = np.clip(np.log(expected / 0.5) / np.log(2 * top / 0.5), 0, 1)
    drawn = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", re.search(r'class="curve" d="M([^"]*)"', figure.svg)[1])]
    assert drawn == pytest.approx(180 * (1 - share[: len(drawn)]), abs=0.06)
    assert len(drawn) == int((expected > 0.5).sum()) + 1


def test_scores_without_statistics_have_no_figure():
    assert score_figure(np.full(3, np.nan), np.full(3, np.nan), run_with(3, 10.0), 3) is None


@pytest.mark.parametrize("bits", [[40.0], [40.0, 40.0], [0.1, 1e6], [1000.0, 1001.0]])
def test_extreme_scores_give_a_figure(bits):
    """E-values of high scores are 0, because they are below the smallest number."""
    values = np.array(bits)
    figure = score_figure(values, np.exp2(20 - values), run_with(100, "inf"), len(bits))
    assert len(heights(figure.svg)) in (1, 2)
    assert "nan" not in figure.svg
    assert "inf" not in figure.caption


@pytest.mark.parametrize(
    ("run", "n_passed", "present", "absent"),
    [
        (run_with(3, 10.0), 3, ["(the limit was 10)"], ["other", "passed the limits", "filters"]),
        (run_with(1000, 10.0), 3, ["the 997 other subjects are not stored"], ["passed the limits", "filters"]),
        (
            run_with(1000, 10.0),
            10,
            ["7 weaker subjects passed the limits", "the 997 other subjects are not stored"],
            ["filters"],
        ),
        (FILTERED, 10, ["left subjects out", "the 37 other subjects"], ["weaker", "the limit was"]),
    ],
)
def test_the_caption_says_which_subjects_are_counted(run, n_passed, present, absent):
    bits = np.array([20.0, 21.0, 22.0])
    caption = score_figure(bits, 1e6 * np.exp2(-bits), run, n_passed).caption
    assert "3 subjects of the list" in caption
    assert [text for text in present if text not in caption] == []
    assert [text for text in absent if text in caption] == []
