"""Databases that are missing, foreign or damaged: refused or reported, never searched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swsearch.database.changes import add_to_database, remove_from_database
from swsearch.database.format import ARRAY_DTYPES, CATALOGUE, TOMBSTONE_DTYPE, content_digest, read_catalogue
from swsearch.database.lock import LOCK
from swsearch.database.reader import PackedDatabase
from swsearch.errors import DatabaseError


def message_of(path: Path) -> str:
    with pytest.raises(DatabaseError) as caught:
        PackedDatabase.open(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def rewrite(database: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the catalogue and give it a right checksum again."""
    fields = json.loads((database / CATALOGUE).read_text())
    del fields["checksum"]
    change(fields)
    fields["checksum"] = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    (database / CATALOGUE).write_text(json.dumps(fields))


def test_missing_and_foreign_things_are_named(tmp_path: Path, fasta: Path) -> None:
    """Expected words: what the thing is, and what to do."""
    assert "does not exist" in message_of(tmp_path / "none")
    assert "swsearch index" in message_of(fasta)
    (tmp_path / "notes.txt").write_text("hello")
    assert "no packed database" in message_of(tmp_path / "notes.txt")
    (tmp_path / "folder").mkdir()
    assert f"no {CATALOGUE}" in message_of(tmp_path / "folder")
    (tmp_path / "folder" / CATALOGUE).write_text('{"format": "something else"}')
    assert "not that of a swsearch packed database" in message_of(tmp_path / "folder")
    (tmp_path / "folder" / CATALOGUE).write_text("{")
    assert "not JSON" in message_of(tmp_path / "folder")


def test_other_versions_and_alphabets_are_refused(database_path: Path) -> None:
    """Expected words: the version found and the one that is read."""
    rewrite(database_path, lambda fields: fields.update(alphabet="runes"))
    assert "alphabet 'runes'" in message_of(database_path)
    rewrite(database_path, lambda fields: fields.update(version=3))
    assert "format version 3, this program reads versions 1 and 2" in message_of(database_path)


def test_verify_finds_nothing_in_a_sound_database(
    database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected value: no problem."""
    assert problems_of(database_path) == []


def test_a_flipped_bit_anywhere_is_found(
    database_path: Path, fasta: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """One bit at the beginning, in the middle and at the end of every file; SHA-256 must tell each."""
    add_to_database(database_path, fasta)
    remove_from_database(database_path, ["P3", "P77", "P150"])
    files = sorted(path for path in database_path.rglob("*") if path.is_file() and path.name != LOCK)
    assert len(files) == 1 + 2 * (7 + 1)
    for path in files:
        sound = path.read_bytes()
        for place in {0, len(sound) // 3, len(sound) // 2, len(sound) - 2}:
            damaged = bytearray(sound)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            problems = problems_of(database_path)
            assert problems, f"{path.name}, byte {place}"
            assert path.name in " ".join(problems)
        path.write_bytes(sound)
    assert problems_of(database_path) == []


def test_a_shortened_or_lengthened_file_is_refused_at_once(
    database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Expected words: both sizes; opening alone must find it, since a map over the end would crash."""
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


STRUCTURE = [
    ("lengths", lambda a: a[::-1].copy(), "not stored by length"),
    ("order", np.zeros_like, "order is no permutation"),
    ("positions", lambda a: np.roll(a, 1), "positions are not the inverse"),
    ("starts", lambda a: a + np.uint64(16), "starts are not"),
    ("residues", lambda a: np.where(a == 31, 30, a).astype(np.uint8), "padding is not code 31"),
    ("header_ends", lambda a: a[::-1].copy(), "header ends"),
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
    """A faulty writer gives right digests of wrong arrays; expected words: the promise of the format that is broken."""
    remove_from_database(database_path, ["P1", "P3", "P4"])
    (path,) = database_path.glob(f"*/{name}.bin")
    is_removal = name.startswith("removed")
    dtype = TOMBSTONE_DTYPE if is_removal else ARRAY_DTYPES[name]
    path.write_bytes(change(np.fromfile(path, dtype)).tobytes())

    def record_digest(fields: dict[str, object]) -> None:
        segment = fields["segments"][0]  # type: ignore[index]
        entry = segment["removed"]["file"] if is_removal else segment["files"][name]
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    rewrite(database_path, record_digest)
    catalogue = read_catalogue((database_path / CATALOGUE).read_text())
    rewrite(database_path, lambda fields: fields.update(digest=content_digest(catalogue.alphabet, catalogue.segments)))
    problems = problems_of(database_path)
    assert any(words in problem for problem in problems), problems


def test_a_digest_that_is_not_that_of_the_files_is_found(
    database_path: Path, problems_of: Callable[[Path], list[str]]
) -> None:
    """Runs are tied to a database by its digest: it must be that of the files."""
    rewrite(database_path, lambda fields: fields.update(digest="0" * 64))
    (problem,) = problems_of(database_path)
    assert "digest" in problem
