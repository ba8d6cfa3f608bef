"""Batches of pairs, the reference implementation, and the table of a pair.

Expected values: the pair aligner for single pairs, which is tested with ``whole_matrix.py``, and counting by hand.
"""

import json

import numpy as np
import pytest

from swsearch.engine.cpu.pairs import SHORT_LETTERS, CpuPairs, cigars, usable_instruction_sets
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, SequencePairs, Sequences
from swsearch.engine.reference import MAX_CELLS, ReferencePairs
from swsearch.engine.registry import Machine
from swsearch.errors import InputError
from swsearch.pairs.aligner import PairAligner
from swsearch.pairs.pair_alignment import COST_SETS, MODES, align_pair, align_pairs, scheme_scoring
from swsearch.pairs.pair_matrices import MAX_CELLS as MATRIX_CELLS
from swsearch.pairs.pair_matrices import score_matrix
from swsearch.pairs.sequence import PairSequence, from_record
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.record import SequenceRecord

SCORINGS = {
    "protein": (PROTEIN, "ARNDCQEGHILKMFPSTWYVUX", scheme_scoring(default_scheme(PROTEIN))),
    "dna": (DNA, "ACGTacgtU", scheme_scoring(default_scheme(DNA))),
    "ambiguous dna": (DNA, "ACGTNRY", scheme_scoring(default_scheme(DNA))),
    "sw2023": (DNA, "ACGT", COST_SETS["sw2023"]),
}


def drawn_pairs(seed, letters, alphabet, n=40):
    """Draw pairs of 1 to 90 letters; a subject is its query with changes, or an unrelated sequence."""
    rng = np.random.default_rng(seed)
    pairs = []
    for number in range(n):
        query = rng.choice(list(letters), rng.integers(1, 90))
        subject = rng.choice(list(letters), rng.integers(1, 90))
        if number % 3:
            changed = np.where(rng.random(len(query)) < 0.2, rng.choice(list(letters)), query)
            subject = changed[rng.random(len(query)) > 0.1] if len(query) > 9 else changed
        texts = ("".join(query), "".join(subject))
        if alphabet is None:
            pairs.append(tuple(PairSequence(f"p{number}", text) for text in texts))
        else:
            pairs.append(tuple(from_record(SequenceRecord(f"p{number}", alphabet.encode(t), alphabet)) for t in texts))
    return pairs


def told(alignment):
    """Return the fields of an alignment, by name."""
    names = ("score", "query_end", "subject_end", "query_start", "subject_start", "cigar", "mode")
    return {name: getattr(alignment, name) for name in names}


def problems():
    """Yield every mode with every valid scoring, as (mode, free ends, alphabet, letters, scoring)."""
    for mode in MODES:
        if mode in ("edit", "lcs"):
            for free in (None, "HW", "SHW", "query-start") if mode == "edit" else (None,):
                yield mode, free, None, "abcdé", None
            continue
        for alphabet, letters, scoring in SCORINGS.values():
            for free in (None, "query", "subject-end", "query-start") if mode == "semiglobal" else (None,):
                yield mode, free, alphabet, letters, scoring


def test_a_batch_gives_what_one_pair_after_another_gives():
    """Expected values: align_pair for one pair after another."""
    for seed, (mode, free, alphabet, letters, scoring) in enumerate(problems()):
        pairs = drawn_pairs(seed, letters, alphabet, 20)
        for path in (True, False):
            found = align_pairs(pairs, mode, scoring, free_ends=free, path=path, n_threads=2)
            for one, pair in zip(found, pairs, strict=True):
                assert told(one) == told(align_pair(*pair, mode, scoring, free_ends=free, path=path))


def test_the_reference_gives_the_same_alignments():
    """Expected values: align_pair, which its own tests compare with a separate full matrix."""
    for seed, (mode, free, alphabet, letters, scoring) in enumerate(problems()):
        for pair in drawn_pairs(seed, letters, alphabet, 8):
            for path in (True, False):
                given = {"free_ends": free, "path": path}
                found = align_pair(*pair, mode, scoring, **given, backend=ReferencePairs())
                assert told(found) == told(align_pair(*pair, mode, scoring, **given))
            h = score_matrix(pair, mode, scoring, free)
            assert h.shape == (len(pair[0]) + 1, len(pair[1]) + 1)
            assert h[found.query_end, found.subject_end] == found.score


@pytest.mark.parametrize("instruction_set", usable_instruction_sets())
def test_every_instruction_set_and_thread_count_gives_the_same_batch(instruction_set):
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 300, 60)
    letters = rng.integers(0, 4, (2, lengths.sum())).astype(np.uint16)
    pairs = SequencePairs(*(Sequences(side, np.cumsum(lengths)) for side in letters))
    problem = AlignmentProblem(True, FreeEnds.ALL, 0, 2, 1, -1)
    wanted = CpuPairs().align(pairs, problem)
    for threads in (1, 3):
        found = CpuPairs(threads, instruction_set=instruction_set).align(pairs, problem)
        for name in ("ends", "run_ends", "runs"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_pairs_keep_their_order_whatever_backend_takes_them(monkeypatch):
    """Long pairs and empty ones lie between short ones; batches are small. Expected values: align_pair."""
    pairs = drawn_pairs(3, "abc", None, 10)
    pairs.insert(2, (PairSequence("long", "ab" * SHORT_LETTERS), PairSequence("long", "abc")))
    pairs.insert(7, (PairSequence("empty", ""), PairSequence("empty", "abc")))
    monkeypatch.setattr("swsearch.pairs.aligner.BATCH_PAIRS", 3)
    with PairAligner("edit", machine=Machine(threads=2)) as chosen:
        found = list(chosen.align(iter(pairs)))
    assert [(one.query.letters, one.subject.letters) for one in found] == [(a.letters, b.letters) for a, b in pairs]
    for one, pair in zip(found, pairs, strict=True):
        assert told(one) == told(align_pair(*pair, "edit"))


def test_cigars_are_spelled_by_any_number_of_threads():
    """Expected values: align_pair, which writes CIGARs by another function. The pairs exceed one thread's share."""
    pairs = drawn_pairs(7, "ACGT", DNA, 150)
    scoring = COST_SETS["sw2023"]
    wanted = [align_pair(*pair, "global", scoring).cigar for pair in pairs]
    for threads in (1, 4):
        assert [found.cigar for found in align_pairs(pairs, "global", scoring, n_threads=threads)] == wanted


def test_arrays_that_do_not_fit_are_refused():
    problem = AlignmentProblem(False, FreeEnds.NONE, 0, 2, 1, -1)
    two = Sequences(np.zeros(4, np.uint16), np.array([2, 4]))
    for wrong, message in (
        (Sequences(two.letters, np.array([3, 2])), "do not increase"),
        (Sequences(two.letters, np.array([2, 3])), "does not end where the letters do"),
        (Sequences(two.letters, np.array([4])), "numbers of queries"),
        (Sequences(np.full(4, 0xFFFF, np.uint16), two.ends), "no score"),
    ):
        with pytest.raises(InputError, match=message):
            CpuPairs().align(SequencePairs(wrong, two), problem)
    pairs = SequencePairs(two, two)
    paths = CpuPairs().align(pairs, problem)
    assert cigars(paths, pairs) == cigars(paths, pairs, n_threads=3) == ["2=", "2="]
    paths.runs[0] = 3 << 2
    with pytest.raises(ValueError, match="beyond their sequences"):
        cigars(paths, pairs)
    paths.runs[0] = 2 << 2
    paths.ends[0, 3] = -1
    with pytest.raises(ValueError, match="a start lies beyond"):
        cigars(paths, pairs)
    paths.ends[0, 3] = 0
    paths.runs[0] = 2 << 2 | 3
    with pytest.raises(ValueError, match="no operation"):
        cigars(paths, pairs)


# --- the command ---


def test_one_file_holds_pairs_in_turns(run, tmp_path):
    """Expected values: the same records in two files."""
    (tmp_path / "both.fa").write_text(">q1\nACGTTGCA\n>s1\nACGTGCA\n>q2\nGGGG\n>s2\nGGTGG\n")
    (tmp_path / "q.fa").write_text(">q1\nACGTTGCA\n>q2\nGGGG\n")
    (tmp_path / "s.fa").write_text(">s1\nACGTGCA\n>s2\nGGTGG\n")
    options = ["--costs", "sw2023", "--mode", "global", "--format", "jsonl"]
    wanted = run("q.fa", "s.fa", *options)
    assert wanted[0] == 0
    assert [json.loads(line)["cigar"] for line in wanted[1].splitlines()] == ["3=1I4=", "2=1D2="]
    assert run("both.fa", "--pairs", *options)[:2] == wanted[:2]
    assert run("q.fa", "s.fa", "--serial", *options)[:2] == wanted[:2]
    assert run("both.fa", "--pairs", "--mode", "edit", "--format", "tsv")[0] == 0


def test_the_table_of_a_small_pair_is_written(run, tmp_path):
    """The distances of RISOTTO and PRESTO by hand: the borders count up, the last distance is 4."""
    assert run("--mode", "edit", "--text", "RISOTTO", "PRESTO", "--matrix-out", "table.tsv")[0] == 0
    rows = [line.split("\t") for line in (tmp_path / "table.tsv").read_text().splitlines()]
    assert rows[0] == ["", "", *"PRESTO"]
    assert [row[0] for row in rows[1:]] == ["", *"RISOTTO"]
    assert rows[1][1:] == list("0123456")
    assert [row[1] for row in rows[1:]] == list("01234567")
    assert rows[2][1:] == list("1112345")
    assert rows[-1][-1] == "4"


def test_what_does_not_go_together_is_one_clear_line(run, tmp_path):
    (tmp_path / "one.fa").write_text(">a\nACGT\n>b\nACGT\n>c\nACGT\n")
    for arguments, message in (
        (["one.fa", "--pairs"], "has 3 records; --pairs needs queries and subjects alternately"),
        (["--mode", "edit", "--text", "--pairs", "AB"], "leave --pairs out"),
        (["one.fa", "one.fa", "--kernel", "wavefront"], "is for global problems with linear gaps"),
        (["one.fa", "one.fa", "--matrix-out", "x.tsv"], "--matrix-out draws one pair"),
    ):
        code, out, error = run(*arguments)
        assert (code, out) == (1, "")
        assert message in error
        assert len(error.splitlines()) == 1
    for words in (["one.fa"], ["one.fa", "--text"], ["one.fa", "one.fa", "--pairs"]):
        problem = "give QUERY and SUBJECT, or with --pairs one file that holds the records of both in turns"
        assert run(*words) == (2, "", f"swsearch: error: {problem}\n")
    wavefront = ["--mode", "edit", "--text", "AB", "BA", "--kernel", "wavefront"]
    assert "computes scores only" in run(*wavefront, "--cigar")[2]
    too_many = "A" * (MATRIX_CELLS // 1000 + 1)
    code, _, error = run("--mode", "edit", "--text", too_many, "A" * 1000, "--matrix-out", tmp_path / "x.tsv")
    assert code == 1
    assert "a table of up to 4,000,000 is written" in error
    assert not (tmp_path / "x.tsv").exists()
    code, _, error = run("--mode", "edit", "--text", "A" * (MAX_CELLS // 1000 + 1), "A" * 1000, "--serial")
    assert code == 1
    assert "too many for complete matrices" in error


def test_matrices_of_residues_are_refused_for_texts():
    with pytest.raises(InputError, match="a text is given"):
        align_pairs([(PairSequence("", "AB"), PairSequence("", "AB"))], "local", scheme_scoring(default_scheme(DNA)))
