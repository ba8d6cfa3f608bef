"""The list of every search is the complete list, cut afterwards: random searches of data that hurt.

Source: :mod:`tests.search.complete_lists`, which computes every alignment of every subject and then applies the
documented rules in plain Python. :mod:`tests.search.list_cases` draws the searches; the campaign
(``tests/campaign/test_lists.py``) draws many more of them.
"""

from dataclasses import replace
from typing import Any

import pytest

from swsearch.hits import limits
from swsearch.search import ranking, score_batches, threshold
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import PROTEIN
from tests.search import complete_lists
from tests.search.complete_lists import expected_list
from tests.search.list_cases import ALL, GIVEN, INFINITE, ORDER, SHARES, Case, World, differences, failures
from tests.tiers import mostly_thorough

SEED = 36
FAULTS = {
    (SEED, 110): range(18, 19),  # the initial threshold decided what a round includes
    (SEED, 130): range(7, 8),  # the top-k bound took unadjusted E-values for adjusted ones
    (7, 87): range(23, 24),  # an alignment in an earlier frame, as good as the last one, was not looked for
}
OFTEN = [(SEED, number) for number in range(0, len(ORDER), 3)]
CASES = {(SEED, number): range(12) for number in range(len(ORDER))} | FAULTS
"""The cases of each world, which a seed and a number draw."""


@pytest.mark.parametrize(("seed", "number"), mostly_thorough(CASES, *OFTEN, *FAULTS))
def test_every_list_is_the_complete_list_cut_afterwards(tmp_path, seed, number):
    """Each world is one database with some searches and narrowed reports of two queries."""
    with World(seed, number, tmp_path) as world:
        found = failures(world, CASES[seed, number])
    assert not found, "\n" + "\n".join(found)


INNER = {
    "align as many subjects at once as are listed": ([ranking], "_MIN_BLOCK", 1),
    "many thresholds for lengths": ([score_batches, threshold], "LENGTH_STEPS", (3, 6, 9, 12, 16, 24, 32)),
    "an initial threshold where it can be": ([threshold], "SMALLEST_SHARE", 1),
    "no initial threshold": ([threshold], "SMALLEST_SHARE", 10**9),
}
"""Constants that save time or memory and change no list, with values that matter to databases of this size."""
PARTS = [(what, number) for what in INNER for number in range(len(ORDER))]


@pytest.mark.parametrize(("what", "number"), mostly_thorough(PARTS, *[part for part in PARTS if part[1] in (1, 2, 9)]))
def test_no_list_depends_on_a_constant_of_the_search(tmp_path, monkeypatch, what, number):
    """The cases of the test above."""
    modules, name, value = INNER[what]
    for module in modules:
        monkeypatch.setattr(module, name, value)
    with World(SEED, number, tmp_path) as world:
        found = failures(world, CASES[SEED, number])
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("number", mostly_thorough(range(len(ORDER)), 7, 9, 10, 11))
def test_no_list_depends_on_the_way_of_the_search(tmp_path, number):
    """All ways of this process for the same options: engines, threads, partitions, slices and shards."""
    with World(SEED, number, tmp_path) as world:
        options: dict[str, Any] = {"top": ALL, "evalue": world.kind.evalue, "max_hsps": 3}
        masked = {**options, "mask": world.treatment["mask"]}
        several = [options, masked, {**masked, "composition": "bias"}]
        ways = set(SHARES) - {"emulated GPU", "slices" if len(world.parts) > 1 else ""}
        for one in several if world.lists.aligned is PROTEIN else several[:2]:
            assert [problem for way in sorted(ways) for problem in world.problems(Case(one, way))] == []


@pytest.mark.parametrize("way", ["cpu", "slices"])
def test_a_round_includes_the_best_subjects_whatever_the_list_has(tmp_path, monkeypatch, way):
    """With a limit of 7 subjects in place of 10,000; the judge has a limit of its own."""
    for module in (complete_lists, limits):
        monkeypatch.setattr(module, "MOST_INCLUDED", 7)
    with World(SEED, 0, tmp_path) as world:
        for top in (1, ALL):
            options = {"top": top, "evalue": INFINITE, "iterations": 3, "inclusion_evalue": 1000.0}
            wanted = expected_list(world.lists, (GIVEN, 0), world.queries[0], world.options(Case(options, way)))
            assert wanted.n_rounds > 1
            for more in ({"max_hsps": 3}, {"composition": "none"}):
                assert world.problems(Case({**options, **more}, way)) == []


def test_the_number_of_judged_alignments_is_the_stated_one(tmp_path, monkeypatch):
    """With a number of two, as that of long sequences."""
    for module in (complete_lists, threshold):
        monkeypatch.setattr(module, "JUDGED_CELLS", 1)
    with World(SEED, 10, tmp_path) as world:
        for options in ({"top": 1}, {"top": ALL}, {"top": ALL, "max_hsps": 2}, {"top": ALL, "max_hsps": 5}):
            assert world.problems(Case({**options, "evalue": world.kind.evalue}, "cpu")) == []


def test_the_judge_sees_each_fault_of_a_list(tmp_path):
    """By hand: a lost hit, two subjects in the wrong order, a wrong E-value, a lost alignment, a wrong count."""
    case = Case({"top": ALL, "evalue": INFINITE, "max_hsps": 3}, "cpu")
    with World(SEED, 0, tmp_path) as world:
        result = world.found(case)[0]
        options: SearchOptions = world.options(case)
        wanted = expected_list(world.lists, (GIVEN, 0), world.queries[0], options)
    assert differences(result, wanted, is_search=True) == []
    hits = result.hits
    second = next(place for place, hit in enumerate(hits) if hit.hsp == 2)
    last = hits[-1].rank
    faulty = {
        "subjects, expected": tuple(hit for hit in hits if hit.rank < last),
        "expected [": (replace(hits[0], evalue=hits[0].evalue / 2), *hits[1:]),  # type: ignore[operator]
        "rank": (*hits[:second], *hits[second + 1 :]),
        "the ranks are": tuple(replace(hit, rank=last + 1 - hit.rank) for hit in hits),
        "have the numbers": (replace(hits[0], hsp=2), *hits[1:]),
        "the rounds are": tuple(replace(hit, round=1) for hit in hits),
    }
    for words, changed in faulty.items():
        assert words in "; ".join(differences(replace(result, hits=changed), wanted, is_search=True))
    fewer = replace(result, n_passed=result.n_passed - 1)
    assert differences(fewer, wanted, is_search=True) == [
        f"n_passed is {result.n_passed - 1}, expected {result.n_passed}"
    ]
