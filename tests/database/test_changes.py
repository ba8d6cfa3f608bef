"""Databases that change: after any additions, removals and compactions they equal a fresh build.

The expected values come from Python lists of records, and from databases built anew from them.
"""

import fcntl
import itertools
import os
import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.database import opening
from swsearch.database import verify as verification
from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.format import ARRAY_DTYPES, CATALOGUE
from swsearch.database.opening import open_database
from swsearch.database.reader import Member, PackedDatabase
from swsearch.database.segment import Segment
from swsearch.database.staging import LOCK
from swsearch.errors import DatabaseError, FastaFormatError, InputError
from swsearch.sequences.alphabet import PROTEIN
from tests.database.conftest import exported, fasta_text, some_records
from tests.patience import LIMIT_SECONDS

ASSETS = Path(__file__).parent / "assets"

Records = list[tuple[str, str]]


def content(path: Path) -> bytes:
    with open_database(path) as database:
        return exported(database)


def files_of(path: Path) -> dict[str, bytes]:
    """Return every file of a database except the lock, by its relative name."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != LOCK
    }


def assert_is_fresh_build(path: Path, records: Records, problems_of: Callable[[Path], list[str]]) -> None:
    """Check that everything a reader returns equals what plain Python computes from the records."""
    assert problems_of(path) == []
    with open_database(path) as database:
        assert [(record.header, record.letters) for record in database] == records
        lengths = [len(letters) for _, letters in records]
        assert (database.n_subjects, database.n_residues) == (len(records), sum(lengths))
        assert database.distinct_lengths().tolist() == sorted(set(lengths))
        every = np.arange(len(records), dtype=np.uint32)
        assert database.lengths(every[::-1]).tolist() == lengths[::-1]
        assert [database.length(n) for n in range(len(records))] == lengths
        seen = []
        for partition in database.partitions(100):
            assert (np.diff(partition.lengths.astype(int)) >= 0).all()
            assert (partition.starts % 16 == 0).all()
            for index, subject_index in enumerate(partition.subject_index.tolist()):
                assert PROTEIN.decode(partition.codes(index)) == records[subject_index][1]
                seen.append(subject_index)
        assert sorted(seen) == every.tolist()
        for indices, residues, starts, sizes in database.stored_ranges(every):
            for index, start, size in zip(indices.tolist(), starts.tolist(), sizes.tolist(), strict=True):
                assert PROTEIN.decode(residues[start : start + size]) == records[index][1]
        with pytest.raises(IndexError):
            database.header(len(records))


# --- the database after changes ---

IDENTIFIERS = st.sampled_from([f"P{n}" for n in range(12)])
RECORDS = st.lists(
    st.tuples(IDENTIFIERS, st.text("ARNDCQEGHILKMFPSTWYVBZX*UOJarnduoj", min_size=1, max_size=40)),
    min_size=1,
    max_size=8,
)
CHANGES = st.lists(
    st.one_of(
        RECORDS,
        st.sets(IDENTIFIERS, min_size=1, max_size=4),
        st.integers(0, 30),
        st.integers(0, 30),
        st.just("compact"),
    ),
    min_size=1,
    max_size=7,
)
"""Records to add, identifiers to remove, the index of a subject whose identifier is removed, or a compaction."""


@given(first=RECORDS, changes=CHANGES)
@settings(max_examples=40, deadline=None)
def test_any_changes_give_the_records_that_lists_give(
    tmp_path_factory: pytest.TempPathFactory,
    first: Records,
    changes: list[Records | set[str] | int | str],
    problems_of: Callable[[Path], list[str]],
) -> None:
    """Expected values: a Python list with the same changes; after compaction, the files of a fresh build."""
    folder = tmp_path_factory.mktemp("changes")
    database, fasta = folder / "db", folder / "some.fa"
    fasta.write_bytes(fasta_text(first))
    build_database(fasta, database, PROTEIN)
    records, generation = list(first), 1
    for change in changes:
        before = files_of(database)
        if isinstance(change, int):
            change = {records[change % len(records)][0]}  # noqa: PLW2901
        if isinstance(change, list):
            fasta.write_bytes(fasta_text(change))
            add_to_database(database, fasta)
            records += change
            generation += 1
        elif isinstance(change, set):
            known = change & {header for header, _ in records}
            left = [record for record in records if record[0] not in change]
            if known == change and left:
                report = remove_from_database(database, sorted(change))
                assert report.before.n_subjects - report.catalogue.n_subjects == len(records) - len(left)
                records = left
                generation += 1
            else:
                with pytest.raises(InputError):
                    remove_from_database(database, sorted(change))
                assert files_of(database) == before
        else:
            done = compact_database(database)
            generation += done.catalogue is not done.before
        with open_database(database) as opened:
            assert opened.catalogue.generation == generation
        assert_is_fresh_build(database, records, problems_of)

    compact_database(database)
    fasta.write_bytes(content(database))
    build_database(fasta, folder / "fresh", PROTEIN)
    assert_same_build(database, folder / "fresh")


def assert_same_build(database: Path, fresh: Path) -> None:
    """Check for equal arrays, byte for byte, and equal digests; no other files than catalogue and lock."""
    arrays = [{Path(name).name: raw for name, raw in files_of(path).items()} for path in (database, fresh)]
    for files in arrays:
        del files[CATALOGUE]
    assert arrays[0] == arrays[1]
    with open_database(database) as one, open_database(fresh) as other:
        assert one.digest == other.digest


def test_a_whole_segment_may_be_removed(tmp_path: Path, problems_of: Callable[[Path], list[str]]) -> None:
    """The first, the middle and the last of three segments are removed; expected values: the records of the others."""
    parts = [some_records(5, seed) for seed in (1, 2, 3)]
    parts = [[(f"{n}{header}", letters) for header, letters in part] for n, part in enumerate(parts)]
    for gone in (0, 1, 2):
        database, fasta = tmp_path / f"{gone}.db", tmp_path / "some.fa"
        for n, part in enumerate(parts):
            fasta.write_bytes(fasta_text(part))
            build_database(fasta, database) if n == 0 else add_to_database(database, fasta)
        remove_from_database(database, [header.split()[0] for header, _ in parts[gone]])
        left = [record for n, part in enumerate(parts) if n != gone for record in part]
        assert_is_fresh_build(database, left, problems_of)
        compact_database(database)
        assert_is_fresh_build(database, left, problems_of)


def test_equal_digests_are_equal_content(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """Each change gives another digest; undoing an addition and compacting gives the first digest again."""
    (tmp_path / "new.fa").write_bytes(b">new\nMKVL\n")
    digests = []
    for step in (
        lambda: None,
        lambda: add_to_database(database_path, tmp_path / "new.fa"),
        lambda: remove_from_database(database_path, ["new"]),
        lambda: compact_database(database_path),
    ):
        step()
        with open_database(database_path) as database:
            digests.append(database.digest)
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3


def test_sources_tell_all_files(tmp_path: Path, database_path: Path) -> None:
    """Expected values: the names of the files that were indexed and added, in order."""
    (tmp_path / "new.fa").write_bytes(b">new\nMKVL\n")
    report = add_to_database(database_path, [tmp_path / "new.fa", tmp_path / "new.fa"])
    assert report.catalogue.sources == ("some.fa", "new.fa", "new.fa")


def test_removal_takes_all_subjects_of_an_identifier(tmp_path: Path) -> None:
    """Expected values: both a, in two segments, are removed; identifiers match completely; a repetition counts once."""
    (tmp_path / "1.fa").write_bytes(b">a x\nMK\n>ab\nMV\n")
    (tmp_path / "2.fa").write_bytes(b">c\nMK\n>a\nMV\n")
    build_database(tmp_path / "1.fa", tmp_path / "db")
    add_to_database(tmp_path / "db", tmp_path / "2.fa")
    report = remove_from_database(tmp_path / "db", ["a", "a"])
    before, after = report.before, report.catalogue
    assert (before.n_subjects - after.n_subjects, before.n_residues - after.n_residues) == (2, 4)
    assert content(tmp_path / "db") == b">ab\nMV\n>c\nMK\n"
    with pytest.raises(InputError, match="no sequence 'a'"):
        remove_from_database(tmp_path / "db", ["c", "a"])


def test_identifiers_of_any_bytes_can_be_removed(tmp_path: Path) -> None:
    """Expected value: the record with an identifier that is not UTF-8, given in the command line's form, is removed."""
    (tmp_path / "1.fa").write_bytes(b">a\xe9 x\nMK\n>b\nMV\n")
    build_database(tmp_path / "1.fa", tmp_path / "db")
    remove_from_database(tmp_path / "db", [os.fsdecode(b"a\xe9")])
    assert content(tmp_path / "db") == b">b\nMV\n"


def test_a_part_of_an_identifier_is_answered_with_the_whole(tmp_path: Path) -> None:
    """By hand: identifiers may share an accession, so a removal needs a full identifier, which the message shows."""
    (tmp_path / "1.fa").write_text(">sp|P02232|LGB1_VICFA Leghemoglobin\nMK\n>tr|Q1|Q1_X\nMV\n")
    build_database(tmp_path / "1.fa", tmp_path / "db")
    with pytest.raises(InputError) as caught:
        remove_from_database(tmp_path / "db", ["P02232"])
    assert str(caught.value) == (
        f"{tmp_path / 'db'} has no sequence 'P02232'; give the whole first word of its header, "
        "as 'sp|P02232|LGB1_VICFA'; nothing was removed"
    )


def test_bad_requests_change_nothing(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """Expected words: what is wrong and where; expected value: every byte is unchanged."""
    before = files_of(database_path)
    (tmp_path / "bad.fa").write_bytes(b">a\nMKVL\n>b\nM1\n")
    with pytest.raises(FastaFormatError, match="line 4, column 2"):
        add_to_database(database_path, tmp_path / "bad.fa")
    with pytest.raises(FastaFormatError, match="no sequence file"):
        add_to_database(database_path, [])
    with pytest.raises(InputError, match=r"has no sequence 'P999', nor 1 more of those given; nothing was removed"):
        remove_from_database(database_path, ["P1", "P999", "P2", "Q"])
    with pytest.raises(InputError, match="no identifier"):
        remove_from_database(database_path, [])
    with pytest.raises(InputError, match=r"all 200 sequences .* delete the folder"):
        remove_from_database(database_path, [f"P{n}" for n in range(200)])
    assert compact_database(database_path).catalogue.generation == 1
    assert files_of(database_path) == before


def test_what_is_no_database_is_left_alone(tmp_path: Path, fasta: Path) -> None:
    """Expected value: neither a lock file nor any other new file in a folder of other files."""
    (tmp_path / "thesis").mkdir()
    for change in (
        lambda path: add_to_database(path, fasta),
        lambda path: remove_from_database(path, ["P1"]),
        compact_database,
    ):
        with pytest.raises(DatabaseError, match="not a packed database"):
            change(tmp_path / "thesis")
        with pytest.raises(DatabaseError, match="does not exist"):
            change(tmp_path / "none")
    assert list((tmp_path / "thesis").iterdir()) == []
    assert not (tmp_path / "none").exists()


def test_the_number_of_subjects_stays_below_32_bits(
    tmp_path: Path, fasta: Path, database_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old and new subjects are counted together; expected value: a refusal, because 200 + 200 > 399."""
    monkeypatch.setattr("swsearch.database.segment_writer.MAX_SUBJECTS", 399)
    with pytest.raises(FastaFormatError, match="more than 399 sequences"):
        add_to_database(database_path, fasta)
    assert len([path for path in database_path.iterdir() if path.is_dir()]) == 1


# --- versions of the format ---


def test_version_1_opens_and_changes(tmp_path: Path, problems_of: Callable[[Path], list[str]]) -> None:
    """The asset was written by a program that knew only version 1; expected value: the FASTA that it was made from."""
    expected = (ASSETS / "version-1.fasta").read_bytes()
    assert content(ASSETS / "version-1.swdb") == expected
    assert problems_of(ASSETS / "version-1.swdb") == []
    database = shutil.copytree(ASSETS / "version-1.swdb", tmp_path / "db")
    build_database(ASSETS / "version-1.fasta", tmp_path / "fresh", PROTEIN)
    assert_same_build(database, tmp_path / "fresh")
    remove_from_database(database, ["two"])
    assert content(database) == expected.replace(b">two\nMKWVTFISLLFLFSSAYSRGVFRR\n", b"")


def test_the_lowest_version_that_tells_all_is_written(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """A version 1 program reads segments but would count removed subjects; expected version: 2 while there are any."""
    versions = []
    for step in (
        lambda: add_to_database(database_path, fasta),
        lambda: remove_from_database(database_path, ["P1"]),
        lambda: compact_database(database_path),
    ):
        step()
        text = (database_path / CATALOGUE).read_text()
        versions.append(('"version": 1' in text, '"removed"' in text))
    assert versions == [(True, False), (False, True), (True, False)]


# --- concurrent readers and writers ---


def test_an_open_database_stays_as_it_was(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """Expected values: what each reader saw when it opened the database, read again after all changes."""
    (tmp_path / "new.fa").write_bytes(fasta_text(some_records(50, 9)))
    opened, expected = [], []
    for step in (
        lambda: None,
        lambda: add_to_database(database_path, tmp_path / "new.fa"),
        lambda: remove_from_database(database_path, ["P7", "P60"]),
        lambda: remove_from_database(database_path, ["P8"]),
        lambda: compact_database(database_path),
        lambda: remove_from_database(database_path, ["P9"]),
        lambda: compact_database(database_path),
    ):
        step()
        opened.append(open_database(database_path))
        expected.append(exported(opened[-1]))
    assert [exported(database) for database in opened] == expected
    assert len(set(expected)) == 5


def test_files_that_a_reader_may_still_map_stay_until_compaction(database_path: Path) -> None:
    """A reader between catalogue and files finds its files; expected: both removals' files, then one segment."""
    remove_from_database(database_path, ["P7"])
    remove_from_database(database_path, ["P8"])
    assert {path.name for path in database_path.glob("*/removed-*")} == {"removed-000002.bin", "removed-000003.bin"}
    compact_database(database_path)
    assert {path.name for path in database_path.iterdir()} == {CATALOGUE, LOCK, "segment-000004"}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_change_while_a_database_is_opened_makes_the_reader_begin_again(
    database_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The change is made before or after the files are mapped; expected value: the new generation."""
    map_segments = opening.map_segments
    changes = itertools.chain(
        [lambda: remove_from_database(database_path, ["P7"]), lambda: compact_database(database_path)]
    )

    def interrupted(folder: Path, catalogue: object, numbers: object) -> object:
        if moment == "before":
            next(changes, lambda: None)()
            return map_segments(folder, catalogue, numbers)
        segments = map_segments(folder, catalogue, numbers)
        next(changes, lambda: None)()
        return segments

    monkeypatch.setattr(opening, "map_segments", interrupted)
    # A change also opens the database and would be interrupted by the next change, while it holds the lock.
    monkeypatch.setattr("swsearch.database.changes.open_database", _plain(map_segments))
    with open_database(database_path) as database:
        assert database.n_subjects == 199
        assert database.catalogue.generation == 3


@pytest.mark.parametrize("n_changes", [1, 2])
def test_a_compaction_while_a_database_is_verified_is_no_damage(
    database_path: Path, monkeypatch: pytest.MonkeyPatch, n_changes: int
) -> None:
    """The files of the generation that was opened are gone when they are to be read; the new one is intact."""
    changed_files = verification.changed_files
    changes = []

    def interrupted(folder: Path, *arguments: Any) -> dict[str, list[str]]:
        if len(changes) < n_changes:
            changes.append(folder)
            remove_from_database(database_path, [f"P{7 + len(changes)}"])
            monkeypatch.setattr(verification, "changed_files", changed_files)  # the compaction verifies as well
            compact_database(database_path)
            monkeypatch.setattr(verification, "changed_files", interrupted)
        return changed_files(folder, *arguments)

    monkeypatch.setattr(verification, "changed_files", interrupted)
    assert verification.verify_path(database_path) == []
    assert len(changes) == n_changes
    monkeypatch.setattr(verification, "changed_files", changed_files)
    (segment,) = database_path.glob("segment-*")
    (segment / "order.bin").unlink()
    with pytest.raises(DatabaseError, match=r"order\.bin"):
        verification.verify_path(database_path)


def test_a_database_that_never_stays_is_refused(database_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each verification meets another generation with a problem: no answer is right, and none is given."""
    numbers = itertools.count(1)

    def another(path: Path) -> object:
        return next(numbers)

    monkeypatch.setattr(verification, "load_catalogue", another)
    monkeypatch.setattr(verification, "verify", lambda database, **_: ["a problem"])
    with pytest.raises(DatabaseError, match="changes so often that it cannot be verified"):
        verification.verify_path(database_path)


def _plain(map_segments: Callable[..., tuple[Segment, ...]]) -> Callable[[Path], PackedDatabase]:
    """Return what opens a database for the changes themselves, which the test does not interrupt."""

    def plain(folder: Path) -> PackedDatabase:
        catalogue = opening.load_catalogue(folder)
        segments = map_segments(folder, catalogue)
        numbers = tuple(range(len(segments)))
        return PackedDatabase([Member(str(folder), str(folder), folder, catalogue, segments, numbers, None)])

    return plain


def test_a_database_replaced_while_it_is_opened_is_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two databases with files of the same sizes: the catalogue of one would match the files of the other."""
    (tmp_path / "1.fa").write_bytes(b">a\nMKVL\n")
    (tmp_path / "2.fa").write_bytes(b">b\nWWWW\n")
    build_database(tmp_path / "1.fa", tmp_path / "db")
    map_segments = opening.map_segments
    calls = []

    def replaced(folder: Path, catalogue: object, numbers: object) -> object:
        if not calls:
            build_database(tmp_path / "2.fa", tmp_path / "db", PROTEIN, overwrite=True)
        calls.append(1)
        return map_segments(folder, catalogue, numbers)

    monkeypatch.setattr(opening, "map_segments", replaced)
    with open_database(tmp_path / "db") as database:
        with open(tmp_path / "db" / CATALOGUE) as file:
            assert database.digest in file.read()
        assert exported(database) == b">b\nWWWW\n"
    assert len(calls) == 2


def test_a_pickled_database_is_not_opened_with_other_content(database_path: Path) -> None:
    """A worker must search what its coordinator opened; expected value: a refusal after a removal."""
    with open_database(database_path) as database:
        pickled = pickle.dumps(database)
    assert pickle.loads(pickled).n_subjects == 200
    remove_from_database(database_path, ["P7"])
    with pytest.raises(DatabaseError, match="has been changed since it was opened"):
        pickle.loads(pickled)


def test_replacing_a_database_waits_for_a_change_of_it(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """The change would end in the new database; expected value: only the new database, after the lock is released."""
    (tmp_path / "new.fa").write_bytes(b">a\nMKVL\n")
    compact_database(database_path)  # creates the lock file
    lock = os.open(database_path / LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    build = threading.Thread(
        target=build_database, args=(tmp_path / "new.fa", database_path), kwargs={"overwrite": True}
    )
    build.start()
    build.join(0.5)
    assert build.is_alive()
    assert content(database_path) == "".join(f">{h}\n{s}\n" for h, s in some_records()).encode()
    os.close(lock)
    build.join(LIMIT_SECONDS)
    assert not build.is_alive()
    assert content(database_path) == b">a\nMKVL\n"
    assert files_of(database_path).keys() == {
        CATALOGUE,
        *(f"segment-000001/{name}.bin" for name in ARRAY_DTYPES),
    }


def test_a_lock_of_a_database_that_was_replaced_is_taken_anew(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """A waiter for the old database's lock must get the new one's; expected value: a lock file in the new folder."""
    compact_database(database_path)
    flock = fcntl.flock
    replaced = []

    def replace_first(descriptor: int, operation: int) -> None:
        if not replaced:
            replaced.append(os.rename(database_path, tmp_path / "old"))
            shutil.copytree(tmp_path / "old", database_path, ignore=shutil.ignore_patterns(LOCK))
        flock(descriptor, operation)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swsearch.database.staging.fcntl.flock", replace_first)
        remove_from_database(database_path, ["P7"])
    assert content(database_path) != content(tmp_path / "old")
    assert (database_path / LOCK).exists()
