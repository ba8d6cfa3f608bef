"""A translated database against Biopython's translation of the FASTA it was indexed from."""

import errno
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from swsearch.database import translated_subjects as translated
from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, remove_from_database
from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.opening import open_database
from swsearch.database.reader import PackedDatabase
from swsearch.database.translated_subjects import TranslatedSubjects
from swsearch.errors import DatabaseError
from swsearch.hits.score_block import ScoreBlock
from swsearch.sequences.alphabet import DNA, PAD_CODE, PROTEIN
from swsearch.sequences.genetic_code import FRAMES, frame_length, genetic_code
from tests.support import Records, indexed, write_fasta
from tests.translated_data import biopython_frame

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 7, 50, 51, 52, 53, 100, 101, 3]


def some_dna(lengths: list[int]) -> Records:
    rng = np.random.default_rng(17)
    return [(f"s{n}", "".join(rng.choice(list("ACGTacgtN"), size=length))) for n, length in enumerate(lengths)]


@pytest.fixture
def records() -> Records:
    return some_dna(LENGTHS)


@pytest.fixture
def database(tmp_path: Path, records: Records):
    with open_database(indexed(tmp_path / "dna.db", records, DNA)) as opened:
        yield opened


def check(database: PackedDatabase, records: Records, subjects: TranslatedSubjects, max_residues: int | None) -> None:
    """Check that each frame of each record occurs once, equals Biopython's, and has the packed format's layout."""
    by_number = {}
    for partition in subjects.partitions(max_residues):
        assert (np.diff(partition.lengths.astype(np.int64)) >= 0).all()
        assert (np.diff(partition.starts.astype(np.int64)) > 0).all()
        assert (partition.starts % SUBJECT_ALIGNMENT == 0).all()
        assert (partition.residues[-TAIL_PADDING:] == PAD_CODE).all()
        for place, number in enumerate(partition.subject_index.tolist()):
            end = int(partition.starts[place]) + int(partition.lengths[place])
            assert (partition.residues[end : -(-end // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT] == PAD_CODE).all()
            by_number[number] = PROTEIN.decode(partition.codes(place))
    total = sum(map(len, by_number.values()))
    for frame_number, frame in enumerate(FRAMES):
        found = {number // 6: letters for number, letters in by_number.items() if number % 6 == frame_number}
        frames = {index: biopython_frame(letters, frame, 11) for index, (_, letters) in enumerate(records)}
        assert {index: letters.upper() for index, letters in found.items()} == {i: f for i, f in frames.items() if f}
        wanted = np.array([i for i in reversed(frames) if frames[i]], dtype=np.uint32)
        ranges = {}
        for indices, residues, starts, lengths in subjects.stored_ranges(wanted, frame):
            for place, start, length in zip(indices.tolist(), starts.tolist(), lengths.tolist(), strict=True):
                ranges[int(wanted[place])] = PROTEIN.decode(residues[start : start + length])
        assert ranges == found
    assert total == sum(partition.n_residues for partition in subjects.partitions())
    assert total == sum(frame_length(len(s), f) for _, s in records for f in FRAMES)


@pytest.mark.parametrize("block_bases", [3, 4, 5, 7, 16, 33, 1000])
def test_frames_are_biopythons_in_blocks_of_any_size(database, records, block_bases):
    """Source: Biopython. Small blocks divide subjects, and codons of subjects, at every position."""
    check(database, records, TranslatedSubjects(database, genetic_code(11), block_bases=block_bases), None)


def test_partitions_are_cut_as_asked(database, records):
    """Source: Biopython."""
    subjects = TranslatedSubjects(database, genetic_code(11))
    check(database, records, subjects, 20)
    assert len(list(subjects.partitions(20))) > len(list(subjects.partitions())) == 1


def test_scores_are_taken_apart_by_frame():
    """Expected by hand: number 6 * 3 + 1 is subject 3 in frame 2, and so on."""
    numbers = np.array([19, 0, 23, 5, 18], dtype=np.uint32)
    block = ScoreBlock(numbers, np.array([10, 20, 30, 40, 50], dtype=np.int32), n_rescored=2)
    frames = TranslatedSubjects.by_frame(block)
    assert [one.subject_index.tolist() for one in frames] == [[0, 3], [3], [], [], [], [3, 0]]
    assert [one.score.tolist() for one in frames] == [[20, 50], [10], [], [], [], [30, 40]]
    assert sum(one.n_rescored for one in frames) == 2


def test_a_changed_database_is_translated_as_it_is_left(tmp_path, records, database):
    """Source: Biopython, on the records of the changed database: two segments, some subjects removed."""
    more = some_dna([9, 3, 40])
    add_to_database(tmp_path / "dna.db", [write_fasta(tmp_path / "more.fasta", [(f"more_{n}", s) for n, s in more])])
    remove_from_database(tmp_path / "dna.db", ["s0", "s8", "more_s1"])
    left = [record for record in records if record[0] not in ("s0", "s8")] + [more[0], more[2]]
    with open_database(tmp_path / "dna.db") as changed:
        assert [record.letters for record in changed] == [letters for _, letters in left]
        reported: list[int] = []
        subjects = TranslatedSubjects(changed, genetic_code(11), block_bases=16, progress=reported.append)
        check(changed, left, subjects, None)
        # Only the remaining bases are counted: neither removed subjects nor the padding between subjects.
        assert sum(reported) == sum(len(letters) for _, letters in left)
        assert len(reported) > sum(reported) // 16
        assert min(reported) >= 0


def test_a_long_subject_is_translated_in_little_memory(tmp_path):
    """Expected: 12 MB of residues are written while only a few blocks of 65,536 bases are in memory."""
    rng = np.random.default_rng(3)
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), size=6_000_000).tobytes().decode()
    build_database([write_fasta(tmp_path / "long.fasta", [("long", letters)])], tmp_path / "long.db", alphabet=DNA)
    with open_database(tmp_path / "long.db") as database:
        tracemalloc.start()
        subjects = TranslatedSubjects(database, genetic_code(1), block_bases=1 << 16)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3_000_000
        ((_, residues, starts, lengths),) = subjects.stored_ranges(np.zeros(1, np.uint32), -2)
        found = residues[int(starts[0]) : int(starts[0]) + int(lengths[0])]
        assert PROTEIN.decode(found) == biopython_frame(letters, -2)


def test_a_full_disk_is_one_clear_error(database, monkeypatch):
    def full(descriptor: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(translated.os, "posix_fallocate", full)
    with pytest.raises(DatabaseError, match=r"cannot take .* bytes .* No space left on device; set TMPDIR"):
        TranslatedSubjects(database, genetic_code(1))
