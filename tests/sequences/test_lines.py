"""Text files of lines, such as lists, matrices and profiles: read completely, or refused with the file's name.

The expected lines and messages are written by hand.
"""

import gzip
import io
import lzma
import sys
from pathlib import Path

import pytest

from swsearch.errors import FastaFormatError, InputError
from swsearch.sequences import checked_text, source
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.source import text_lines, whole_number
from tests.sequences.test_fasta import COMPRESSORS

TEXT = b"P1\nP2\n"


def read(path: Path) -> list[str]:
    return list(text_lines(path, "the list"))


@pytest.mark.parametrize("packer", COMPRESSORS.values(), ids=COMPRESSORS)
@pytest.mark.parametrize("damage", ["cut", "garbage between", "garbage behind"])
def test_a_damaged_archive_loses_no_line_in_silence(packer, damage, tmp_path):
    """The standard library treats garbage between bzip2 or xz streams as the end; zstd has its own exception class."""
    path = tmp_path / "list"
    whole = packer(TEXT)
    path.write_bytes(
        {"cut": whole[:-3], "garbage between": whole + b"xx" + whole, "garbage behind": whole + b"garbage"}[damage]
    )
    with pytest.raises(InputError, match=r"^the list: .*") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_an_archive_on_standard_input_is_told_by_its_first_bytes(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lzma.compress(TEXT))))
    assert list(text_lines("-", "<stdin>")) == ["P1\n", "P2\n"]


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    """An archive of a few kilobytes can hold a line of gigabytes; the limit is reduced for the test."""
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "list"
    path.write_bytes(gzip.compress(b"P1\n" + b"A" * 1000 + b"\n"))
    with pytest.raises(InputError, match="the list, line 2: more than 1,000 bytes"):
        read(path)


@pytest.mark.parametrize(
    "text", [b">P1\n" + b"A" * 3_000_000, b">P1\n" + b"A\n" * 1_500_000, b"@r\n" + b"A" * 3_000_000]
)
def test_a_record_without_end_is_refused(text, tmp_path, monkeypatch):
    """The same limit applies to the records of a sequence file."""
    monkeypatch.setattr(checked_text, "MAX_RECORD_BYTES", 1 << 21)
    path = tmp_path / "bomb.fa.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(FastaFormatError, match=r"bomb\.fa\.gz: a record of more than 2,097,152 bytes"):
        list(read_sequences(path))


def test_numbers_of_text_files_are_ascii_digits():
    assert [whole_number(text) for text in ("0", "-7", "+12")] == [0, -7, 12]
    for text in ("1_0", "\u0661", "", "1.0", "0x1", "9" * 5000, " 1"):
        with pytest.raises(ValueError, match="is not a whole number"):
            whole_number(text)
