"""Subjects that are equal to others or part of them, which the database notes when it is written.

Expected values: a dictionary of sequences, and Python's search in strings of bytes.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from swsearch.database import segment_writer
from swsearch.database.builder import build_database
from swsearch.database.catalogue import read_catalogue, write_catalogue
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.format import CATALOGUE
from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.database.segment_writer import HashingFile
from swsearch.database.verify import verify
from swsearch.errors import DatabaseError
from tests.support import indexed, random_codes

SHORTEST = 16
"""Residues of a part in these tests, the fewest that are possible."""


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "SHORTEST_PART", SHORTEST)


def expected(partition: Partition) -> list[list[int]]:
    """Each row with the residues of an earlier one, and the first of these; or the last row that contains it."""
    codes = [partition.codes(row).tobytes() for row in range(len(partition))]
    first_with: dict[bytes, int] = {}
    for row, residues in enumerate(codes):
        first_with.setdefault(residues, row)
    found = []
    for row, residues in enumerate(codes):
        longer = {whole for whole in first_with if len(whole) > len(residues) >= SHORTEST and residues in whole}
        if first_with[residues] < row:
            found.append([row, first_with[residues]])
        elif longer:
            found.append([row, max(first_with[whole] for whole in longer)])
    return found


def write_repeated(path: Path, n: int, n_distinct: int, *, seed: int = 1) -> None:
    """Records of few sequences, some of which are part of others, or differ in the case of a letter, or a residue."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ARNDCQEGHILKMFPSTWYV"))
    sequences = ["".join(letters[random_codes(rng, int(length))]) for length in rng.integers(1, 60, n_distinct - 2)]
    for number in range(3, n_distinct - 2, 3):  # parts of earlier ones, some of which are parts themselves
        whole = sequences[int(rng.integers(0, number))]
        sequences[number] = whole[int(rng.integers(0, 6)) :][: int(rng.integers(10, 60))] or whole
    sequences += [sequences[0][:-1] + sequences[0][-1].lower(), sequences[1][:-1] + "X"]
    chosen = rng.integers(0, n_distinct, n)
    path.write_text("".join(f">s{number}\n{sequences[which]}\n" for number, which in enumerate(chosen)))


@pytest.mark.parametrize("most", [1 << 20, 50, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_repeat_is_found(tmp_path, monkeypatch, most, threads):
    """Few subjects are compared at a time: of several lengths, or a part of those of one length."""
    monkeypatch.setattr(segment_writer, "COMPARED_SUBJECTS", most)
    write_repeated(tmp_path / "a.fa", 900, 250)
    build_database(tmp_path / "a.fa", tmp_path / "a.db", threads=threads)
    with open_database(tmp_path / "a.db") as database:
        (partition,) = database.partitions()
        assert partition.repeats.tolist() == expected(partition)
        is_part = partition.repeats[:, 1] > partition.repeats[:, 0]
        assert 600 < len(partition.repeats) < 900 - 150
        assert is_part.sum() > 20
        assert expected(partition.maximal) == []
        assert len(partition.maximal) == 900 - len(partition.repeats)
        assert len(partition.distinct) == 900 - np.count_nonzero(~is_part)
        lengths = partition.lengths[partition.repeats[:, 0]]
        assert database.repeats() == (len(lengths), int(lengths.sum()))
        assert verify(database) == []


def test_runs_of_a_letter_take_a_time_in_proportion_to_their_length(tmp_path):
    """Every run is part of each longer one, at all places; those that are not noted are scored as others are."""
    rng = np.random.default_rng(3)
    letters = ["A" * int(length) for length in rng.integers(20, 3_000, 300)]
    letters += ["GCT" * int(length) for length in rng.integers(20, 900, 100)]
    indexed(tmp_path / "a.db", [(f"s{number}", run) for number, run in enumerate(letters)])
    with open_database(tmp_path / "a.db") as database:
        (partition,) = database.partitions()
        assert 300 < len(partition.repeats) <= len(expected(partition))
        assert verify(database) == []


def test_without_repeats_there_is_no_file(tmp_path):
    indexed(tmp_path / "a.db", zip("abcd", ["MKV", "MKL", "MKVL", "mKV"], strict=True))
    assert list(tmp_path.rglob("repeats*")) == []
    assert "repeats" not in (tmp_path / "a.db" / CATALOGUE).read_text()
    with open_database(tmp_path / "a.db") as database:
        (partition,) = database.partitions()
        assert partition.distinct is partition
        assert partition.maximal is partition
        assert database.repeats() == (0, 0)


def test_parts_of_a_partition_have_the_repeats_that_lie_in_them(tmp_path):
    """A repeat whose first subject is elsewhere counts as a subject of its own."""
    write_repeated(tmp_path / "a.fa", 500, 60)
    build_database(tmp_path / "a.fa", tmp_path / "a.db")
    rng = np.random.default_rng(2)
    with open_database(tmp_path / "a.db") as database:
        (whole,) = database.partitions()
        first_of = dict(whole.repeats.tolist())
        ranges = [slice(0, 500), slice(0, 200), slice(100, 350), slice(499, 500), slice(7, 7)]
        for rows in [*ranges, np.flatnonzero(rng.random(500) < 0.4), np.array([3]), np.empty(0, np.intp)]:
            chosen = np.arange(500)[rows].tolist()
            place = {row: number for number, row in enumerate(chosen)}
            wanted = [[place[row], place[first_of[row]]] for row in chosen if first_of.get(row) in place]
            assert whole[rows].repeats.tolist() == wanted
            assert len(whole[rows].maximal) == len(chosen) - len(wanted)
        assert [part.repeats.tolist() for part in whole.split(300)] != [[]] * 30


def test_changes_and_slices_keep_their_own_repeats(tmp_path):
    """Removed subjects are not repeats; an addition and a slice have those among their subjects."""
    path = tmp_path / "a.db"
    write_repeated(tmp_path / "a.fa", 400, 50)
    write_repeated(tmp_path / "b.fa", 100, 20, seed=4)
    text = (tmp_path / "b.fa").read_text().replace(">s", ">t")
    (tmp_path / "b.fa").write_text(text)
    build_database(tmp_path / "a.fa", path)
    add_to_database(path, tmp_path / "b.fa")
    remove_from_database(path, [f"s{number}" for number in range(0, 400, 3)])
    with open_database(path) as database:
        for partition in database.partitions():
            assert [pair for pair in partition.repeats.tolist() if pair not in expected(partition)] == []
            assert len(partition.repeats) > 20
        exported = "".join(f">{record.header}\n{record.letters}\n" for record in database)
    (tmp_path / "c.fa").write_text(exported)
    for n_slices in (1, 3):
        compact_database(path, slices=n_slices)
        build_database(tmp_path / "c.fa", tmp_path / f"{n_slices}.db", slices=n_slices)
        with open_database(path) as database, open_database(tmp_path / f"{n_slices}.db") as fresh:
            assert verify(database) == []
            for one, other in zip(database.partitions(), fresh.partitions(), strict=True):
                assert one.repeats.tolist() == other.repeats.tolist() == expected(one)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda pairs: pairs[::-1], "the places do not grow"),
        (lambda pairs: pairs[:, ::-1], "the places do not grow"),
        (lambda pairs: pairs * [1, 0], "part of a shorter one, or equal to a later one"),
        (lambda pairs: np.concatenate([[[pairs[0, 0], pairs[-1, 0]]], pairs[1:]]), "is itself part of one"),
        (lambda pairs: np.concatenate([pairs, [[10_000, 0]]]), "those of no subject"),
        (lambda pairs: pairs.ravel()[:-1], "half a pair"),
    ],
)
def test_damaged_pairs_are_noticed_at_the_first_use_and_by_a_verification(tmp_path, problems_of, change, problem):
    write_repeated(tmp_path / "a.fa", 100, 20)
    build_database(tmp_path / "a.fa", tmp_path / "a.db")
    replace_pairs(tmp_path / "a.db", change)
    with pytest.raises(DatabaseError, match=problem), open_database(tmp_path / "a.db") as database:
        list(database.partitions())
    assert problem in problems_of(tmp_path / "a.db")[0]


def test_verification_compares_the_residues_of_repeats(tmp_path):
    """Pairs of subjects that differ, or of which one is not part of the other; only a wrong writer makes them."""
    indexed(tmp_path / "a.db", zip("abcd", ["MKV", "MKV", "MKL", "AMKVL"], strict=True))
    for pairs, holds in (([[0, 3], [1, 0]], True), ([[1, 0], [2, 0]], False), ([[1, 0], [2, 3]], False)):
        replace_pairs(tmp_path / "a.db", lambda _, pairs=pairs: np.array(pairs))
        with open_database(tmp_path / "a.db") as database:
            problems = verify(database)
        assert len(problems) == (0 if holds else 1)
        assert holds or problems[0].endswith("subjects that are said to be equal, or part of others, are not")


def replace_pairs(path: Path, change: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
    """Change ``repeats.bin``, with its size and digest in the catalogue."""
    catalogue = read_catalogue((path / CATALOGUE).read_text())
    (segment,) = catalogue.segments
    file = path / segment.name / "repeats.bin"
    pairs = change(np.fromfile(file, np.uint32).reshape(-1, 2).astype(np.int64))
    file.unlink()
    with HashingFile(file, "<u4") as new:
        entry = new.finish([pairs])
    (path / CATALOGUE).write_text(write_catalogue(replace(catalogue, segments=(replace(segment, repeats=entry),))))
