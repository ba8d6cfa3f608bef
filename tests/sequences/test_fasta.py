"""Reading sequence files: the accepted layouts, and the position that each error names.

The expected records are written by hand or come from Biopython; the expected positions are counted by hand.
"""

import bz2
import gzip
import io
import lzma
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from Bio.SeqIO.FastaIO import SimpleFastaParser
from hypothesis import given, settings
from hypothesis import strategies as st
from xopen import zstd

from swsearch.errors import FastaFormatError
from swsearch.sequences import checked_text
from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet
from swsearch.sequences.fasta import read_chunks, read_each, read_sequences
from swsearch.sequences.record import SequenceRecord

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": partial(bz2.compress, compresslevel=1),  # blocks of 100 kB, so that a file has several
    "xz": lzma.compress,
    "zst": zstd.compress,
}


def letters_of(path: Path, alphabet: Alphabet | None = None) -> list[tuple[str, str]]:
    return [(record.header, record.letters) for record in read_sequences(path, alphabet)]


def error_of(path: Path, alphabet: Alphabet | None = None) -> FastaFormatError:
    with pytest.raises(FastaFormatError) as caught:
        letters_of(path, alphabet)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return caught.value


ACCEPTED = {
    "one residue": (b">a\nM", [("a", "M")]),
    "several lines": (b">a b\nMKV\nLL\n\n>c\nW\n", [("a b", "MKVLL"), ("c", "W")]),
    "UTF-8 mark": (b"\xef\xbb\xbf>a\nMK\n", [("a", "MK")]),
    "CR": (b">a\rMK\rVL\r>b\rW\r", [("a", "MKVL"), ("b", "W")]),
    "CRLF": (b">a\r\nMK\r\nVL\r\n>b\r\nW\r\n", [("a", "MKVL"), ("b", "W")]),
    "blanks around a line": (b">a \t\n MK\t\nVL \n", [("a", "MKVL")]),
    "blank lines first": (b"\n\n>a\nMK\n", [("a", "MK")]),
    "empty header": (b">\nMK\n", [("", "MK")]),
    "case and rare letters": (b">a\nMkUuOJ*Xx\n", [("a", "MkUuOJ*Xx")]),
    "same identifier twice": (b">a\nMK\n>a\nVL\n", [("a", "MK"), ("a", "VL")]),
    "blanks within the header line": (b"> a b \t\nMK\n", [(" a b", "MK")]),
    "FASTQ, a tab behind the header": (b"@a\t\nMK\n+\nII\n", [("a", "MK")]),
    "FASTQ, an empty header": (b"@\nMK\n+\nII\n@b\nVL\n+\nI\x01\n", [("", "MK"), ("b", "VL")]),
    "FASTQ, two line ends": (b"@a b \r\nMK\n+a b \r\nI~\n@c\nVL\r\n+\n I", [("a b", "MK"), ("c", "VL")]),
    "header signs": (b">a#b ;c\x01d\tf >g\nMK\n", [("a#b ;c\x01d\tf >g", "MK")]),
}


@pytest.mark.parametrize(("text", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_every_usual_layout_is_read(tmp_path, text, expected):
    """Expected values: written by hand from the text, for both ways of reading."""
    path = tmp_path / "some.fa"
    path.write_bytes(text)
    assert letters_of(path) == expected
    each = read_each(path, next(read_sequences(path)).alphabet)
    assert [(one.header, one.letters) for one in each if isinstance(one, SequenceRecord)] == expected


def test_headers_keep_every_byte(tmp_path):
    """Expected values: the bytes as written; 0xA0 and 0x85 are white space in Latin-1, but must not be lost."""
    header = "é\u3000".encode() + b"\xff\x85\xa0"
    path = tmp_path / "some.fa"
    path.write_bytes(b">" + header + b"\nMK\n")
    (record,) = read_sequences(path)
    assert record.header.encode("utf-8", "surrogateescape") == header


REJECTED = {
    "empty": (b"", None, None, None, None, "no sequences"),
    "blank lines only": (b"\n \n", None, None, None, None, "no sequences"),
    "no header": (b"\nMKV\n", None, None, 2, 1, "expected '>'"),
    "header only": (b">a b\n", 1, "a", 1, None, "has no residues"),
    "record without residues": (b">a\nMK\n>b\n\n>c\nMK\n", 2, "b", 3, None, "has no residues"),
    "digit": (b">a\nMK\n>b x\nMKV\nM1K\n", 2, "b", 5, 2, "'1' is not in alphabet"),
    "NUL": (b">a\nMKVL\nM\0K\n", 1, "a", 3, 2, "byte 0x00"),
    "NUL in a header": (b">abc\0\nMKVL\n", None, None, 1, 5, "byte 0x00"),
    "space": (b">a\nMK VL\n", 1, "a", 2, 3, "white space"),
    "gap": (b">a\nMK\nV-L\n", 1, "a", 3, 2, "gap"),
    "non-ASCII": (b">a\nMK\xc3\xa9\n", 1, "a", 2, 3, "byte 0xC3"),
    "unit separator at a line's end": (b">a\nMK\x1f\n", 1, "a", 2, 3, "byte 0x1F"),
    "control character": (b">a\nMK\x07V\n", 1, "a", 2, 3, "byte 0x07"),
    "comment": (b">a\nMK\n  # note\nVL\n", 1, "a", 3, 3, "comment"),
    "comment first": (b"; old style\n>a\nMK\n", None, None, 1, 1, "comment"),
    "UTF-16 with mark": (">a\nMK\n".encode("utf-16"), None, None, 1, None, "UTF-16"),
    "UTF-16-LE": (">a\nMK\n".encode("utf-16-le"), None, None, 1, None, "UTF-16"),
    "UTF-16-BE": (">a\nMK\n".encode("utf-16-be"), None, None, 1, None, "UTF-16"),
    "FASTQ of unequal lengths": (b"@r\nACGT\n+\nIII\n", 1, None, 4, None, "broken FASTQ"),
    "FASTQ cut short": (b"@q\nAC\n+\nII\n@r\nACGT\n+\n", 2, None, 8, None, "broken FASTQ"),
    "FASTQ with two names": (b"@r1\nACGT\n+\nIIII\n@r2 x\nACN\n+r3\n@@@\n", 2, None, 7, None, "broken FASTQ"),
    "FASTQ with a bad letter": (b"@q\nAC\n+\nII\n@r\nAC4T\n+\nIIII\n", 2, "r", 6, 3, "'4' is not in alphabet"),
    "FASTQ without residues": (b"@q\nAC\n+\nII\n@r\n\n+\n\n", 2, "r", 6, None, "has no residues"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_errors_name_record_line_and_column(tmp_path, case):
    """Expected values: counted by hand in the text, from 1."""
    text, record, identifier, line, column, words = REJECTED[case]
    path = tmp_path / "some.fa"
    path.write_bytes(text)
    error = error_of(path)
    assert (error.record, error.identifier, error.line, error.column) == (record, identifier, line, column)
    assert words in str(error)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_time_to_read_short_lines_does_not_depend_on_their_ends(tmp_path, end):
    """With a look for the next LF from each line, the third text would take many minutes."""
    path = tmp_path / "s.fa"
    path.write_bytes(b">a" + end + (b"M" + end) * 3_000_000 + b">b" + end + b"W" + end)
    assert [(record.header, len(record)) for record in read_sequences(path)] == [("a", 3_000_000), ("b", 1)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 3, 10, 1 << 20])
def test_places_are_counted_over_lines_that_are_skipped_together(tmp_path, monkeypatch, end, size):
    """Whatever the pieces are in which the text is looked through; blank lines and blanks at either end count."""
    monkeypatch.setattr(checked_text, "_PIECE", size)
    path = tmp_path / "s.fa"
    lines = [b"", b">a", b"", b" ", b"MKV ", b"\tMKV", b"", b"mk", b">b", b"W", b"", b"  W1", b"MK"]
    path.write_bytes(end.join(lines))
    error = error_of(path, PROTEIN)
    assert (error.record, error.identifier, error.line, error.column) == (2, "b", 12, 4)
    path.write_bytes(end.join([*lines[:9], b"", b" "]))
    error = error_of(path, PROTEIN)
    assert (error.record, error.line) == (2, 9)
    path.write_bytes(end.join([*lines[:10], b" #MK"]))
    error = error_of(path)
    assert (error.record, error.line, error.column) == (2, 11, 2)


def test_dna_file_that_turns_to_protein_is_refused(tmp_path):
    """The sample of a million letters is DNA; expected position: the line written after it."""
    path = tmp_path / "some.fa"
    lines = 1_200_000 // 60
    path.write_bytes(b">g\n" + (b"ACGT" * 15 + b"\n") * lines + b">p\nACGTLLL\n")
    error = error_of(path)
    assert (error.record, error.identifier, error.line, error.column) == (2, "p", lines + 3, 5)
    assert "alphabet dna" in str(error)


def test_alphabet_is_told_by_the_first_file(tmp_path):
    """Expected value: the first file is DNA, so the second one, whose letters fit both alphabets, is also DNA."""
    (tmp_path / "1.fa").write_bytes(b">a\nACGTACGTAN\n")
    (tmp_path / "2.fa").write_bytes(b">b\nMKVDNHRS\n")
    records = list(read_sequences([tmp_path / "1.fa", tmp_path / "2.fa"]))
    assert [record.alphabet for record in records] == [DNA, DNA]
    assert [record.letters for record in records] == ["ACGTACGTAN", "MKVDNHRS"]


def test_fastq_is_read_without_its_qualities(tmp_path):
    """Expected values: written by hand; qualities may begin with '#', ';', '>' and '@'."""
    path = tmp_path / "some.fq"
    path.write_bytes(b"@r1 x\nACGT\n+\n#III\n@r2\nAc\n+r2\n;@\n@r3\nG\n+\n>\n@r4\nN\n+\n@\n")
    assert letters_of(path) == [("r1 x", "ACGT"), ("r2", "Ac"), ("r3", "G"), ("r4", "N")]


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("has_suffix", [True, False])
def test_archives_are_told_by_content(tmp_path, name, has_suffix):
    """Expected values: the records that were compressed, by each format's own writer."""
    path = tmp_path / (f"some.fa.{name}" if has_suffix else "some.fa")
    path.write_bytes(COMPRESSORS[name](b">a\nMKV\n>b\nWL\n"))
    assert letters_of(path) == [("a", "MKV"), ("b", "WL")]


@pytest.mark.parametrize("name", COMPRESSORS)
def test_archives_of_several_streams_are_read_whole(tmp_path, name):
    """Expected values: both parts; the formats allow concatenated archives."""
    path = tmp_path / f"some.fa.{name}"
    path.write_bytes(COMPRESSORS[name](b">a\nMKV\n") + COMPRESSORS[name](b">b\nWL\n"))
    assert letters_of(path) == [("a", "MKV"), ("b", "WL")]


@pytest.mark.parametrize("name", COMPRESSORS)
def test_archive_cut_anywhere_is_an_error(tmp_path, name):
    """A cut at any byte, including between blocks, is an error: no prefix of a stream is a valid stream."""
    whole = COMPRESSORS[name](b"".join(b">s%d\nMKVLWYHH\n" % n for n in range(30)))
    path = tmp_path / f"some.fa.{name}"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert error_of(path).path == str(path)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_large_archive_cut_between_blocks_is_an_error(tmp_path, name):
    """As above, for archives of several blocks: 400 kB that do not compress well, cut at 60 positions."""
    source = random.Random(7)
    text = b"".join(b">s%d\n%s\n" % (n, bytes(source.choices(b"ARNDCQEGHILKMFPSTWYV", k=400))) for n in range(1000))
    whole = COMPRESSORS[name](text)
    path = tmp_path / f"some.fa.{name}"
    for part in range(1, 60):
        path.write_bytes(whole[: len(whole) * part // 60])
        assert error_of(path).path == str(path)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_damage_behind_the_first_stream_is_an_error(tmp_path, name):
    """The second stream's magic number is damaged: its records must not be lost as if the file ended there."""
    second = bytearray(COMPRESSORS[name](b">b\nWL\n"))
    second[1] ^= 0xFF
    path = tmp_path / f"some.fa.{name}"
    path.write_bytes(COMPRESSORS[name](b">a\nMKV\n") + second)
    assert "damaged" in str(error_of(path))


def test_padding_between_xz_streams_is_no_damage(tmp_path):
    """The xz format, section 2.2: streams may be followed by NUL bytes in multiples of four."""
    path = tmp_path / "some.fa.xz"
    path.write_bytes(lzma.compress(b">a\nMK\n") + bytes(8) + lzma.compress(b">b\nW\n") + bytes(4))
    assert letters_of(path) == [("a", "MK"), ("b", "W")]


@pytest.mark.parametrize("name", COMPRESSORS)
def test_empty_or_wrongly_named_archive_is_an_error(tmp_path, name):
    """No bytes, an archive of no bytes, and plain text with an archive's name each have their own message."""
    path = tmp_path / f"some.fa.{name}"
    path.write_bytes(b"")
    assert "an empty file" in str(error_of(path))
    path.write_bytes(COMPRESSORS[name](b""))
    assert "no sequences" in str(error_of(path))
    path.write_bytes(b">a\nMK\n")
    assert f"not a {name} archive" in str(error_of(path))


@pytest.mark.parametrize("name", COMPRESSORS)
def test_places_count_in_the_decompressed_text(tmp_path, name):
    """Expected position: counted by hand in the text before compression."""
    path = tmp_path / f"some.fa.{name}"
    path.write_bytes(COMPRESSORS[name](b">a\nMK\n>b\nMK?\n"))
    error = error_of(path)
    assert (error.record, error.line, error.column) == (2, 4, 3)


def test_missing_file_and_directory_are_named(tmp_path):
    """Expected words: the operating system's message."""
    assert "No such file" in str(error_of(tmp_path / "none.fa"))
    assert "Is a directory" in str(error_of(tmp_path))


def test_standard_input_is_read_and_errors_keep_their_place(monkeypatch):
    """Expected values: written by hand; a pipe cannot be read twice, so the position proves that a copy is used."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(data)))

    give(gzip.compress(b">a\nMK\n"))
    assert [record.letters for record in read_sequences("-")] == ["MK"]
    give(b">a\nMK\n>b\nM5\n")
    with pytest.raises(FastaFormatError, match=r"^<stdin>, record 2 \(b\), line 4, column 2: '5'"):
        list(read_sequences("-"))


@given(
    records=st.lists(
        st.tuples(
            st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12).map(str.strip),
            st.text("ARNDCQEGHILKMFPSTWYVBZX*UOJarndcuoj", min_size=1, max_size=90),
        ),
        min_size=1,
        max_size=12,
    ),
    width=st.integers(1, 40),
    line_end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(1, 200),
)
@settings(max_examples=150, deadline=None)
def test_records_equal_those_of_biopython(tmp_path_factory, records, width, line_end, block_bytes):
    """Oracle: Biopython's SimpleFastaParser on the same text."""
    lines = []
    for header, letters in records:
        lines.append(f">{header}")
        lines += [letters[start : start + width] for start in range(0, len(letters), width)]
    path = tmp_path_factory.mktemp("fasta") / "some.fa"
    path.write_bytes((line_end.join(lines) + line_end).encode())
    with open(path) as file:
        expected = list(SimpleFastaParser(file))
    assert letters_of(path, PROTEIN) == expected
    found = []
    for chunk in read_chunks(path, PROTEIN, block_bytes=block_bytes):
        assert len(chunk.codes) == chunk.lengths.sum()
        stop = 0
        for header, length in zip(chunk.headers, chunk.lengths.tolist(), strict=True):
            start, stop = stop, stop + length
            found.append((header.decode(), PROTEIN.decode(chunk.codes[start:stop])))
    assert found == expected
