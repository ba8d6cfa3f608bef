"""Differential test of every engine: scores, ends and alignments on random and adversarial problems.

A trial draws one scoring scheme and a few queries, and scores them against some dozens of subjects with the CPU engine
in every instruction set that this processor supports, with the reference engine, and with parasail. Ends and alignments
come from every instruction set of the traceback. The expected ends come from parasail (smallest subject end, then
smallest query end); the CIGARs are checked by `rescore`.

A gap of k residues costs open + k * extend in swsearch and open + (k - 1) * extend in parasail, so parasail's open is
set to open + extend. Its 32-bit scan kernels give the expected values, because its striped kernels are known to give
wrong results where gaps are linear.
"""

import shutil
from functools import cache

import numpy as np
import parasail
import pytest

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine, usable_instruction_sets
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import local_scores
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import PAD_SCORE, SubstitutionMatrix, match_mismatch, matrix_names, named_matrix
from swsearch.scoring.scheme import MAX_GAP_COST, GapPenalty, ScoringScheme
from swsearch.search.frames import Frame
from swsearch.sequences.alphabet import DNA, N_CODES, PAD_CODE, PROTEIN, Alphabet
from swsearch.typing import Codes
from tests.campaign.trials import Trial, told
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.hits.rescore import rescore
from tests.support import random_dna, random_protein

KINDS = ("named", "named", "dna", "random", "extreme", "pssm", "saturating", "dna", "named", "few letters")
"""The kinds of trials, used in turn."""
BORDERS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)
"""Lengths at which lanes, blocks and number types end."""
NAMES = tuple(matrix_names(PROTEIN))
REFERENCE_CELLS = 12_000
EMULATED_EVERY = 40
EMULATED_CELLS = 150_000


def draw_gap(rng: np.random.Generator) -> GapPenalty:
    """Draw a gap cost: usual, linear, free to extend, extreme, or arbitrary."""
    kind = rng.integers(6)
    if kind == 0:
        return GapPenalty(*((11, 1), (9, 2), (5, 2), (14, 1), (13, 2))[rng.integers(5)])
    if kind == 1:
        return GapPenalty(0, int(rng.integers(1, 12)))
    if kind == 2:
        return GapPenalty(int(rng.integers(1, 40)), 0)
    if kind == 3:
        costs = (1, 2, 100, 126, 127, 128, 129, 254, 255, 256, 1000, 8191, MAX_GAP_COST)
        return GapPenalty(int(rng.choice(costs)), int(rng.choice((0, 1, 2, 127, 128, 255, 256, MAX_GAP_COST))))
    return GapPenalty(int(rng.integers(0, 30)), int(rng.integers(1, 12)))


def draw_matrix(kind: str, rng: np.random.Generator) -> SubstitutionMatrix:
    """Draw a matrix of the trial's kind."""
    if kind in ("named", "pssm"):
        return named_matrix(NAMES[rng.integers(len(NAMES))])
    if kind == "dna":
        return match_mismatch(int(rng.choice((1, 2, 5, 9, 40, 127))), -int(rng.choice((0, 1, 3, 4, 20, 127))))
    high = {"random": int(rng.integers(2, 20)), "extreme": 127, "saturating": int(rng.integers(20, 128))}.get(kind, 6)
    n = len(PROTEIN.letters)
    scores = np.full((N_CODES, N_CODES), PAD_SCORE, np.int8)
    drawn = rng.integers(-high, high // 2 + 1, (n, n))
    np.fill_diagonal(drawn, rng.integers(1, high + 1, n))
    same = np.arange(n)
    for letter, other in PROTEIN.scored_as.items():
        same[PROTEIN.code(letter)] = PROTEIN.code(other)
    scores[:n, :n] = drawn[np.ix_(same, same)]
    return SubstitutionMatrix(kind, PROTEIN, scores)


def draw_length(rng: np.random.Generator) -> int:
    """Draw a length: mostly short; in one of three cases a border length, in one of thirty a long one."""
    kind = rng.random()
    if kind < 0.03:
        return int(rng.integers(600, 3001))
    if kind < 0.33:
        return int(rng.choice(BORDERS[:18])) + int(rng.integers(0, 2))
    return int(rng.integers(1, 180))


def draw_codes(kind: str, alphabet: Alphabet, length: int, rng: np.random.Generator) -> Codes:
    """Draw residues: natural, of few letters, or any letter of the alphabet, including ambiguous and masked ones."""
    n_letters = len(alphabet.letters)
    if kind == "few letters":
        return rng.integers(0, rng.integers(1, 4), length).astype(np.uint8)
    codes = random_dna(rng, length) if alphabet is DNA else random_protein(rng, length)
    if rng.random() < 0.4:
        strange = rng.random(length) < rng.choice((0.02, 0.3, 1.0))
        codes[strange] = rng.integers(0, n_letters, int(strange.sum()))
    return codes


def changed(codes: Codes, alphabet: Alphabet, rng: np.random.Generator) -> Codes:
    """Return a related sequence: letters are substituted, deleted and inserted, and segments are repeated."""
    rate = rng.choice((0.0, 0.02, 0.1, 0.4))
    now = codes.copy()
    hit = rng.random(len(now)) < rate
    now[hit] = rng.integers(0, 4 if alphabet is DNA else 20, int(hit.sum()))
    now = now[rng.random(len(now)) >= rate / 2]
    for _ in range(rng.integers(0, 3)):
        position = int(rng.integers(0, len(now) + 1))
        now = np.concatenate([now[:position], rng.integers(0, 4, rng.integers(0, 12)).astype(np.uint8), now[position:]])
    if rng.random() < 0.2:
        now = np.tile(now, int(rng.integers(2, 4)))[:3000]
    return now if len(now) else codes[:1].copy()


def theirs(matrix: SubstitutionMatrix) -> parasail.Matrix:
    """Return the matrix in parasail's form: letters A, B, … stand for swsearch's codes."""
    letters = [code for code, letter in enumerate(matrix.alphabet.letters) if letter not in matrix.alphabet.scored_as]
    made = parasail.matrix_create("".join(map(_character, range(len(letters)))), 1, -1)
    for row, query in enumerate(letters):
        for column, subject in enumerate(letters):
            made.set_value(column, row, int(matrix.scores[query, subject]))  # parasail's rows are subjects
    return made


def _character(place: int) -> str:
    return chr(ord("A") + place)


@cache
def _text_table(name: str) -> np.ndarray:
    alphabet = {"dna": DNA, "protein": PROTEIN}[name]
    letters = [code for code, letter in enumerate(alphabet.letters) if letter not in alphabet.scored_as]
    position = {code: n for n, code in enumerate(letters)}
    for letter, other in alphabet.scored_as.items():
        position[alphabet.code(letter)] = position[alphabet.code(other)]
    table = np.zeros(256, np.uint8)
    for code, n in position.items():
        table[code] = ord(_character(n))
    return table


def text(codes: Codes, alphabet: Alphabet) -> str:
    """Return residues in parasail's form."""
    return _text_table(alphabet.name)[codes].tobytes().decode()


def pssm(query: Codes, matrix: SubstitutionMatrix, gap: GapPenalty, rng: np.random.Generator) -> QueryProfile:
    """Return a profile in which each position has its own row: that of the matrix, perturbed."""
    n = len(matrix.alphabet.letters)
    table = np.full((len(query), N_CODES), -128, np.int8)
    noise = rng.integers(-3, 4, (len(query), n))
    table[:, :n] = np.clip(matrix.scores[query][:, :n].astype(int) + noise, -127, 127)
    table[:, PAD_CODE] = -128
    return QueryProfile(np.arange(len(query), dtype=np.int32), table, gap)


@pytest.mark.thorough
@pytest.mark.campaign(10, 2_000)
def test_scores_ends_and_alignments_are_those_of_the_definition_and_of_parasail(trial: Trial) -> None:
    """One scheme with a few queries and some dozens of subjects in every engine."""
    rng = trial.numbers
    kind = KINDS[trial.number % len(KINDS)]
    matrix, gap = draw_matrix(kind, rng), draw_gap(rng)
    alphabet = matrix.alphabet
    scheme = ScoringScheme(matrix, gap)
    queries = [draw_codes(kind, alphabet, draw_length(rng), rng) for _ in range(rng.integers(1, 4))]
    if kind == "saturating":
        # Scores near 127, 255 and 32,767: the number of equal letters that reaches each, one more and one less.
        best = int(matrix.scores[0, 0])
        queries = [np.zeros(max(1, int(rng.choice((127, 255, 32_767))) // best + int(rng.integers(-1, 2))), np.uint8)]
        queries = [query[:3000] for query in queries]
    subjects = []
    for _ in range(int(rng.integers(30, 65))):
        if rng.random() < 0.5:
            subjects.append(changed(queries[rng.integers(len(queries))], alphabet, rng))
        else:
            subjects.append(draw_codes(kind, alphabet, draw_length(rng), rng))
    profiles = [
        pssm(query, matrix, gap, rng) if kind == "pssm" else sequence_profile(query, scheme) for query in queries
    ]
    partition = Partition.pack(subjects)
    stored = [subjects[index] for index in partition.subject_index]
    with told(f"{kind} {scheme}"):
        wanted = same_scores(profiles, partition, 1 + trial.number % 2)
        judge = None if kind == "pssm" else theirs(matrix)
        for number, (query, profile) in enumerate(zip(queries, profiles, strict=True)):
            with told(f"query {number}"):
                check_reference(profile, stored, wanted[number], rng)
                ends = None if judge is None else parasail_ends(query, stored, wanted[number], scheme, judge)
                check_alignments(query, profile, scheme, stored, wanted[number], ends, partition, kind, rng)
        if trial.number % EMULATED_EVERY == EMULATED_EVERY - 1 and shutil.which("g++"):
            small = partition[: max(1, min(len(partition), 12))]
            if profiles[0].length * small.n_residues <= EMULATED_CELLS:
                (block,) = emulated_engine().score(score_requests(profiles[:1]), small)
                np.testing.assert_array_equal(block.score, wanted[0][: len(small)])


def same_scores(profiles, partition, threads):  # type: ignore[no-untyped-def]
    """Return the scores of all queries, the same in every instruction set, with and without floors."""
    blocks = CpuEngine(1, "scalar").score(score_requests(profiles), partition)
    floors = [max(1, int(np.median(block.score))) for block in blocks]
    for name in usable_instruction_sets():
        with told(name):
            found = CpuEngine(threads, name).score(score_requests(profiles), partition)
            for block, scalar in zip(found, blocks, strict=True):
                np.testing.assert_array_equal(block.score, scalar.score)
            found = CpuEngine(1, name).score(score_requests(profiles, floors), partition)
            for block, scalar, floor in zip(found, blocks, floors, strict=True):
                left = scalar.at_least(floor)
                np.testing.assert_array_equal(block.score, left.score)
                np.testing.assert_array_equal(block.subject_index, left.subject_index)
    return [block.score for block in blocks]


def check_reference(profile, stored, wanted, rng):  # type: ignore[no-untyped-def]
    """Compare with the reference engine, on pairs that are small enough for it."""
    for index, subject in enumerate(stored):
        if profile.length * len(subject) <= REFERENCE_CELLS or rng.random() < 0.02:
            assert local_scores(profile, [subject])[0] == wanted[index], f"subject {index}"


def parasail_ends(query, stored, wanted, scheme, judge):  # type: ignore[no-untyped-def]
    """Compare scores; return the ends, 0-based and half-open, as (query, subject)."""
    profile = parasail.profile_create_32(text(query, scheme.alphabet), judge)
    ends = []
    for index, subject in enumerate(stored):
        letters = text(subject, scheme.alphabet)
        found = parasail.sw_scan_profile_32(profile, letters, scheme.gap.first, scheme.gap.extend)
        assert found.score == wanted[index], f"subject {index}"
        ends.append((found.end_query + 1, found.end_ref + 1))
    return ends


def check_alignments(query, profile, scheme, stored, wanted, ends, partition, kind, rng):  # type: ignore[no-untyped-def]
    """Rescore each alignment, compare its end with parasail's, and with other instruction sets."""
    aligner = LocalAligner(scheme.alphabet)
    frame = Frame("plus", 0, query, profile)
    found = aligner.paths(frame, partition)
    position_scores = profile.table[profile.rows] if kind == "pssm" else None
    for index, of_subject in enumerate(found):
        with told(f"subject {index}"):
            assert (wanted[index] == 0) == (not of_subject)
            if of_subject:
                path = of_subject[0]
                alignment = aligner.alignment(frame, path, stored[index][path.subject_start : path.subject_end])
                again = rescore(query, stored[index], alignment, scheme, position_scores=position_scores)
                assert path.score == again == wanted[index]
                assert ends is None or (path.query_end, path.subject_end) == ends[index]
    for name in usable_instruction_sets():
        rows = _native.align_local(
            query, profile.rows, profile.table, profile.gap.open, profile.gap.extend, scheme.alphabet.identity_table,
            partition.residues, np.ascontiguousarray(partition.starts), np.ascontiguousarray(partition.lengths),
            1, int(rng.choice((0, 1000, 1 << 20))), None, name,
        )  # fmt: skip
        assert [[(*row[:6], row[6:]) for row in of_subject] for of_subject in rows] == found, name


@cache
def emulated_engine() -> CudaEngine:
    """The CUDA engine's kernels, compiled for the host."""
    return CudaEngine(EmulatedDevice())
