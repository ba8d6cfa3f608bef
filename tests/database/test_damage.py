"""Databases that are missing, foreign or damaged: they are refused or reported, never searched.

The expected words are written by hand for each kind of damage.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsearch.database.builder import build_database
from swsearch.database.catalogue import read_catalogue
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.format import ARRAY_DTYPES, CATALOGUE, TOMBSTONE_DTYPE
from swsearch.database.opening import open_database
from swsearch.database.staging import LOCK, write_generation
from swsearch.database.translated_subjects import TranslatedSubjects
from swsearch.errors import DatabaseError, SwSearchError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import open_searcher
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.genetic_code import genetic_code
from swsearch.sequences.record import SequenceRecord
from swsearch.words import counted
from tests.taxonomy.dumps import EXCERPT


def message_of(path: Path) -> str:
    with pytest.raises(DatabaseError) as caught:
        open_database(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def rewrite(database: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the catalogue and update its checksum."""
    fields = json.loads((database / CATALOGUE).read_text())
    del fields["checksum"]
    change(fields)
    fields["checksum"] = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    (database / CATALOGUE).write_text(json.dumps(fields))


def test_missing_and_foreign_things_are_named(tmp_path: Path) -> None:
    """Expected words: what the object is, and what to do."""
    assert "does not exist" in message_of(tmp_path / "none")
    (tmp_path / "notes.txt").write_text("hello")
    assert "neither a packed database (a folder with catalogue.json) nor a seq" in message_of(tmp_path / "notes.txt")
    (tmp_path / "folder").mkdir()
    assert f"no {CATALOGUE}" in message_of(tmp_path / "folder")
    (tmp_path / "folder" / CATALOGUE).write_text('{"format": "something else"}')
    assert "not that of a swsearch packed database" in message_of(tmp_path / "folder")
    (tmp_path / "folder" / CATALOGUE).write_text("{")
    assert "not JSON" in message_of(tmp_path / "folder")


def test_other_versions_and_alphabets_are_refused(database_path: Path) -> None:
    """Expected words: the version found and the supported one."""
    rewrite(database_path, lambda fields: fields.update(alphabet="runes"))
    assert "alphabet 'runes'" in message_of(database_path)
    rewrite(database_path, lambda fields: fields.update(version=4))
    assert "format version 4, this program reads versions 1, 2 and 3" in message_of(database_path)


def test_verify_finds_nothing_in_a_sound_database(
    database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected value: no problem."""
    assert problems_of(database_path) == []


def test_a_flipped_bit_anywhere_is_found(
    database_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """One bit at the beginning, in the middle and at the end of every file; SHA-256 must detect each."""
    add_to_database(database_path, fasta)
    remove_from_database(database_path, ["P3", "P77", "P150"])
    files = sorted(path for path in database_path.rglob("*") if path.is_file() and path.name != LOCK)
    assert len(files) == 1 + 2 * (7 + 1)
    for path in files:
        sound = path.read_bytes()
        for offset in {0, len(sound) // 3, len(sound) // 2, len(sound) - 2}:
            damaged = bytearray(sound)
            damaged[offset] ^= 1
            path.write_bytes(damaged)
            problems = problems_of(database_path)
            assert problems, f"{path.name}, byte {offset}"
            assert path.name in " ".join(problems)
        path.write_bytes(sound)
    assert problems_of(database_path) == []


def test_a_shortened_or_lengthened_file_is_refused_at_once(
    database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected words: both sizes; opening alone must detect it, because a map beyond the end would crash."""
    remove_from_database(database_path, ["P3", "P77", "P150"])
    for path in sorted(database_path.glob("*/*.bin")):
        sound = path.read_bytes()
        for changed in (sound[:-1], sound + b"\0", b""):
            path.write_bytes(changed)
            message = message_of(database_path)
            assert f"{path.name} has {len(changed):,} bytes, {len(sound):,} are expected" in message
            assert problems_of(database_path) == [message]
        path.unlink()
        assert "No such file" in message_of(database_path)
        path.write_bytes(sound)


def test_every_mapped_file_of_slices_and_taxonomy_has_its_size_checked(
    tmp_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected words as above, for the files that a database without slices and organisms does not have."""
    database = tmp_path / "sliced.db"
    build_database(fasta, database, slices=2, taxonomy=EXCERPT)
    names = set()
    for path in sorted(database.glob("*/*.bin")):
        sound = path.read_bytes()
        names.add(path.stem)
        if not sound:
            continue
        path.write_bytes(sound[:-1])
        assert f"{path.name} has {counted(len(sound) - 1, 'byte')}, {len(sound):,} are expected" in message_of(database)
        path.write_bytes(sound)
    assert names >= {"indices", "residues", "taxids", "set_of", "merged"}
    assert problems_of(database) == []


STRUCTURE = [
    ("lengths", lambda a: a[::-1].copy(), "lengths do not grow"),
    ("order", np.zeros_like, "positions are not the inverse"),
    ("positions", lambda a: np.roll(a, 1), "positions are not the inverse"),
    ("residues", lambda a: np.where(a == 31, 30, a).astype(np.uint8), "padding is not code 31"),
    ("header_ends", lambda a: a[::-1].copy(), "header ends"),
    ("header_ends", lambda a: np.append(np.uint64(2**64 - 1), a[1:]), "header ends"),
    ("removed-000002", lambda a: a[::-1].copy(), "no growing places"),
    ("removed-000002", lambda a: a + np.uint32(198), "no growing places"),
    ("removed-000002", lambda a: a + np.uint32(1), "not as many"),
]


@pytest.mark.parametrize(("name", "change", "words"), STRUCTURE)
def test_arrays_that_break_the_format_are_found_under_right_digests(
    database_path: Path,
    name: str,
    change: Callable[[np.ndarray], np.ndarray],
    words: str,
    problems_of: Callable[[Path], list[str]],
) -> None:
    """A faulty writer signs wrong arrays with matching digests; expected words: the violated rule of the format."""
    remove_from_database(database_path, ["P1", "P3", "P4"])
    (path,) = database_path.glob(f"*/{name}.bin")
    path.write_bytes(change(np.fromfile(path, ARRAY_DTYPES.get(name, TOMBSTONE_DTYPE))).tobytes())

    def record_digest(fields: dict[str, object]) -> None:
        segment = fields["segments"][0]  # type: ignore[index]
        entry = segment["files"].get(name) or segment["removed"]["file"]
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    rewrite(database_path, record_digest)
    write_generation(database_path, read_catalogue((database_path / CATALOGUE).read_text()))
    problems = problems_of(database_path)
    assert any(words in problem for problem in problems), problems


def test_a_digest_that_is_not_that_of_the_files_is_found(
    database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Runs are linked to a database by its digest, so it must be the digest of the files."""
    rewrite(database_path, lambda fields: fields.update(digest="0" * 64))
    (problem,) = problems_of(database_path)
    assert "digest" in problem


def test_what_is_no_regular_file_is_refused_without_waiting(database_path: Path) -> None:
    """A pipe without a writer would block the program forever, and a folder or device is not an array."""
    for name in (CATALOGUE, "segment-000001/headers.bin", "segment-000001/starts.bin"):
        path = database_path / name
        sound = path.read_bytes()
        path.unlink()
        for make in (os.mkfifo, os.mkdir, partial(os.symlink, "/dev/zero")):
            make(path)
            assert "not a regular file" in message_of(database_path)
            path.rmdir() if path.is_dir() else path.unlink()
        path.write_bytes(sound)


FIELDS: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("no segments", lambda fields: fields.pop("segments"), "segments is None, no list"),
    ("version true", lambda fields: fields.update(version=True), "format version True"),
    ("version 1.0", lambda fields: fields.update(version=1.0), "format version 1.0"),
    ("generation of many digits", lambda fields: fields.update(generation=10**400), "generation is 1000"),
    ("name outside", lambda fields: fields["segments"][0].update(name="../other"), "name is '../other'"),
    ("size a text", lambda fields: fields["segments"][0]["files"]["starts"].update(size="8"), "starts, size is '8'"),
    ("size negative", lambda fields: fields["segments"][0]["files"]["headers"].update(size=-1), "headers, size is -1"),
    ("count true", lambda fields: fields["segments"][0].update(n_subjects=True), "n_subjects is True"),
    ("a segment twice", lambda fields: fields["segments"].append(fields["segments"][0]), "two segments have one name"),
    ("no segment", lambda fields: fields["segments"].clear(), "0 subjects in all"),
    ("a file less", lambda fields: fields["segments"][0]["files"].pop("order"), "order is not an object"),
    ("a number for a text", lambda fields: fields.update(alphabet=7), "alphabet is 7"),
    ("few residues", lambda fields: fields["segments"][0].update(n_residues=1), "fewer residues than subjects"),
    (
        "few residues left",
        lambda fields: fields["segments"][0].update(
            removed={
                "name": "removed-000002.bin",
                "n_subjects": 1,
                "n_residues": fields["segments"][0]["n_residues"],
                "file": fields["segments"][0]["files"]["order"],
            }
        ),
        "fewer residues are left than subjects",
    ),
    ("a long shortest", lambda fields: fields["segments"][0].update(shortest=10**6), "longer than its longest one"),
]


@pytest.mark.parametrize(("change", "words"), [case[1:] for case in FIELDS], ids=[case[0] for case in FIELDS])
def test_a_catalogue_of_a_faulty_writer_is_refused_by_field(
    database_path: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    """Its checksum is valid; expected words: the field and its value."""
    rewrite(database_path, change)
    assert words in message_of(database_path)


def test_a_catalogue_that_is_no_text_of_this_format_is_refused(database_path: Path) -> None:
    for text in (b"[" * 100_000, b'{"format": NaN}', b"\xff", b"null", b'{"version": ' + b"9" * 5000 + b"}"):
        (database_path / CATALOGUE).write_bytes(text)
        message_of(database_path)
    os.truncate(database_path / CATALOGUE, 1 << 33)
    assert "has more than 268,435,456 bytes" in message_of(database_path)


LAYOUT = [
    ("lengths", lambda a: a[::-1].copy(), "lengths do not grow"),
    ("lengths", lambda a: np.where(a == a[-1], 2**32 - 1, a).astype(np.uint32), "too long"),
    ("starts", lambda a: a + np.uint64(2**40), "side by side"),
    ("order", lambda a: a + np.uint32(200), "a place is that of no subject"),
    ("positions", lambda a: np.roll(a, 1), "not the inverse"),
    ("positions", lambda a: a + np.uint32(200), "not the inverse"),
    ("header_ends", lambda a: a + np.uint64(2**63), "a header ends"),
    ("header_ends", lambda a: a[::-1].copy(), "a header ends"),
    ("residues", lambda a: a | np.uint8(0x80), "a residue is not a letter"),
    ("residues", lambda a: np.where(a == 0, 30, a).astype(np.uint8), "a residue is not a letter"),
]


@pytest.mark.parametrize(("name", "change", "words"), LAYOUT)
def test_damage_that_leads_out_of_an_array_is_met_when_it_is_used(
    database_path: Path, name: str, change: Callable[[np.ndarray], np.ndarray], words: str
) -> None:
    """The sizes are right, so the database opens; iteration over all subjects reports the damage."""
    path = database_path / "segment-000001" / f"{name}.bin"
    path.write_bytes(change(np.fromfile(path, ARRAY_DTYPES[name])).tobytes())
    with open_database(database_path) as database:
        every = itertools.chain(database.partitions(), database)
        with pytest.raises(DatabaseError, match=f"segment-000001 is damaged, .*{words}"):
            list(every)


def test_damaged_dna_is_not_translated(tmp_path: Path) -> None:
    """A residue that is not a base was an index beyond the table of complements."""
    (tmp_path / "dna.fa").write_text(">C1\nACGTACGT\n>C2\nACGTTGCATT\n")
    build_database(tmp_path / "dna.fa", tmp_path / "dna.db", DNA)
    path = tmp_path / "dna.db" / "segment-000001" / "residues.bin"
    path.write_bytes(path.read_bytes().replace(b"\0", b"\x4e"))
    with (
        open_database(tmp_path / "dna.db") as database,
        pytest.raises(DatabaseError, match=r"residues\.bin: a residue is not a letter"),
    ):
        TranslatedSubjects(database, genetic_code(1))


@pytest.mark.parametrize("change", ["add", "remove", "compact"])
def test_no_change_makes_a_wrong_digest_right(
    database_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]], change: str
) -> None:
    """A change computes the digest anew, so it must refuse a catalogue whose digest is not that of its files."""
    rewrite(database_path, lambda fields: fields.update(digest="0" * 64))
    changes: dict[str, Callable[[], object]] = {
        "add": lambda: add_to_database(database_path, fasta),
        "remove": lambda: remove_from_database(database_path, ["P7"]),
        "compact": lambda: compact_database(database_path),
    }
    with pytest.raises(DatabaseError, match=r"is damaged: .*the digest in the catalogue is not that of its files"):
        changes[change]()
    assert problems_of(database_path)


def test_scores_that_their_alignments_do_not_have_are_blamed_on_the_database(database_path: Path) -> None:
    """Two stored subjects claim to be the same one of the FASTA: one of the scores is not that of its alignment."""
    path = database_path / "segment-000001" / "order.bin"
    order = np.fromfile(path, "<u4")
    order[-1] = order[-2]
    path.write_bytes(order.tobytes())
    options = SearchOptions(evalue=float("inf"), top=10_000)
    with open_database(database_path) as database:
        query = SequenceRecord("query", database.codes(int(order[-2])), PROTEIN)
    with (
        open_searcher(database_path, options, engine="reference") as searcher,
        pytest.raises(SwSearchError, match="swsearch db verify") as caught,
    ):
        list(searcher.search([query]))
    assert str(database_path) in str(caught.value)


def test_a_compaction_does_not_make_damage_pass_for_whole(
    database_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """A letter was replaced by another: the new files' digests would be those of the wrong letters."""
    add_to_database(database_path, fasta)
    path = database_path / "segment-000001" / "residues.bin"
    path.write_bytes(np.where(np.fromfile(path, "u1") == 0, 1, np.fromfile(path, "u1")).astype("u1").tobytes())
    with pytest.raises(DatabaseError, match=r"is damaged: .*residues\.bin has changed"):
        compact_database(database_path)
    assert problems_of(database_path)
    assert sorted(path.name for path in database_path.glob("segment-*")) == ["segment-000001", "segment-000002"]


def test_a_lock_file_that_is_a_link_is_not_followed(database_path: Path, fasta: Path, tmp_path: Path) -> None:
    """Taking the lock truncates its file: a link must not cause the file of another program to be truncated."""
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (database_path / LOCK).symlink_to(precious)
    with pytest.raises(DatabaseError, match="cannot be written"):
        add_to_database(database_path, fasta)
    assert precious.read_text() == "keep"


def test_a_segment_that_is_a_link_is_read_but_not_changed(database_path: Path, fasta: Path, tmp_path: Path) -> None:
    """A change removes the files of interrupted ones, and must not remove files of the same name behind a link."""
    segment = database_path / "segment-000001"
    elsewhere = segment.rename(tmp_path / "elsewhere")
    segment.symlink_to(elsewhere)
    (elsewhere / "removed-999999.bin").write_text("keep")
    before = sorted(path.name for path in elsewhere.iterdir())
    for change in (
        lambda: add_to_database(database_path, fasta),
        lambda: remove_from_database(database_path, ["P3"]),
        lambda: compact_database(database_path),
    ):
        with pytest.raises(DatabaseError, match="segment-000001 is a symbolic link"):
            change()
    assert sorted(path.name for path in elsewhere.iterdir()) == before
    with open_database(database_path) as database:
        assert database.n_subjects == sum(line.startswith(">") for line in fasta.read_text().splitlines())
