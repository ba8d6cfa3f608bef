"""Free ends of ``edit`` and ``semiglobal``: the words of ``--free-ends``, and the alignments of edlib's modes."""

import json
from collections.abc import Callable

import edlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.engine.pair_arrays import FreeEnds
from swsearch.errors import InputError
from swsearch.pairs.pair_alignment import EDLIB_MODES, align_pair, free_ends_of_mode
from swsearch.pairs.sequence import PairSequence

Run = Callable[..., tuple[int, str, str]]


def edited(query: str, subject: str, free: str | None = None, *, path: bool = True):  # type: ignore[no-untyped-def]
    return align_pair(PairSequence("q", query), PairSequence("s", subject), "edit", free_ends=free, path=path)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw two texts of few letters; in half of the cases, the query is a part of the subject with changed letters."""
    letters = draw(st.sampled_from(["ab", "ACGT", "ACDEFGHIKLMNPQRSTVWY", "aéß☃𝛼"]))
    texts = st.text(letters, min_size=1, max_size=70)
    query, subject = draw(texts), draw(texts)
    if draw(st.booleans()):
        begin = draw(st.integers(0, len(subject) - 1))
        part = subject[begin : begin + draw(st.integers(1, 70))]
        at = draw(st.integers(0, len(part)))
        query = part[:at] + query[:2] + part[at + 1 :]
    return query, subject


@given(pairs())
@settings(max_examples=700, deadline=None)
def test_distances_and_ends_are_edlibs(pair: tuple[str, str]) -> None:
    """Expected: edlib in its three modes, the first of its locations; the path has as many edits as the distance.

    Where several starts are as good, edlib reports the first one, and the rule of ties here may give another: the
    distance of the query to the aligned part of the subject is then the same, which edlib judges again.
    """
    query, subject = pair
    for mode in EDLIB_MODES:
        judged = edlib.align(query, subject, mode=mode, task="locations")
        found = edited(query, subject, mode)
        first, last = judged["locations"][0]
        assert (found.score, found.subject_end) == (judged["editDistance"], last + 1)
        assert (found.query_start, found.query_end) == (0, len(query))
        assert (found.subject_start >= first) if mode == "HW" else (found.subject_start == 0)
        counts = found.counts
        assert counts is not None
        assert counts.columns - counts.identities == found.score
        aligned = found.aligned[1]
        again = edlib.align(query, aligned)["editDistance"] if aligned else len(query)
        assert again == found.score
        alone = edited(query, subject, mode, path=False)
        assert (alone.score, alone.subject_end) == (found.score, found.subject_end)
        assert (alone.subject_start is None) == (mode == "HW")


def test_a_path_without_ties_is_edlibs() -> None:
    """Expected: edlib's CIGAR and location. All letters of the subject differ, so only one path is the shortest."""
    rng = np.random.default_rng(3)
    alphabet = [chr(0x4E00 + k) for k in range(250)]
    for _ in range(60):
        rng.shuffle(alphabet)
        subject, others = alphabet[:150], iter(alphabet[150:])
        begin, length = int(rng.integers(0, 70)), int(rng.integers(30, 80))
        query = []
        for number, letter in enumerate(subject[begin : begin + length]):
            kind = "=" if number % 10 != 5 or number > length - 5 else str(rng.choice(list("=XID")))
            query += [] if kind in "XD" else [letter]
            query += [next(others)] if kind in "XI" else []
        for mode, text in (("HW", subject), ("SHW", subject[begin:]), ("NW", subject[begin : begin + length])):
            judged = edlib.align("".join(query), "".join(text), mode=mode, task="path")
            found = edited("".join(query), "".join(text), mode)
            assert (found.score, found.cigar) == (judged["editDistance"], judged["cigar"])
            assert [(found.subject_start, found.subject_end - 1)] == judged["locations"]


def test_the_other_side_and_the_other_end_are_the_same_problem_in_a_mirror() -> None:
    """Expected: edlib with query and subject exchanged, or with both reversed."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        one, other = ("".join(rng.choice(list("ACGT"), rng.integers(1, 60))) for _ in range(2))
        prefix = edlib.align(other, one, mode="SHW")["editDistance"]
        assert edited(one, other, "query-end").score == prefix
        assert edited(one, other, "query").score == edlib.align(other, one, mode="HW")["editDistance"]
        suffix = edlib.align(one[::-1], other[::-1], mode="SHW")["editDistance"]
        assert edited(one, other, "subject-start").score == suffix


def test_words_of_ends_may_be_combined() -> None:
    """By the definition of each word; a mode of edlib is another word for its free ends."""
    assert free_ends_of_mode("semiglobal", "query-start,subject-end") == FreeEnds.QUERY_START | FreeEnds.SUBJECT_END
    assert free_ends_of_mode("semiglobal", "query,subject") == free_ends_of_mode("semiglobal") == FreeEnds.ALL
    assert free_ends_of_mode("edit", "hw") == free_ends_of_mode("edit", "subject") == FreeEnds.SUBJECT
    assert free_ends_of_mode("edit", "NW") == free_ends_of_mode("edit") == FreeEnds.NONE


@pytest.mark.parametrize(
    ("mode", "free", "message"),
    [
        ("semiglobal", "subject-middle", "'subject-middle' is unknown"),
        ("semiglobal", "query,", "'' is unknown"),
        ("semiglobal", "NW", "choose mode='global'"),
        ("global", "HW", "is for mode='semiglobal' and edit; leave it out of mode='global'"),
        ("lcs", "subject", "is for mode='semiglobal' and edit"),
        ("edit", "both", "an alignment without letters has distance 0"),
        ("edit", "query-start,subject-end", "an alignment without letters has distance 0"),
    ],
)
def test_ends_that_cannot_be_free_are_refused(mode: str, free: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        free_ends_of_mode(mode, free)


def test_an_overlap_of_two_reads_is_aligned(run: Run) -> None:
    """By hand: the last six letters of the query are the first six of the subject; 12 = 6 · 2."""
    arguments = ["q.fa", "s.fa", "--mode", "semiglobal", "--free-ends", "query-start,subject-end", "--cigar"]
    for name, letters in (("q.fa", "TTTTTACGTCA"), ("s.fa", "ACGTCAGGGG")):
        with open(name, "w") as file:
            file.write(f">{name[0]}\n{letters}\n")
    code, out, _ = run(*arguments, "--format", "json")
    (pair,) = json.loads(out)["pairs"]
    names = ("score", "qstart", "qend", "sstart", "send", "cigar", "free_ends")
    assert code == 0
    assert [pair[name] for name in names] == [12, 6, 11, 1, 6, "6=", ["query-start", "subject-end"]]
    assert "semiglobal, free ends: query-start, subject-end; " in run(*arguments)[1]


def test_every_engine_prints_the_same_part(run: Run) -> None:
    """By hand: MISTAKE without its S is MITAKE, at letters 6 to 12 of the subject; distance 1."""
    arguments = ["--mode", "edit", "--text", "MITAKE", "some MISTAKE here", "--free-ends", "HW"]
    code, out, _ = run(*arguments)
    assert code == 0
    assert [line.split(maxsplit=2)[2] for line in out.splitlines() if "part" in line] == ["1-6", "6-12"]
    assert out.splitlines()[-1] == "insert S"
    assert run(*arguments, "--engine", "reference")[:2] == (0, out)
