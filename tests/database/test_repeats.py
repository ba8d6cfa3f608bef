"""Equal subjects, which the database notes when it is written. Expected values: a dictionary of sequences."""

from __future__ import annotations

import json
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
from tests.support import random_codes


def expected(partition: Partition) -> list[list[int]]:
    """Each row with the residues of an earlier one, and the first of these."""
    first_with: dict[bytes, int] = {}
    found = []
    for row in range(len(partition)):
        first = first_with.setdefault(partition.codes(row).tobytes(), row)
        if first < row:
            found.append([row, first])
    return found


def write_repeated(path: Path, n: int, n_distinct: int, *, seed: int = 1) -> None:
    """Records of few sequences, some of which differ only in the case of a letter, or in one residue."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ARNDCQEGHILKMFPSTWYV"))
    sequences = ["".join(letters[random_codes(rng, int(length))]) for length in rng.integers(1, 40, n_distinct - 2)]
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
        assert 600 < len(partition.repeats) < 900 - 200
        assert expected(partition.distinct) == []
        assert len(partition.distinct) == 900 - len(partition.repeats)
        lengths = partition.lengths[partition.repeats[:, 0]]
        assert database.repeats() == (len(lengths), int(lengths.sum()))
        assert verify(database) == []


def test_without_repeats_there_is_no_file(tmp_path):
    (tmp_path / "a.fa").write_text(">a\nMKV\n>b\nMKL\n>c\nMKVL\n>d\nmKV\n")
    build_database(tmp_path / "a.fa", tmp_path / "a.db")
    assert list(tmp_path.rglob("repeats*")) == []
    assert "repeats" not in (tmp_path / "a.db" / CATALOGUE).read_text()
    with open_database(tmp_path / "a.db") as database:
        (partition,) = database.partitions()
        assert partition.distinct is partition
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
            assert len(whole[rows].distinct) == len(chosen) - len(wanted)
        assert [part.repeats.tolist() for part in whole.split(300)] != [[]] * 30


def test_changes_and_slices_keep_their_own_repeats(tmp_path):
    """Removed subjects are no repeats; an addition and a slice have those among their subjects."""
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
        (lambda pairs: pairs[:, ::-1], "do not grow, or are those of no subject or of a later one"),
        (lambda pairs: pairs * [1, 0], "subjects of different lengths"),
        (lambda pairs: np.concatenate([pairs, [[10_000, 0]]]), "those of no subject"),
        (lambda pairs: pairs.ravel()[:-1], "half a pair"),
    ],
)
def test_damaged_pairs_are_noticed_at_the_first_use(tmp_path, change, problem):
    write_repeated(tmp_path / "a.fa", 100, 20)
    build_database(tmp_path / "a.fa", tmp_path / "a.db")
    replace_pairs(tmp_path / "a.db", change)
    with pytest.raises(DatabaseError, match=problem), open_database(tmp_path / "a.db") as database:
        list(database.partitions())


def test_verification_compares_the_residues_of_repeats(tmp_path):
    """Pairs of subjects of one length that differ; only a wrong writer makes them."""
    (tmp_path / "a.fa").write_text(">a\nMKV\n>b\nMKV\n>c\nMKL\n")
    build_database(tmp_path / "a.fa", tmp_path / "a.db")
    replace_pairs(tmp_path / "a.db", lambda pairs: np.array([[1, 0], [2, 0]]))
    with open_database(tmp_path / "a.db") as database:
        (problem,) = verify(database)
    assert problem.endswith("subjects that are said to be equal are not")


def replace_pairs(path: Path, change: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
    """Change ``repeats.bin``, with its size and digest in the catalogue."""
    catalogue = read_catalogue((path / CATALOGUE).read_text())
    (segment,) = catalogue.segments
    file = path / segment.name / "repeats.bin"
    pairs = change(np.fromfile(file, np.uint32).reshape(-1, 2).astype(np.int64))
    file.unlink()
    with HashingFile(file) as new:
        new.write(np.ascontiguousarray(pairs, dtype=np.uint32))
        entry = new.finish()
    assert json.loads((path / CATALOGUE).read_text())["segments"][0]["repeats"]["sha256"] != entry.sha256
    (path / CATALOGUE).write_text(write_catalogue(replace(catalogue, segments=(replace(segment, repeats=entry),))))
