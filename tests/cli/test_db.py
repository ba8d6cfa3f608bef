"""``swsearch db``: the messages about a changing database, and searches of a changed and of a fresh database.

The expected search results come from a database that is indexed anew from the exported FASTA; the expected messages
and counts are written by hand.
"""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, QUERIES
from tests.patience import wait_until
from tests.tiers import mostly_thorough


def fasta_records(text: str) -> list[str]:
    """Return the records of a FASTA text, each with its header line."""
    return [f">{record}" for record in text.split(">")[1:]]


# --- a changed database gives the results of a fresh one ---

FORMATS = ["table", "blast6", "blast7", "tsv", "csv", "json", "jsonl", "pairwise"]
VERSION = re.compile(r'"digest": "[0-9a-f]{64}", "generation": [0-9]+, ')
"""The fields of the JSON report that describe the database's version; the rest of every report must be equal."""


def reports(swsearch, tmp_path, database, queries, *options):
    """Return the hits in every format; the database always has the same name, because reports print it."""
    os.rename(tmp_path / database, tmp_path / "searched.db")
    assert swsearch("query", queries, "searched.db", "--store", "hits.sqlite", "--quiet", *options).code == 0
    os.rename(tmp_path / "searched.db", tmp_path / database)
    found = {name: swsearch("report", "latest", "--store", "hits.sqlite", "--format", name).out for name in FORMATS}
    return {name: VERSION.sub("", text) for name, text in found.items()}


def assert_searched_as_fresh(swsearch, tmp_path, queries, *options):
    """changed.db gives the same results as a database indexed from its export, before and after compaction."""
    assert swsearch("db", "export", "changed.db", "--out", "export.fasta").code == 0
    alphabet = "dna" if "dna" in swsearch("db", "info", "changed.db").out else "protein"
    assert swsearch("index", "export.fasta", "-o", "fresh.db", "--alphabet", alphabet, "--force").code == 0
    expected = reports(swsearch, tmp_path, "fresh.db", queries, *options)
    assert expected["blast6"].count("\n") > 20
    assert reports(swsearch, tmp_path, "changed.db", queries, *options) == expected
    assert swsearch("db", "compact", "changed.db").code == 0
    assert reports(swsearch, tmp_path, "changed.db", queries, *options) == expected
    exported = (tmp_path / "export.fasta").read_bytes()
    assert swsearch("db", "export", "changed.db", "--out", "export.fasta").code == 0
    assert (tmp_path / "export.fasta").read_bytes() == exported


@pytest.mark.parametrize(
    "options",
    mostly_thorough(
        [["--top", "40"], ["--top", "7", "--ties", "all", "--partition-residues", "30000"]], ["--top", "40"]
    ),
)
def test_a_changed_protein_database_is_searched_as_a_fresh_one(swsearch, tmp_path, protein_db, options):
    """Source: an index of the exported FASTA. Copies under other names, added and removed, make ties at all ranks."""
    records = fasta_records(swsearch("db", "export", protein_db).out)
    source = random.Random(7)
    source.shuffle(records)
    copies = [record.replace("|", "-copy|", 1) for record in records[300:600]]
    parts = [records[:600], [*copies, *records[600:900]], [*records[900:], *copies[:40]]]
    for n, part in enumerate(parts):
        (tmp_path / f"{n}.fasta").write_text("".join(part))
        command = ["index", f"{n}.fasta", "-o", "changed.db"] if n == 0 else ["db", "add", "changed.db", f"{n}.fasta"]
        assert swsearch(*command).code == 0
        gone = sorted({record.split()[0][1:] for record in source.sample(part, 90)})
        assert swsearch("db", "remove", "changed.db", *gone).code == 0
    assert_searched_as_fresh(swsearch, tmp_path, QUERIES, *options)


def test_a_changed_dna_database_is_searched_as_a_fresh_one(swsearch, tmp_path):
    """Source: an index of the exported FASTA; overlapping segments of phage lambda, searched on both strands."""
    genome = "".join((DATA / "lambda_phage.fasta").read_text().split("\n")[1:])
    pieces = [f">piece{n}\n{genome[n * 400 : n * 400 + 700]}\n" for n in range(120)]
    (tmp_path / "0.fasta").write_text("".join(pieces[::2]))
    (tmp_path / "1.fasta").write_text("".join(pieces[1::2]))
    assert swsearch("index", "0.fasta", "-o", "changed.db").code == 0
    assert swsearch("db", "add", "changed.db", "1.fasta").code == 0
    assert swsearch("db", "remove", "changed.db", *[f"piece{n}" for n in range(0, 120, 7)]).code == 0
    assert_searched_as_fresh(swsearch, tmp_path, DATA / "lambda_reads.fastq")


def test_the_engines_agree_on_a_changed_database(swsearch, tmp_path):
    """Source: the reference engine, which reads each subject by its start and length."""
    records = [f">s{n}\n{'MKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLGEENFKALVLIA'[: 9 + n]}\n" for n in range(40)]
    (tmp_path / "0.fasta").write_text("".join(records[:25]))
    (tmp_path / "1.fasta").write_text("".join(records[25:]))
    (tmp_path / "q.fasta").write_text(">q\nMKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLGEENF\n")
    swsearch("index", "0.fasta", "-o", "changed.db", "--alphabet", "protein")
    swsearch("db", "add", "changed.db", "1.fasta")
    swsearch("db", "remove", "changed.db", "s0", "s3", "s24", "s25", "s39")
    query = ["query", "q.fasta", "changed.db", "--store", "none", "--format", "tsv", "--top", "99", "--evalue", "1e9"]
    found = [swsearch(*query, "--engine", engine).out for engine in ("reference", "cpu")]
    assert found[0] == found[1]
    assert found[0].count("\n") == 36


# --- messages of the commands ---


@pytest.fixture
def small_db(swsearch, tmp_path) -> Path:
    """Three sequences, a, b and c."""
    (tmp_path / "abc.fasta").write_text(">a first\nMKVLW\n>b\nMKV\n>c\nWWWWWWW\n")
    assert swsearch("index", "abc.fasta", "-o", "small.db", "--alphabet", "protein").code == 0
    return tmp_path / "small.db"


def info_of(swsearch, database) -> dict[str, str]:
    lines = swsearch("db", "info", database).out.splitlines()
    return {line[:12].strip(): line[12:] for line in lines}


def test_info_tells_what_was_changed(swsearch, tmp_path, small_db):
    """Source: counts made by hand; the transcript of `index` has the other lines."""
    fresh = info_of(swsearch, small_db)
    (tmp_path / "more.fasta").write_text(">d\nMKVLWMKVLW\n>a\nMK\n")
    added = swsearch("db", "add", small_db, "more.fasta")
    assert "1 of the added identifiers occurs more than once in the database, 'a' for one" in added.err
    removed = swsearch("db", "remove", small_db, "a", "c")
    assert f"{small_db}: 3 sequences, 14 residues removed; generation 3 holds 2 sequences" in removed.err
    changed = info_of(swsearch, small_db)
    assert changed["lengths"] == "3 to 10, mean 6.5"
    assert changed["removed"] == "3 sequences, 14 residues, in the files until a compaction"
    assert changed["digest"] != fresh["digest"]
    files = [file for file in small_db.rglob("*.bin") if file.is_file()]
    assert changed["size"] == f"{sum(file.stat().st_size for file in files):,} bytes"
    assert "2 segments made one" in swsearch("db", "compact", small_db).err
    assert "is compact already" in swsearch("db", "compact", small_db).err


def test_quiet_changes_say_nothing(swsearch, small_db):
    for command in (["add", small_db, "abc.fasta"], ["remove", small_db, "a"], ["compact", small_db]):
        outcome = swsearch("db", *command, "--quiet")
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_identifiers_come_from_a_file_too(swsearch, spawn, tmp_path, small_db):
    """Source: the file's lines; words after the identifier, blank lines and the kind of line ending have no effect."""
    (tmp_path / "gone.txt").write_bytes(b"\r\n\na and words\r\n")
    assert swsearch("db", "remove", small_db, "b", "--from-file", "gone.txt").code == 0
    assert swsearch("db", "export", small_db).out == ">c\nWWWWWWW\n"
    swsearch("db", "add", small_db, "abc.fasta")
    child = spawn("db", "remove", small_db, "--from-file", "-", stdin=subprocess.PIPE)
    child.communicate("c\n")
    assert child.returncode == 0
    assert swsearch("db", "export", small_db).out == ">a first\nMKVLW\n>b\nMKV\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["remove", "small.db", "a", "nobody"], "small.db has no sequence 'nobody'; nothing was removed"),
        (["remove", "small.db", "a", "b", "c"], "all 3 sequences of small.db would be removed"),
        (["remove", "small.db", "--from-file", "none.txt"], "--from-file none.txt: No such file"),
        (["remove", "small.db", "--from-file", "empty.txt"], "no identifier was given; nothing was removed"),
        (["remove", "none.db", "a"], "none.db does not exist"),
        (["add", "small.db", "none.fasta"], "none.fasta: cannot be read: No such file"),
        (["add", "small.db", "bad.fasta"], "bad.fasta, record 2 (e), line 4, column 3: '7'"),
        (["add", "abc.fasta", "abc.fasta"], "abc.fasta is a sequence file, not a packed database"),
        (["compact", "."], "not a packed database"),
    ],
)
def test_bad_requests_are_one_line_and_change_nothing(swsearch, tmp_path, small_db, arguments, words):
    """Source: the words that state what is wrong, where, and that nothing was changed."""
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "bad.fasta").write_text(">d\nMKVL\n>e\nMK7\n")
    before = {
        path: path.read_bytes() for path in small_db.rglob("*.*") if path.is_file() and path.name != "writer.lock"
    }
    outcome = swsearch("db", *arguments)
    assert words in outcome.refusal
    after = {path: path.read_bytes() for path in small_db.rglob("*.*") if path.is_file() and path.name != "writer.lock"}
    assert after == before


def test_removing_nothing_is_wrong_usage(swsearch, small_db):
    outcome = swsearch("db", "remove", small_db)
    assert outcome.code == 2
    assert "--from-file" in outcome.err


def test_a_second_writer_names_the_first(swsearch, spawn, tmp_path, small_db):
    """The first writer waits for its standard input; expected words: its process id."""
    child = spawn("db", "add", small_db, "-", "--quiet", stdin=subprocess.PIPE)
    lock = small_db / "writer.lock"
    wait_until(lambda: child.poll() is not None or (lock.exists() and lock.read_text()), "the writer's lock")
    assert child.returncode is None
    outcome = swsearch("db", "remove", small_db, "a")
    assert outcome.code == 1
    assert (
        f"small.db is being changed by process {child.pid} on {os.uname().nodename}; run the command" in outcome.error
    )
    child.communicate(">d\nMKV\n")
    assert child.returncode == 0
    assert swsearch("db", "remove", small_db, "a").code == 0
    assert swsearch("db", "export", small_db).out == ">b\nMKV\n>c\nWWWWWWW\n>d\nMKV\n"


def test_stored_runs_tell_the_generation_that_was_searched(swsearch, tmp_path, small_db):
    """Source: the generation and digest that `db info` reports at the time of each run."""
    (tmp_path / "q.fasta").write_text(">q\nMKVLW\n")
    generations = []
    for change in (None, ["db", "remove", small_db, "b"]):
        if change:
            swsearch(*change)
        info = info_of(swsearch, small_db)
        swsearch("query", "q.fasta", small_db, "--quiet")
        generations.append(f"{info['digest']} (generation {info['generation']})")
    shown = [swsearch("runs", "show", number).out for number in (1, 2)]
    assert all(words in text for words, text in zip(generations, shown, strict=True))
    assert generations[0] != generations[1]
    assert "3 protein sequences" in shown[0]
    assert "2 protein sequences" in shown[1]


def test_dna_is_not_taken_for_protein_by_an_addition(swsearch, small_db, tmp_path):
    """By hand: all DNA letters are also amino acids; 34 of them identify DNA, and --alphabet protein overrides this."""
    (tmp_path / "dna.fasta").write_text(">gene\nATGAAACGTATTAGCACCACCATTACCACCACCA\n")
    (tmp_path / "both.fasta").write_text(">p\nMKVLWYEEKLLKFDDPPQQRRSTHH\n")
    refused = swsearch("db", "add", small_db, "both.fasta", "dna.fasta")
    assert "dna.fasta is dna, but protein is needed; if it holds proteins all the same" in refused.refusal
    assert "--alphabet protein" in refused.error
    other = swsearch("db", "add", small_db, "dna.fasta", "--alphabet", "dna")
    assert "is protein, but dna is needed; leave --alphabet out" in other.refusal
    assert "generation  1" in swsearch("db", "info", small_db).out
    assert swsearch("db", "add", small_db, "dna.fasta", "--alphabet", "protein").code == 0
    assert "generation  2" in swsearch("db", "info", small_db).out


def test_several_databases_are_verified_each(swsearch, small_db):
    """A damaged or missing database does not keep those behind it from being read."""
    for name in ("damaged.db", "whole.db"):
        shutil.copytree(small_db, name)
    residues = next(Path("damaged.db").rglob("residues.bin"))
    residues.write_bytes(bytes([residues.read_bytes()[0] ^ 1]) + residues.read_bytes()[1:])
    whole = swsearch("db", "verify", small_db, "whole.db")
    assert (whole.code, whole.out, whole.err) == (0, f"{small_db} is whole\nwhole.db is whole\n", "")
    found = swsearch("db", "verify", "damaged.db", small_db, "missing.db", "whole.db")
    assert (found.code, found.out) == (1, whole.out)
    damaged, missing = found.err.splitlines()
    assert damaged.startswith("swsearch: error: damaged.db is damaged: damaged.db/segment-000001/residues.bin has")
    assert missing.startswith("swsearch: error: missing.db does not exist")
