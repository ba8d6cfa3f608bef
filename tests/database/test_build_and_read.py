"""Building, reading and exporting databases: nothing is lost or altered.

The expected values come from the indexed FASTA, read with Biopython or as text, and from the format's description.
"""

import json
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from Bio.SeqIO.FastaIO import SimpleFastaParser
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.database import segment_writer
from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.database.reader import PackedDatabase
from swsearch.errors import DatabaseError, FastaFormatError, InputError
from swsearch.sequences.alphabet import CODE_MASK, DNA, PAD_CODE, PROTEIN
from tests.database.conftest import exported

Records = list[tuple[str, str]]


def test_every_record_comes_back_in_its_place(fasta: Path, database_path: Path) -> None:
    """Oracle: Biopython's SimpleFastaParser on the FASTA that was indexed."""
    with open(fasta) as file:
        expected = list(SimpleFastaParser(file))
    with open_database(database_path) as database:
        assert [(record.header, record.letters) for record in database] == expected
        assert database.n_subjects == len(database) == len(expected)
        assert database.n_residues == sum(len(letters) for _, letters in expected)
        assert [database.length(n) for n in range(len(expected))] == [len(letters) for _, letters in expected]
        assert database.header(17) == expected[17][0]
        assert database.alphabet is PROTEIN


def test_export_is_the_fasta_that_was_read(fasta: Path, database_path: Path) -> None:
    """Expected value: the indexed file itself, which has lines of 60."""
    with open_database(database_path) as database:
        text = exported(database, 60)
    assert text == fasta.read_bytes()


def test_export_without_line_breaks(database_path: Path, records: Records) -> None:
    """Expected value: the records, each sequence on one line."""
    with open_database(database_path) as database:
        text = exported(database, 0)
        with pytest.raises(ValueError, match="-1 residues"):
            exported(database, -1)
    assert text == "".join(f">{header}\n{letters}\n" for header, letters in records).encode()


@given(
    records=st.lists(
        st.tuples(
            st.binary(max_size=12).map(lambda raw: raw.translate(None, b"\n\r\0\x0b\x0c\x1c\x1d\x1e\x1f").strip()),
            st.text("ARNDCQEGHILKMFPSTWYVBZX*UOJarndcuoj", min_size=1, max_size=70),
        ),
        min_size=1,
        max_size=15,
    ),
    block_bytes=st.sampled_from([16, 64, 1 << 20]),
)
@settings(max_examples=80, deadline=None)
def test_any_headers_and_letters_survive(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[bytes, str]],
    block_bytes: int,
    problems_of: Callable[[Path], list[str]],
) -> None:
    """Expected value: the indexed text; also for blocks smaller than a subject."""
    folder = tmp_path_factory.mktemp("round-trip")
    text = b"".join(b">%s\n%s\n" % (header, letters.encode()) for header, letters in records)
    (folder / "some.fa").write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "BLOCK_BYTES", block_bytes)
        build_database(folder / "some.fa", folder / "some.swdb", PROTEIN)
    with open_database(folder / "some.swdb") as database:
        assert exported(database, 0) == text
    assert problems_of(folder / "some.swdb") == []


@given(max_residues=st.integers(1, 60_000))
@settings(max_examples=60, deadline=None)
def test_partitions_hold_each_subject_once(shared_database: PackedDatabase, max_residues: int) -> None:
    """Expected values: the subjects themselves; a partition may exceed the limit only with a single subject."""
    database = shared_database
    seen: list[int] = []
    for partition in database.partitions(max_residues):
        assert len(partition) == 1 or partition.n_residues <= max_residues
        for index, subject_index in enumerate(partition.subject_index.tolist()):
            assert np.array_equal(partition.codes(index), database.codes(subject_index))
            seen.append(subject_index)
    assert sorted(seen) == list(range(database.n_subjects))
    (whole,) = database.partitions()
    assert seen == whole.subject_index.tolist()


@pytest.fixture(scope="module")
def shared_database(tmp_path_factory: pytest.TempPathFactory) -> PackedDatabase:
    folder = tmp_path_factory.mktemp("shared")
    source = np.random.default_rng(3)
    with open(folder / "some.fa", "w") as file:
        for n, length in enumerate(source.integers(1, 400, 150)):
            file.write(f">s{n}\n{''.join(source.choice(list('ARNDCQEGHILKMFPSTWYV'), length))}\n")
    build_database(folder / "some.fa", folder / "some.swdb")
    return open_database(folder / "some.swdb")


def test_stored_range_has_the_promised_padding(shared_database: PackedDatabase) -> None:
    """Expected values: by the format, padding up to multiples of 16 bytes, and 64 bytes at the end."""
    every = np.arange(shared_database.n_subjects, dtype=np.uint32)
    ((_, residues, starts, lengths),) = shared_database.stored_ranges(every)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        assert start % 16 == 0
        stop = start + -(-length // 16) * 16
        assert (residues[start + length : stop] == PAD_CODE).all()
        assert (residues[start : start + length] & CODE_MASK != PAD_CODE).all()
        assert stop + 64 <= len(residues)


def test_arrays_cannot_be_written_to(shared_database: PackedDatabase) -> None:
    """A search must not be able to alter a database."""
    with pytest.raises(ValueError, match="read-only"):
        shared_database.codes(0)[0] = 1


def test_threads_may_read_at_once(shared_database: PackedDatabase) -> None:
    """Expected values: the results of one thread."""
    expected = [(record.header, record.letters) for record in shared_database]
    found: list[bool] = []

    def read() -> None:
        found.append([(record.header, record.letters) for record in shared_database] == expected)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_database_pickles_as_its_path(shared_database: PackedDatabase) -> None:
    """Expected value: the same content after pickling and unpickling."""
    assert pickle.loads(pickle.dumps(shared_database)).record(3).letters == shared_database.record(3).letters


@pytest.mark.parametrize("subject_index", [-1, 150])
def test_subjects_that_do_not_exist_are_refused(shared_database: PackedDatabase, subject_index: int) -> None:
    """A negative index does not count from the end, because that would hide an error of the caller."""
    with pytest.raises(IndexError, match="of 150"):
        shared_database.header(subject_index)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, fasta: Path, database_path: Path) -> None:
    """Expected value: the first build, byte for byte, except for the catalogue's time and therefore its checksum."""
    build_database(fasta, tmp_path / "again.swdb")
    for first in sorted(path for path in database_path.rglob("*") if path.is_file()):
        second = tmp_path / "again.swdb" / first.relative_to(database_path)
        if first.name == "catalogue.json":
            fields = [json.loads(path.read_text()) for path in (first, second)]
            for catalogue in fields:
                del catalogue["created"], catalogue["checksum"]
            assert fields[0] == fields[1]
        else:
            assert first.read_bytes() == second.read_bytes()


def test_several_files_make_one_database(tmp_path: Path) -> None:
    """Expected values: the records of both files, in the order of the command line."""
    (tmp_path / "1.fa").write_bytes(b">a\nMKVL\n>b\nW\n")
    (tmp_path / "2.fq").write_bytes(b"@c\nMKA\n+\nIII\n")
    report = build_database([tmp_path / "1.fa", tmp_path / "2.fq"], tmp_path / "db")
    assert report.catalogue.sources == ("1.fa", "2.fq")
    with open_database(tmp_path / "db") as database:
        assert [(record.header, record.letters) for record in database] == [("a", "MKVL"), ("b", "W"), ("c", "MKA")]


def test_dna_is_told_and_kept(tmp_path: Path) -> None:
    """Expected values: the letters as written, including U and lower case."""
    (tmp_path / "1.fa").write_bytes(b">g\nACGTnnACGUACGTACGTACGT\n")
    build_database(tmp_path / "1.fa", tmp_path / "db")
    with open_database(tmp_path / "db") as database:
        assert database.alphabet is DNA
        assert database.record(0).letters == "ACGTnnACGUACGTACGTACGT"


def test_progress_is_told(tmp_path: Path, fasta: Path, records: Records) -> None:
    """Expected values: the last call reports everything."""
    calls: list[tuple[int, int]] = []
    build_database(fasta, tmp_path / "db", progress=lambda *counts: calls.append(counts))
    assert calls[-1] == (len(records), sum(len(letters) for _, letters in records))


def test_bad_input_leaves_nothing_behind(tmp_path: Path) -> None:
    """Expected value: the folder as it was before the build."""
    (tmp_path / "1.fa").write_bytes(b">a\nMKVL\n>b\nM1\n")
    with pytest.raises(FastaFormatError, match="line 4, column 2"):
        build_database(tmp_path / "1.fa", tmp_path / "db", PROTEIN)
    assert [path.name for path in tmp_path.iterdir()] == ["1.fa"]


def test_no_input_is_an_error(tmp_path: Path) -> None:
    """An empty list of files does not make an empty database."""
    with pytest.raises(InputError, match="at least one path is needed"):
        build_database([], tmp_path / "db")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path, fasta: Path) -> None:
    expected = f"{tmp_path}/none/x.db cannot be written: there is no folder {tmp_path}/none; make it, or choose another"
    with pytest.raises(DatabaseError, match=re.escape(expected)):
        build_database(fasta, tmp_path / "none" / "x.db")
    assert not (tmp_path / "none").exists()


def test_an_existing_database_is_kept_unless_replaced(
    tmp_path: Path, fasta: Path, database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected values: the old content after a refusal, the new content after a replacement, and no other files."""
    (tmp_path / "new.fa").write_bytes(b">a\nMKVL\n")
    with pytest.raises(DatabaseError, match=r"exists already; .*overwrite=True"):
        build_database(tmp_path / "new.fa", database_path)
    assert problems_of(database_path) == []
    build_database(tmp_path / "new.fa", database_path, overwrite=True)
    with open_database(database_path) as database:
        assert [record.header for record in database] == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {"new.fa", fasta.name, database_path.name}


def test_replacing_works_where_names_cannot_be_exchanged(
    tmp_path: Path, database_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems without RENAME_EXCHANGE return EINVAL; expected value: the new database, and no old one."""
    monkeypatch.setattr("swsearch.database.staging._renamed", lambda *_: False)
    (tmp_path / "new.fa").write_bytes(b">a\nMKVL\n")
    build_database(tmp_path / "new.fa", database_path, overwrite=True)
    with open_database(database_path) as database:
        assert database.n_subjects == 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_replacing_spares_what_is_no_database(tmp_path: Path, fasta: Path) -> None:
    """Expected value: a folder of other files is unchanged, even if a replacement is requested."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("text")
    for target in (tmp_path / "thesis", fasta):
        with pytest.raises(DatabaseError, match="not a packed database"):
            build_database(fasta, target, overwrite=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "text"
