"""The pages on concepts: their figures are those that the program computes."""

import json
import math
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[1]
CONCEPTS = ROOT / "docs" / "concepts"
RESULTS = ROOT / "benchmarks" / "results"


def load(path):
    return json.loads(path.read_text())


def test_the_figures_on_statistics_are_computed_again(monkeypatch):
    """Source: the searches that the page describes; its data and tables hold what they find."""
    monkeypatch.syspath_prepend(str(CONCEPTS / "figures"))
    import plot_statistics

    numbers = plot_statistics.measure()
    for name in ("plot_statistics", "theme"):
        monkeypatch.delitem(sys.modules, name)
    assert numbers == load(CONCEPTS / "statistics.json")

    page = (CONCEPTS / "statistics.md").read_text()
    chance = numbers["chance"]
    for score in (40, 50, 60, 70):
        place = chance["scores"].index(score)
        assert f"| {score} | {chance['found'][place]:,.1f} | {chance['expected'][place]:,.1f} |" in page
    last, share = chance["scores"][-1], chance["found"][-1]
    assert (last, share) == (73, 1 / plot_statistics.N_QUERIES)

    real = numbers["real"]
    places = [real["limits"].index(limit) for limit in (0.001, 0.1, 1, 10)]
    expected = " | ".join(f"{real['queries'] * real['limits'][one]:g}" for one in places)
    assert f"| expected by chance | {expected} |" in page
    for name in ("shuffled", "real"):
        assert f"| {name} proteins | {' | '.join(str(real[name][one]) for one in places)} |" in page

    needed = [round(bits_for(0.001, numbers["bits"]["bits"], values)) for values in numbers["bits"]["evalues"].values()]
    assert needed == [36, 44, 51]
    assert re.search(r"takes 36 bits among .*, 44 bits among .*, and 51 bits", page.replace("\n", " "))


def bits_for(evalue, bits, evalues):
    """The bit score with this E-value, where its logarithm is linear between two neighbours."""
    place = next(place for place, value in enumerate(evalues) if value <= evalue)
    above, below = math.log(evalues[place - 1] / evalue), math.log(evalue / evalues[place])
    return bits[place - 1] + (bits[place] - bits[place - 1]) * above / (above + below)


def test_the_page_on_exhaustive_searches_cites_the_page_on_differences():
    """Source: the table of the page on differences."""
    page = (CONCEPTS / "why-exhaustive.md").read_text()
    differences = (ROOT / "docs" / "reference" / "differences.md").read_text()
    both, alone, lower, higher, missed = (
        int(re.search(rf"^\| {kind} \|.* ([\d,]+) \|$", differences, re.MULTILINE)[1].replace(",", ""))
        for kind in ("reported by both", "reported by swsearch alone", "lower score", "better than the optimum",
                     "reported by the other program alone")
    )  # fmt: skip
    assert f"Of {both + alone:,} pairs" in page
    assert f"blastp reported {both:,}, {lower:,} of them with a lower" in page
    assert (higher, missed) == (0, 0)


def test_the_rates_beside_another_program_are_those_of_one_session():
    """Source: two results of the same commit and device, which the page "How good, how fast" shows together."""
    ours, theirs = load(RESULTS / "cuda-h200.json"), load(RESULTS / "cudasw4-h200.json")
    assert ours["commit"] == theirs["commit"]
    assert (ours["subjects"], ours["residues"]) == (theirs["subjects"], theirs["residues"])


def test_every_picture_has_a_title_and_two_schemes():
    """Source: the pages. A picture that no page shows would be a leftover."""
    shown = set()
    for page in CONCEPTS.glob("*.md"):
        shown |= set(re.findall(r"!\[[^\]]+\]\(([\w-]+\.svg)\)", page.read_text()))
    assert shown == {path.name for path in CONCEPTS.glob("*.svg")}
    for name in shown:
        picture = (CONCEPTS / name).read_text()
        assert re.search(r"<title>.{20,}</title>", picture), name
        assert "@media (prefers-color-scheme: dark)" in picture, name
        drawn = picture.partition("</style>")[2]
        assert "var(--c0)" in drawn, name
        assert not re.search(r"#[0-9a-f]{6}", drawn), (name, "a colour that is the same in both schemes")
