"""Indexing that leaves out records with wrong letters or none: what is kept, and what is told of the others.

The expected values are the records as they were made: the database of the good ones alone, and a list of the bad ones.
"""

import gzip
import random
from pathlib import Path

import pytest

from swsearch.database.builder import build_database
from swsearch.errors import FastaFormatError
from swsearch.sequences import fasta as fasta_reader
from swsearch.sequences.alphabet import DNA
from swsearch.sequences.record import InvalidRecord
from tests.database.conftest import fasta_text, some_records
from tests.database.test_indexing import arrays_of

BAD = {
    "wrong letter": (b">bad %d\nMKV\nWY1L\nMKV\n", "residue 6: '1' is not in alphabet protein"),
    "gap": (b">bad %d\nMK-V\n", "residue 3: '-' is a gap"),
    "blank": (b">bad %d\nMK V\n", "residue 3: white space among residues"),
    "comment": (b">bad %d\nMKV\n;remark\nMKV\n", "residue 4: ';' is not in alphabet protein"),
    "empty": (b">bad %d\n", "has no residues"),
    "control character": (b">bad %d\x1c\nMKV\n", "byte 0x1C has no place in a header"),
}


def with_bad_records(seed: int) -> tuple[list[tuple[str, str]], bytes, list[tuple[int, str]]]:
    """Return good records, the text in which bad ones are among them, and number and reason of the bad ones."""
    source = random.Random(seed)
    good = some_records(300, seed)
    text, bad, number = b"", [], 0
    for record in good:
        while source.random() < 0.3:
            number += 1
            layout, reason = source.choice(list(BAD.values()))
            text += layout % number
            bad.append((number, reason))
        number += 1
        text += fasta_text([record])
    return good, text, bad


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize("text_bytes", [300, 9_000, 10**9])
def test_the_database_is_that_of_the_good_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_threads: int, text_bytes: int
) -> None:
    """Blocks and threads change neither the files nor the list of skipped records."""
    good, text, bad = with_bad_records(5)
    (tmp_path / "all.fa.gz").write_bytes(gzip.compress(text))
    (tmp_path / "good.fa").write_bytes(fasta_text(good))
    monkeypatch.setattr(fasta_reader, "BLOCKS_BYTES", text_bytes)
    skipped: list[InvalidRecord] = []
    built = build_database(tmp_path / "all.fa.gz", tmp_path / "all.db", threads=n_threads, skip=skipped.append)
    alone = build_database(tmp_path / "good.fa", tmp_path / "good.db")
    assert built.catalogue.digest == alone.catalogue.digest
    assert arrays_of(tmp_path / "all.db") == arrays_of(tmp_path / "good.db")
    assert [(record.record, record.identifier.strip("\x1c")) for record in skipped] == [(n, "bad") for n, _ in bad]
    assert all(record.reason.startswith(reason) for record, (_, reason) in zip(skipped, bad, strict=True))
    assert {record.path for record in skipped} == {str(tmp_path / "all.fa.gz")}


@pytest.mark.parametrize("text_bytes", [300, 10**9])
def test_records_of_fastq_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_bytes: int) -> None:
    """Expected values by hand."""
    records = [("a", "ACGT"), ("bad1", "AC1T"), ("b x", "GGG"), ("bad2", ""), ("c", "TTTT"), ("bad3", "E"), ("d", "A")]
    text = "".join(f"@{header}\n{letters}\n+\n{'I' * len(letters)}\n" for header, letters in records)
    (tmp_path / "reads.fq").write_text(text)
    monkeypatch.setattr(fasta_reader, "BLOCKS_BYTES", text_bytes)
    skipped: list[InvalidRecord] = []
    built = build_database(tmp_path / "reads.fq", tmp_path / "db", DNA, skip=skipped.append)
    assert built.catalogue.n_subjects == 4
    assert [(one.record, one.identifier, one.reason.split(";")[0]) for one in skipped] == [
        (2, "bad1", "residue 3: '1' is not in alphabet dna (ACGTRYSWKMBDHVNU)"),
        (4, "bad2", "has no residues"),
        (6, "bad3", "residue 1: 'E' is not in alphabet dna"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"MKV\n>a\nMKV\n", "line 1, column 1: expected '>' or '@'"),
        (b"; remark\n>a\nMKV\n", "line 1, column 1: a line that begins with ';' is a comment"),
        (b"@a\nACGT\n+\nIII\n", "broken FASTQ"),
        (gzip.compress(b">a\nMKV\n" * 1000, mtime=0)[:-9], "cut short"),
        (b">a\n>b\nMK1\n", "no record is a sequence of the alphabet"),
    ],
)
def test_damage_that_is_not_within_a_record_remains_an_error(tmp_path: Path, text: bytes, problem: str) -> None:
    (tmp_path / "damaged.fa").write_bytes(text)
    with pytest.raises(FastaFormatError) as raised:
        build_database(tmp_path / "damaged.fa", tmp_path / "db", skip=lambda _: None)
    assert problem in str(raised.value)
    assert not (tmp_path / "db").exists()
