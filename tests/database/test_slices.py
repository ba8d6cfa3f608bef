"""Databases in slices: nothing but the files differs from the same database without slices.

The expected values are those of the database that was indexed without slices from the same FASTA.
"""

import hashlib
import json
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swsearch.database import export as in_order
from swsearch.database import segment as segments
from swsearch.database import segment_writer
from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.format import ARRAY_DTYPES, CATALOGUE, Catalogue
from swsearch.database.opening import load_catalogue, open_database
from swsearch.database.reader import DatabasePart, PackedDatabase
from swsearch.errors import DatabaseError, InputError
from swsearch.sequences import fasta as fasta_reader
from tests.database.conftest import exported, fasta_text, some_records
from tests.database.test_damage import rewrite


def content_of(database: PackedDatabase) -> dict[str, object]:
    """Return everything that a reader returns and that must not depend on slices."""
    every = np.arange(database.n_subjects, dtype=np.uint32)
    by_index: dict[int, tuple[bytes, int]] = {}
    for partition in database.partitions():
        assert (np.diff(partition.lengths.astype(np.int64)) >= 0).all()
        for row, index in enumerate(partition.subject_index.tolist()):
            assert index not in by_index
            by_index[index] = (partition.codes(row).tobytes(), int(partition.lengths[row]))
    ranges = {
        int(index): residues[int(start) : int(start) + int(length)].tobytes()
        for inside, residues, starts, lengths in database.stored_ranges(every[::-1])
        for index, start, length in zip(every[::-1][inside], starts, lengths, strict=True)
    }
    return {
        "digest": database.digest,
        "numbers": (database.n_subjects, database.n_residues),
        "records": [(record.header, record.letters) for record in database],
        "headers": list(database.headers()),
        "lengths": database.lengths(every.reshape(2, -1) if len(every) % 2 == 0 else every).tolist(),
        "distinct lengths": database.distinct_lengths().tolist(),
        "partitions": [by_index[index] for index in range(database.n_subjects)],
        "stored ranges": [ranges[index] for index in range(database.n_subjects)],
        "export": exported(database, 60),
    }


def assert_same_content(sliced: Path, plain: Path, problems_of: Callable[[Path], list[str]]) -> None:
    with open_database(sliced) as one, open_database(plain) as other:
        assert content_of(one) == content_of(other)
    assert problems_of(sliced) == []


def files_of(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*.bin")}


def slices_of(catalogue: Catalogue) -> list[tuple[int, int, int]]:
    """Return numbers of subjects, of residues, and the longest subject of each slice."""
    return [(one.n_subjects, one.n_residues, one.longest) for one in catalogue.segments if one.is_slice]


@pytest.fixture
def plain(tmp_path: Path, fasta: Path) -> Path:
    build_database(fasta, tmp_path / "plain.db")
    return tmp_path / "plain.db"


@pytest.mark.parametrize("n_slices", [2, 3, 20])
@pytest.mark.parametrize("is_in_blocks", [False, True])
def test_slices_hold_the_same_database(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fasta: Path,
    plain: Path,
    problems_of: Callable[[Path], list[str]],
    n_slices: int,
    is_in_blocks: bool,
) -> None:
    if is_in_blocks:
        monkeypatch.setattr(fasta_reader, "BLOCKS_BYTES", 9_000)
        monkeypatch.setattr(segment_writer, "BLOCK_BYTES", 3_000)
        monkeypatch.setattr(in_order, "_BLOCK_SUBJECTS", 33)
        monkeypatch.setattr(segments, "BLOCK_HEADERS", 41)
    report = build_database(fasta, tmp_path / "sliced.db", slices=n_slices)
    assert len(report.catalogue.segments) == report.catalogue.n_slices == n_slices
    assert json.loads((tmp_path / "sliced.db" / CATALOGUE).read_text())["version"] == 3
    assert_same_content(tmp_path / "sliced.db", plain, problems_of)
    assert {path.name for path in (tmp_path / "sliced.db").iterdir()} == {
        CATALOGUE,
        *(entry.name for entry in report.catalogue.segments),
    }


def test_a_slice_has_the_arrays_of_a_segment_of_its_subjects(tmp_path: Path) -> None:
    """Expected values: a database indexed from a FASTA with only the subjects of the slice, byte for byte."""
    records = some_records(100, 3)
    (tmp_path / "some.fa").write_bytes(fasta_text(records))
    report = build_database(tmp_path / "some.fa", tmp_path / "db", slices=3)
    found = set()
    for entry in report.catalogue.segments:
        folder = tmp_path / "db" / entry.name
        indices = np.fromfile(folder / "indices.bin", dtype="<u4").tolist()
        found.update(indices)
        (tmp_path / "part.fa").write_bytes(fasta_text([records[index] for index in indices]))
        part = build_database(tmp_path / "part.fa", tmp_path / "part.db", overwrite=True).catalogue.segments[0]
        assert {name: entry.files[name] for name in ARRAY_DTYPES} == part.files
        assert (entry.n_subjects, entry.n_residues, entry.shortest, entry.longest) == (
            part.n_subjects,
            part.n_residues,
            part.shortest,
            part.longest,
        )
    assert found == set(range(100))


@pytest.mark.parametrize(("n_subjects", "n_slices"), [(1000, 4), (1003, 4), (997, 16), (5, 5), (6, 5)])
def test_slices_are_equal_in_numbers_residues_and_longest_subjects(
    tmp_path: Path, n_subjects: int, n_slices: int
) -> None:
    """Expected values: numbers differ by one at most, residues by less than the longest subject, and the longest
    subjects of all slices are the longest ones of the database.
    """
    source = random.Random(n_subjects)
    lengths = [int(source.lognormvariate(4.5, 0.8)) + 1 for _ in range(n_subjects)]
    (tmp_path / "some.fa").write_text("".join(f">s{n}\n{'M' * length}\n" for n, length in enumerate(lengths)))
    catalogue = build_database(tmp_path / "some.fa", tmp_path / "db", slices=n_slices).catalogue
    numbers, residues, longest = zip(*slices_of(catalogue), strict=True)
    assert max(numbers) - min(numbers) <= 1
    assert max(residues) - min(residues) < max(lengths)
    assert sorted(longest, reverse=True) == sorted(lengths, reverse=True)[:n_slices]


def test_changes_of_slices_are_those_of_the_plain_database(
    tmp_path: Path, fasta: Path, plain: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected value after each change: the plain database after the same change, its digest included."""
    sliced = tmp_path / "sliced.db"
    build_database(fasta, sliced, slices=3)
    (tmp_path / "more.fa").write_bytes(fasta_text([(f"N{name}", letters) for name, letters in some_records(60, 8)]))
    (tmp_path / "again.fa").write_bytes(b">P7 again\nMKVL\n>new\nMM\n>P3\nMK\n")
    for change in (
        lambda path: remove_from_database(path, ["P0", "P17", "P18", "P199"]),
        lambda path: add_to_database(path, tmp_path / "more.fa"),
        lambda path: remove_from_database(path, ["P3", "NP5"]),
        lambda path: add_to_database(path, tmp_path / "again.fa"),
        lambda path: remove_from_database(path, ["NP8"]),
    ):
        one, other = change(sliced), change(plain)
        assert one.catalogue.n_slices == 3
        assert_same_content(sliced, plain, problems_of)
        assert getattr(one, "n_duplicates", None) == getattr(other, "n_duplicates", None)
    one, other = compact_database(sliced), compact_database(plain)
    assert len(one.catalogue.segments) == one.catalogue.n_slices == 3
    assert one.catalogue.former_digests == other.catalogue.former_digests
    assert_same_content(sliced, plain, problems_of)
    with open_database(sliced) as database:
        (tmp_path / "export.fa").write_bytes(exported(database, 60))
    build_database(tmp_path / "export.fa", tmp_path / "fresh.db", slices=3)
    fresh = {name.partition("/")[2]: raw for name, raw in files_of(tmp_path / "fresh.db").items() if "-002" in name}
    assert fresh == {name.partition("/")[2]: raw for name, raw in files_of(sliced).items() if "-002/" in name}


def test_compaction_changes_the_number_of_slices(
    tmp_path: Path, fasta: Path, plain: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected values: the content and digest are the same throughout, and one slice is none."""
    changed = tmp_path / "changed.db"
    shutil.copytree(plain, changed)
    for n_slices in (4, 2, 1):
        report = compact_database(changed, slices=n_slices)
        assert len(report.catalogue.segments) == n_slices
        assert report.catalogue.n_slices == (n_slices if n_slices > 1 else 0)
        assert report.catalogue.former_digests == ()
        assert_same_content(changed, plain, problems_of)
        again = compact_database(changed, slices=n_slices)
        assert again.catalogue == again.before == report.catalogue
    assert {raw for name, raw in files_of(changed).items()} == {raw for name, raw in files_of(plain).items()}
    assert json.loads((changed / CATALOGUE).read_text())["version"] == 1


def test_partitions_of_chosen_slices_keep_their_indices(tmp_path: Path, fasta: Path) -> None:
    """Expected values: together the subjects of all slices, each with its index in the whole database."""
    build_database(fasta, tmp_path / "db", slices=3)
    add_to_database(tmp_path / "db", fasta)
    with open_database(tmp_path / "db") as database:
        every = [index for one in database.partitions() for index in one.subject_index.tolist()]
        found = [
            [index for one in database.part([number]).partitions(500) for index in one.subject_index.tolist()]
            for number in range(4)
        ]
        assert [index for one in found for index in one] == every
        assert sorted(every) == list(range(400))
        assert sorted(found[3]) == list(range(200, 400))
        for partition in database.part([1]).partitions():
            for row, index in enumerate(partition.subject_index.tolist()):
                assert np.array_equal(partition.codes(row), database.codes(index))


@pytest.mark.parametrize("n_slices", [0, -1, 129])
def test_impossible_numbers_of_slices_are_refused(tmp_path: Path, fasta: Path, n_slices: int) -> None:
    for change in (
        lambda: build_database(fasta, tmp_path / "db", slices=n_slices),
        lambda: compact_database(tmp_path / "none", slices=n_slices),
    ):
        with pytest.raises(InputError, match=f"slices={n_slices}: 1 to 128 slices are possible"):
            change()
    assert list(tmp_path.iterdir()) == [fasta]


def test_more_slices_than_sequences_are_refused(tmp_path: Path, database_path: Path) -> None:
    """Expected values: no new database, and the existing one as it was."""
    (tmp_path / "two.fa").write_bytes(b">a\nMK\n>b\nML\n")
    message = "slices=3: 2 sequences cannot be divided into more slices than that; choose fewer"
    with pytest.raises(InputError, match=message):
        build_database(tmp_path / "two.fa", tmp_path / "db", slices=3)
    assert not (tmp_path / "db").exists()
    build_database(tmp_path / "two.fa", tmp_path / "db")
    before = load_catalogue(tmp_path / "db")
    with pytest.raises(InputError, match=message):
        compact_database(tmp_path / "db", slices=3)
    assert load_catalogue(tmp_path / "db") == before
    assert {path.name for path in (tmp_path / "db").iterdir()} == {CATALOGUE, "segment-000001", "writer.lock"}


@pytest.fixture
def sliced(tmp_path: Path, fasta: Path) -> Path:
    build_database(fasta, tmp_path / "sliced.db", slices=2)
    return tmp_path / "sliced.db"


def test_a_subject_in_two_slices_is_damage(sliced: Path, problems_of: Callable[[Path], list[str]]) -> None:
    """A faulty writer: index 0 is in slice 1 or 2, and then in both; checksums are those of the damaged files."""
    folders = [sliced / entry.name for entry in load_catalogue(sliced).segments]
    arrays = [np.fromfile(folder / "indices.bin", dtype="<u4") for folder in folders]
    other = 1 if arrays[0][0] == 0 else 0
    lost = int(arrays[other][0])
    arrays[other][0] = 0
    arrays[other].tofile(folders[other] / "indices.bin")
    digest = hashlib.sha256(arrays[other].tobytes()).hexdigest()

    def change(fields: dict[str, object]) -> None:
        fields["segments"][other]["indices"]["sha256"] = digest  # type: ignore[index]

    assert any("indices.bin has changed" in problem for problem in problems_of(sliced))
    rewrite(sliced, change)
    assert problems_of(sliced) == [f"{sliced}: the slices do not have each subject once"]
    with open_database(sliced) as database:
        with pytest.raises(DatabaseError, match="its slices do not have each subject once"):
            database.codes(lost)
        with pytest.raises(DatabaseError, match="its slices do not have each subject once"):
            database.lengths(np.arange(database.n_subjects, dtype=np.uint32))


@pytest.mark.parametrize("values", [[5, 4], [0, 0], [0, 2**31]])
def test_indices_that_are_no_indices_are_refused_at_first_use(sliced: Path, values: list[int]) -> None:
    """They would be used as indices of headers and reports."""
    path = sliced / load_catalogue(sliced).segments[0].name / "indices.bin"
    array = np.fromfile(path, dtype="<u4")
    array[:2] = values
    array.tofile(path)
    with open_database(sliced) as database, pytest.raises(DatabaseError, match=r"indices\.bin"):
        list(database.partitions())


@pytest.mark.parametrize("fault", ["whole", "indices", "order of segments", "numbers", "lengths"])
def test_a_catalogue_with_contradictory_slices_is_refused(sliced: Path, fasta: Path, fault: str) -> None:
    add_to_database(sliced, fasta)

    def change(fields: dict[str, object]) -> None:
        segments = fields["segments"]
        assert isinstance(segments, list)
        if fault == "whole":
            fields["whole"] = None
        elif fault == "indices":
            segments[0]["indices"] = None
        elif fault == "order of segments":
            segments.reverse()
        elif fault == "numbers":
            fields["whole"]["n_residues"] += 1  # type: ignore[index]
        else:
            fields["whole"]["longest"] += 1  # type: ignore[index]

    rewrite(sliced, change)
    with pytest.raises(DatabaseError, match="the slices"):
        open_database(sliced)


def test_a_slice_is_opened_without_the_files_of_the_others(tmp_path: Path, sliced: Path, plain: Path) -> None:
    """Expected values: those of the database without slices, after a removal of subjects of every slice."""
    for path in (sliced, plain):
        remove_from_database(path, [f"P{n}" for n in range(0, 60, 7)])
    with open_database(sliced) as database:
        expected = [segment.n_subjects for segment in database.segments]
    shutil.rmtree(sliced / load_catalogue(sliced).segments[0].name)
    with open_database(sliced, parts=[DatabasePart(segments=(1,))]) as part, open_database(plain) as database:
        indices = part.subject_index
        assert len(indices) == expected[1]
        assert [part.record(index).letters for index in indices] == [
            database.record(index).letters for index in indices
        ]
        assert np.array_equal(part.lengths(indices), database.lengths(indices))
        assert list(part.headers()) == [(index, database.header(index)) for index in indices.tolist()]
        other = np.setdiff1d(np.arange(database.n_subjects, dtype=np.uint32), indices)
        for read in (lambda: part.codes(int(other[0])), lambda: part.lengths(other[:1])):
            with pytest.raises(IndexError, match="none of the segments"):
                read()
        again = pickle.loads(pickle.dumps(part))
        assert np.array_equal(again.subject_index, indices)
        again.close()


def test_the_same_content_in_other_slices_is_no_copy(tmp_path: Path, fasta: Path, sliced: Path) -> None:
    """The digests are equal, but segment 1 has other subjects: a search by slices would lose some."""
    other = build_database(fasta, tmp_path / "other.db", slices=3).catalogue
    catalogue = load_catalogue(sliced)
    assert catalogue.digest == other.digest
    open_database(sliced, parts=[DatabasePart(catalogue.digest, (1,), catalogue.layout)]).close()
    with pytest.raises(DatabaseError, match="in other segments"):
        open_database(sliced, parts=[DatabasePart(catalogue.digest, (1,), other.layout)])


def test_removals_that_differ_from_those_of_the_slices_are_found(
    sliced: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """The file of all removed subjects is changed, first without its checksum, then with it."""
    remove_from_database(sliced, ["P5", "P77"])
    assert problems_of(sliced) == []
    path = sliced / "removed-000002.bin"
    removed = np.fromfile(path, dtype="<u4")
    removed[0] = 6
    removed.tofile(path)
    assert any("removed-000002.bin has changed" in problem for problem in problems_of(sliced))

    def change(fields: dict[str, object]) -> None:
        fields["whole"]["removed"]["file"]["sha256"] = hashlib.sha256(removed.tobytes()).hexdigest()  # type: ignore[index]

    rewrite(sliced, change)
    assert any("are not those of all slices" in problem for problem in problems_of(sliced))


def test_files_of_removals_are_deleted_by_a_compaction(sliced: Path) -> None:
    for name in ("P5", "P77", "P78"):
        remove_from_database(sliced, [name])
    assert sorted(path.name for path in sliced.glob("removed-*")) == [f"removed-00000{n}.bin" for n in (2, 3, 4)]
    compact_database(sliced)
    remove_from_database(sliced, ["P1"])
    assert [path.name for path in sliced.glob("removed-*")] == ["removed-000006.bin"]
    compact_database(sliced, slices=1)
    assert not list(sliced.glob("removed-*"))
