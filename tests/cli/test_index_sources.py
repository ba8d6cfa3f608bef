"""``swsearch index`` and ``db add`` of BLAST databases and of files with bad records: what is printed and left out.

The expected values were counted by hand.
"""

import gzip
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


def test_a_failed_index_leaves_no_list(swsearch, tmp_path):
    (tmp_path / "bad.fa").write_text(">a\n>b\n")
    shown = swsearch("index", "bad.fa", "-o", "bad.db", "--skip-bad", "--skipped", "list.tsv")
    assert shown.code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.fa"]


@pytest.mark.parametrize(
    ("name", "database"), [("one.fa", "one.db"), ("a.b.fasta.gz", "a.b.db"), ("E.coli", "E.coli.db")]
)
def test_a_database_that_is_not_named_has_the_name_of_its_file(swsearch, tmp_path, name, database):
    """In the working folder, where commands look for it; the ending of the file is replaced."""
    (tmp_path / "sub").mkdir()
    content = b">one\nMKVLA\n"
    (tmp_path / "sub" / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert swsearch("index", f"sub/{name}").err.startswith(f"swsearch: {database}: 1 sequence, ")
    assert (tmp_path / database).is_dir()
    again = swsearch("index", f"sub/{name}")
    assert "--force" in again.refusal


def test_several_files_do_not_name_a_database(swsearch, tmp_path):
    (tmp_path / "one.fa").write_text(">one\nMKVLA\n")
    outcome = swsearch("index", "one.fa", "one.fa")
    assert outcome.code == 2
    assert "name the database: swsearch index one.fa one.fa --out DB" in outcome.error


def test_there_must_be_something_to_index(swsearch):
    shown = swsearch("index", "-o", "new.db")
    assert shown.code == 2
    assert "give FASTA files or --blastdb" in shown.err


@pytest.mark.peer("makeblastdb")
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


def test_names_with_control_characters_keep_lines_and_columns(swsearch, tmp_path):
    """The escape sequence of the identifier would clear a terminal."""
    (tmp_path / "tab\there.fa").write_bytes(b">a\x1b[2J b\nM1\n>c\nMKL\n")
    shown = swsearch("index", "tab\there.fa", "-o", "new.db", "--skip-bad", "--skipped", "-", "--log", "new.log")
    assert shown.code == 0
    (row,) = [line.split("\t") for line in shown.out.splitlines()[1:]]
    assert row[:3] == ["tab\\there.fa", "1", "a\\x1b[2J"]
    assert "tab\\there.fa, record 1 (a\\x1b[2J): residue 2" in shown.err
    for text in (shown.out, shown.err, (tmp_path / "new.log").read_text()):
        assert "\x1b" not in text


@pytest.mark.parametrize("n_bad", [1, 5_000])
def test_a_list_that_nobody_reads_ends_alone(spawn, tmp_path, n_bad):
    """The reader of stdout leaves before the first line, as ``head`` does later; the database is the result."""
    (tmp_path / "bad.fa").write_text(">a\nMKL\n" + ">b\nM1\n" * n_bad)
    process = spawn("index", "bad.fa", "-o", "bad.db", "--alphabet", "protein", "--skip-bad", "--skipped", "-")
    process.stdout.close()
    with process.stderr:
        errors = process.stderr.read()
    assert process.wait() == 0
    assert "bad.db: 1 sequence, 3 residues" in errors
    assert f"{n_bad:,} record" in errors


def test_a_list_without_room_leaves_no_database(swsearch, tmp_path):
    """Two records fit the buffers of the process, and would be missed at the end."""
    (tmp_path / "some.fa").write_text(FASTA)
    for n_bad in (1, 5_000):
        (tmp_path / "some.fa").write_text(FASTA + ">e\n" * n_bad)
        shown = swsearch("index", "some.fa", "-o", "some.db", "--skip-bad", "--skipped", "/dev/full")
        assert "/dev/full: No space left on device" in shown.refusal
        assert shown.err.count("\n") == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["some.fa"]


# --- additions ---


@pytest.fixture
def known(swsearch, tmp_path):
    """A database to which sequences are added, and its digest."""
    (tmp_path / "known.fa").write_text(">known\nMKVLAAGIVGLLLAQ\n")
    assert swsearch("index", "known.fa", "-o", "known.db").code == 0
    return tmp_path / "known.db"


def test_an_addition_leaves_bad_records_out(swsearch, tmp_path, known):
    """The database is that to which the good records alone were added."""
    (tmp_path / "some.fa").write_text(FASTA)
    (tmp_path / "good.fa").write_text(">a\nMKVLAAGIVGLL\n>d\nWYRHHEDKNRSTPACF\n")
    shutil.copytree(known, tmp_path / "other.db")
    shown = swsearch("db", "add", known, "some.fa", "--skip-bad", "--skipped", "list.tsv")
    assert shown.code == 0
    assert f"{known}: 2 sequences, 28 residues added; generation 2 holds 3 sequences" in shown.err
    assert "2 records were left out (all in list.tsv):" in shown.err
    assert "some.fa, record 2 (b): residue 3: '1' is not in alphabet protein" in shown.err
    rows = [line.split("\t")[:3] for line in (tmp_path / "list.tsv").read_text().splitlines()]
    assert rows == [["file", "record", "identifier"], ["some.fa", "2", "b"], ["some.fa", "3", "c"]]
    assert swsearch("db", "add", "other.db", "good.fa").code == 0
    exports = [swsearch("db", "export", name).out for name in (known, "other.db")]
    assert exports[0] == exports[1] == (tmp_path / "known.fa").read_text() + (tmp_path / "good.fa").read_text()
    assert swsearch("db", "verify", known).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("some.fa", 1, "record 2 (b), line 4, column 3"),
        ("bad.fa --skip-bad --skipped list.tsv", 1, "bad.fa: no record is a sequence of the alphabet"),
        ("some.fa --skipped list.tsv", 1, "--skipped lists what --skip-bad leaves out; give both, or leave it out"),
        ("some.fa --skip-bad --skipped /dev/full", 1, "/dev/full: No space left on device"),
        ("--skip-bad", 2, "give FASTA files or --blastdb: swsearch db add known.db FASTA…"),
        ("--blastdb missing", 1, "missing: "),
    ],
)
def test_an_addition_that_is_refused_changes_nothing(swsearch, tmp_path, known, arguments, code, message):
    (tmp_path / "some.fa").write_text(FASTA)
    (tmp_path / "bad.fa").write_text(">a\n>b\n")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    shown = swsearch("db", "add", "known.db", *arguments.split())
    assert shown.code == code
    assert message in shown.error
    after = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.name != "writer.lock")
    assert after == [path for path in before if path.name != "writer.lock"]
    assert swsearch("db", "export", "known.db").out == (tmp_path / "known.fa").read_text()


@pytest.mark.peer("makeblastdb")
@pytest.mark.parametrize("way", ["--blastdb b", "b", "known.fa --blastdb b"])
def test_a_blast_database_is_added_by_name_or_by_its_files(swsearch, tmp_path, known, way):
    """Expected value: an addition of the FASTA from which makeblastdb made it."""
    (tmp_path / "some.fa").write_text(">a first\nMKVLAAGIVGLL\n>d\nWYRHHEDKNRSTPACF\n")
    subprocess.run(["makeblastdb", "-in", "some.fa", "-dbtype", "prot", "-out", "b"], cwd=tmp_path, check=True)
    shown = swsearch("db", "add", known, *way.split())
    assert "b: a BLAST database of 2 protein sequences, read with blastdbcmd" in shown.err
    n_known = 2 if way.startswith("known") else 1
    expected = (tmp_path / "known.fa").read_text() * n_known + (tmp_path / "some.fa").read_text()
    assert swsearch("db", "export", known).out == expected
    (tmp_path / "bases.fa").write_text(">n\nACGTACGTACGTTTGACC\n")
    subprocess.run(["makeblastdb", "-in", "bases.fa", "-dbtype", "nucl", "-out", "n"], cwd=tmp_path, check=True)
    refused = swsearch("db", "add", known, "--blastdb", "n")
    assert "n: blastdbcmd failed" in refused.refusal
    assert "protein" in refused.error
    assert swsearch("db", "export", known).out == expected
