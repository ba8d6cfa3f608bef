"""``swsearch index`` of BLAST databases and of files with bad records: what is printed, and what is left out.

The expected values were counted by hand.
"""

import shutil
import subprocess

import pytest

FASTA = ">a\nMKVLAAGIVGLL\n>b\nMK1\n>c\n>d\nWYRHHEDKNRSTPACF\n"


def test_bad_records_are_left_out_and_listed(swsearch, tmp_path):
    (tmp_path / "some.fa").write_text(FASTA)
    shown = swsearch("index", "some.fa", "-o", "some.db", "--skip-bad", "--skipped", "list.tsv")
    assert shown.code == 0
    assert "some.db: 2 sequences, 28 residues" in shown.err
    assert "2 records were left out (all in list.tsv):" in shown.err
    assert "some.fa, record 3 (c): has no residues" in shown.err
    rows = [line.split("\t") for line in (tmp_path / "list.tsv").read_text().splitlines()]
    assert [row[:3] for row in rows] == [
        ["file", "record", "identifier"],
        ["some.fa", "2", "b"],
        ["some.fa", "3", "c"],
    ]


def test_ten_of_many_bad_records_are_printed(swsearch, tmp_path):
    (tmp_path / "some.fa").write_text(FASTA + ">empty\n" * 30)
    shown = swsearch("index", "some.fa", "-o", "some.db", "--skip-bad")
    assert "32 records were left out; the first of them:" in shown.err
    assert shown.err.count("some.fa, record") == 10


def test_without_the_option_the_first_bad_record_is_an_error(swsearch, tmp_path):
    (tmp_path / "some.fa").write_text(FASTA)
    shown = swsearch("index", "some.fa", "-o", "some.db")
    assert shown.code == 1
    assert "record 2 (b), line 4, column 3" in shown.err
    assert not (tmp_path / "some.db").exists()


def test_a_failed_index_leaves_no_list(swsearch, tmp_path):
    (tmp_path / "bad.fa").write_text(">a\n>b\n")
    shown = swsearch("index", "bad.fa", "-o", "bad.db", "--skip-bad", "--skipped", "list.tsv")
    assert shown.code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.fa"]


def test_there_must_be_something_to_index(swsearch):
    shown = swsearch("index", "-o", "new.db")
    assert shown.code == 2
    assert "give FASTA files or --blastdb" in shown.err


@pytest.mark.skipif(shutil.which("makeblastdb") is None, reason="NCBI BLAST+ is not installed")
@pytest.mark.parametrize("way", ["--blastdb b", "b", "--blastdb b with a file"])
def test_a_blast_database_is_indexed_by_name_or_by_its_files(swsearch, tmp_path, way):
    (tmp_path / "some.fa").write_text(">a first\nMKVLAAGIVGLL\n>d\nWYRHHEDKNRSTPACF\n")
    subprocess.run(["makeblastdb", "-in", "some.fa", "-dbtype", "prot", "-out", "b"], cwd=tmp_path, check=True)
    arguments = {
        "--blastdb b": ["--blastdb", "b"],
        "b": ["b"],
        "--blastdb b with a file": ["some.fa", "--blastdb", "b"],
    }
    shown = swsearch("index", *arguments[way], "-o", "new.db")
    assert "b: a BLAST database of 2 protein sequences, read with blastdbcmd" in shown.err
    text = swsearch("db", "export", "new.db").out
    assert text == (tmp_path / "some.fa").read_text() * (2 if way.endswith("file") else 1)


def test_the_list_of_skipped_records_may_be_stdout(swsearch, tmp_path):
    (tmp_path / "bad.fa").write_text(">a\nMKL\n>b\nM1\n")
    shown = swsearch("index", "bad.fa", "-o", "bad.db", "--skip-bad", "--skipped", "-")
    assert shown.out.splitlines()[1].split("\t")[:3] == ["bad.fa", "2", "b"]
    assert "left out (all on stdout)" in shown.err
    assert not (tmp_path / "-").exists()
