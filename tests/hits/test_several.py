"""Several alignments of a pair. Expected values: the definition, column-by-column rescoring, and lalign36."""

import re
import subprocess
from functools import lru_cache

import numpy as np
import pytest

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.search.frames import Frame
from swsearch.sequences.alphabet import PROTEIN
from tests.full_matrix import NEVER
from tests.pairs.whole_matrix import whole_matrix
from tests.translated_data import mutated

IDENTITY = np.arange(32, dtype=np.uint8)


def pairs_of(query_start: int, subject_start: int, operations: str) -> list[tuple[int, int]]:
    """Return the aligned pairs of residues; operations are ``M``, ``I`` and ``D``, or an expanded CIGAR."""
    row, column, pairs = query_start, subject_start, []
    for operation in operations:
        if operation not in "ID":
            pairs.append((row, column))
        row += operation != "D"
        column += operation != "I"
    return pairs


def written_out(cigar: str) -> str:
    return "".join(int(length) * operation for length, operation in re.findall(r"(\d+)([=XID])", cigar))


def waterman_eggert(scores: np.ndarray, gap: tuple[int, int], most: int, floor: int) -> list[tuple]:
    """Return alignments by the definition: the best of the full matrix, repeatedly, without the pairs used before."""
    left = scores.astype(int)
    found = []
    while len(found) < most:
        score, i, i_end, j, j_end, operations = whole_matrix(left, *gap)
        if score < max(floor, 1):
            break
        found.append((score, i, i_end, j, j_end, operations))
        for row, column in pairs_of(i, j, operations):
            left[row, column] = NEVER
    return found


def random_case(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a query, a subject with copies of parts of it, and a table; few letters, so that ties are frequent."""
    n_letters = int(rng.integers(2, 6))
    query = rng.integers(0, n_letters, int(rng.integers(1, 45))).astype(np.uint8)
    parts = [rng.integers(0, n_letters, int(rng.integers(0, 15))).astype(np.uint8)]
    for _ in range(int(rng.integers(0, 3))):
        start = int(rng.integers(0, len(query)))
        parts += [query[start : start + int(rng.integers(3, 40))], parts[0][:5]]
    table = rng.integers(-4, 6, (32, 32)).astype(np.int8)
    return query, np.concatenate(parts), table


@pytest.mark.parametrize("instruction_set", usable_instruction_sets())
def test_alignments_are_those_of_the_definition(instruction_set):
    """Source: the full matrix, computed again for each alignment without the pairs used before."""
    rng = np.random.default_rng(11)
    n_found = []
    for case in range(120):
        query, subject, table = random_case(rng)
        gap = [(0, 1), (3, 1), (1, 0), (11, 1), (16383, 16383)][case % 5]
        most, floor = int(rng.integers(1, 7)), int(rng.integers(1, 12))
        expected = waterman_eggert(table[query][:, subject], gap, most, floor)
        (found,) = _native.align_local(
            query, query.astype(np.int32), table, *gap, IDENTITY, subject, np.zeros(1, np.uint64),
            np.array([len(subject)], np.uint32), 1, 300 if case % 2 else 1 << 26, None, instruction_set, most, floor,
        )  # fmt: skip
        assert [(*row[:5], written_out(row[5]).translate(str.maketrans("=X", "MM"))) for row in found] == expected
        n_found.append(len(expected))
    assert max(n_found) == 6
    assert 0 in n_found


@pytest.mark.parametrize("instruction_set", usable_instruction_sets())
def test_scores_beyond_16_bits_are_exact(instruction_set):
    """Expected by hand: 400 pairs of 100 give 40,000; then the adjacent diagonals, each one pair shorter."""
    query = np.zeros(400, np.uint8)
    table = np.full((32, 32), -128, np.int8)
    table[0, 0] = 100
    (found,) = _native.align_local(
        query, query.astype(np.int32), table, 16383, 16383, IDENTITY, query, np.zeros(1, np.uint64),
        np.array([400], np.uint32), 1, 1 << 26, None, instruction_set, 5, 1,
    )  # fmt: skip
    assert [(row[0], row[1], row[3]) for row in found] == [
        (40_000, 0, 0), (39_900, 1, 0), (39_900, 0, 1), (39_800, 2, 0), (39_800, 0, 2),
    ]  # fmt: skip


def several(query: str, subject: str, most: int, floor: int = 1):
    codes, other = PROTEIN.encode(query), PROTEIN.encode(subject)
    frame = Frame("plus", 0, codes, sequence_profile(codes, default_scheme(PROTEIN)))
    (found,) = LocalAligner(PROTEIN).paths(frame, Partition.pack([other]), most=most, floor=floor)
    return found


DOMAIN = "MKVLAAGIVGLCAKAYWDERTNQHFPYICSEGWLKMND"


def test_copies_of_a_repeat_are_found_one_after_another():
    """Expected by hand: three complete copies of a domain with 0, 1 and 2 replaced residues, the best first."""
    copies = [DOMAIN, DOMAIN.replace("W", "A", 1), DOMAIN.replace("W", "A").replace("C", "A", 1)]
    subject = "GGGGG".join([copies[2], copies[0], copies[1]])
    found = several(DOMAIN, subject, most=3)
    assert [path.subject_start for path in found] == [43, 86, 0]
    assert all(path.query_end - path.query_start == len(DOMAIN) for path in found)
    assert [path.counts[0] for path in found] == [38, 37, 35]


@pytest.mark.peer("lalign36")
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5])
def test_repeats_are_laligns(tmp_path, seed):
    """Source: lalign36 (Huang and Miller's Waterman-Eggert) with BLOSUM62 and 11 + k, on repeats of a mutated domain.

    Its alignments may begin with columns that add nothing, so scores and ends are compared, down to a score of 40.
    Below that score, and for other seeds also above it, the remaining pairs depend on the choice among equally good
    alignments.
    """
    rng = np.random.default_rng(seed)
    query = mutated(rng, DOMAIN) + mutated(rng, DOMAIN) + "GSGSG"
    subject = mutated(rng, DOMAIN) + mutated(rng, DOMAIN, 0.4) + mutated(rng, DOMAIN, 0.2)
    for name, letters in (("query", query), ("subject", subject)):
        (tmp_path / f"{name}.fasta").write_text(f">{name}\n{letters}\n")
    printed = subprocess.run(
        ["lalign36", "-q", "-s", "BL62", "-f", "-11", "-g", "-1", "-E", "10", "-m", "9i",
         tmp_path / "query.fasta", tmp_path / "subject.fasta"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found = re.findall(r"Waterman-Eggert score: (\d+);.*\n.*overlap \(\d+-(\d+):\d+-(\d+)\)", printed)
    theirs = [tuple(map(int, row)) for row in found if int(row[0]) >= 40]
    assert len(theirs) >= 2
    ours = [(one.score, one.query_end, one.subject_end) for one in several(query, subject, most=20, floor=40)]
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("instruction_set", usable_instruction_sets())
def test_long_subjects_are_done_in_blocks(instruction_set):
    """Source: the full matrix. Copies lie across the blocks of columns that are recomputed, near and far apart."""
    rng = np.random.default_rng(21)
    query = rng.integers(0, 4, 14).astype(np.uint8)
    subject = rng.integers(0, 4, 5200).astype(np.uint8)
    for position in (3, 700, 1015, 1030, 2041, 2047, 2070, 4090, 5180):
        subject[position : position + 14] = np.where(rng.random(14) < 0.1, subject[position : position + 14], query)
    table = np.full((32, 32), -3, np.int8)
    np.fill_diagonal(table, 2)
    (found,) = _native.align_local(
        query, query.astype(np.int32), table, 1, 1, IDENTITY, subject, np.zeros(1, np.uint64),
        np.array([len(subject)], np.uint32), 1, 1 << 26, None, instruction_set, 14, 1,
    )  # fmt: skip
    alignments = [(*row[:5], written_out(row[5]).translate(str.maketrans("=X", "MM"))) for row in found]
    assert alignments == blocks_expected(query.tobytes(), subject.tobytes(), table.tobytes())


@lru_cache
def blocks_expected(query: bytes, subject: bytes, table: bytes) -> list[tuple]:
    """Return the definition's alignments, computed once for all instruction sets."""
    scores = np.frombuffer(table, np.int8).reshape(32, 32)
    rows, columns = np.frombuffer(query, np.uint8), np.frombuffer(subject, np.uint8)
    return waterman_eggert(scores[rows][:, columns], (1, 1), 14, 1)
