"""Sequence files and pipes in the place of a database: what is packed, kept, packed again and refused.

Expected values: the same command with the database that ``swsearch index`` makes of the file, or by hand. Shells, pipes
and processes are real.
"""

import gzip
import os
import pickle
import random
import shutil
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

import swsearch as package
from swsearch.database import sequence_files
from swsearch.database.opening import CachingReport, open_database
from swsearch.database.sequence_files import Checksums, packed
from swsearch.errors import DatabaseError, FastaFormatError, InputError
from tests.cli.conftest import DATA
from tests.patience import wait_until
from tests.processes import PAUSE, in_shell, start

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"
PROTEINS = f">one first\n{LETTERS}\n>two\n{LETTERS[::-1]}\n>three\n{LETTERS[:20]}\n"
READS = "@r1\nACGTACGTTGCAACGTTGCA\n+\nIIIIIIIIIIIIIIIIIIII\n@r2\nTTGCACGTACGTACGTACGA\n+\nIIIIIIIIIIIIIIIIIIII\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and the folder of its entries."""
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SWSEARCH_CACHE_LIMIT", raising=False)
    return tmp_path / "cache" / "databases"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.fa").write_text(f">query\n{LETTERS}\n")
    (tmp_path / "q.dna").write_text(">query\nACGTACGTTGCAACGTTGCA\n")
    (tmp_path / "s.fa").write_text(PROTEINS)
    (tmp_path / "s.fq").write_text(READS)
    (tmp_path / "s.fa.gz").write_bytes(gzip.compress(PROTEINS.encode()))
    return tmp_path


@pytest.fixture
def shell(files):
    return lambda command: in_shell(command, files)


def entries(cache):
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock")) if cache.exists() else []


@pytest.mark.parametrize(
    ("command", "subjects"),
    [
        ("query q.fa {} --format json --store none", "s.fa"),
        ("query q.fa {} --format pairwise --store none", "s.fa.gz"),
        ("query q.dna {} --format tsv --store none --evalue inf", "s.fq"),
        ("query q.fa {} --format tsv --store none --evalue inf --translate subject", "s.fq"),
        ("batch q.fa {} --store hits.sqlite --format sam", "s.fa"),
        ("msa q.fa {} --format sto", "s.fa"),
        ("db export {}", "s.fa"),
        ("db fetch {} two --range 3-9", "s.fa.gz"),
        ("db info {}", "s.fq"),
    ],
)
def test_a_sequence_file_is_searched_like_its_database(swsearch, files, cache, command, subjects):
    """The database has the file's name, in another folder, because reports name the database."""
    (files / "indexed").mkdir()
    assert swsearch("index", subjects, "-o", f"indexed/{subjects}").code == 0
    expected = swsearch(*command.format(f"indexed/{subjects}").split())
    first = swsearch(*command.format(subjects).split())
    again = swsearch(*command.format(subjects).split())
    assert expected.code == first.code == again.code == 0
    if command.startswith("db info"):
        lines = [outcome.out.splitlines()[1:-1] for outcome in (expected, first, again)]  # name and time differ
        assert lines[0] == lines[1] == lines[2]
    else:
        assert expected.out.strip()
        assert expected.out == first.out == again.out
    (line,) = [line for line in first.err.splitlines() if "packed" in line]
    assert len(first.err.splitlines()) == len(again.err.splitlines()) + 1
    assert line.startswith(f"swsearch: {subjects}: ")
    assert line.endswith(f"(detected), packed into {cache}")
    assert len(entries(cache)) == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "way",
    [
        "swsearch query q.fa <(zcat s.fa.gz) {}",
        "swsearch query q.fa <(cat s.fa.gz) {}",
        "swsearch query <(cat q.fa) <(zcat s.fa.gz) {}",
        "zcat s.fa.gz | swsearch query q.fa - {}",
        "swsearch query q.fa /dev/stdin {} < s.fa",
        "mkfifo pipe; cat s.fa > pipe & swsearch query q.fa pipe {}",
    ],
)
def test_subjects_come_through_pipes(shell, swsearch, files, way):
    """The names of pipes differ, so the format is one without the name of the database."""
    assert swsearch("index", "s.fa", "-o", "s.db").code == 0
    options = "--store none --format blast6"
    outcome = shell(way.format(options))
    assert (outcome.returncode, outcome.stdout) == (0, swsearch("query", "q.fa", "s.db", *options.split()).out)
    assert outcome.stderr.count("packed into") == 1


def test_a_run_names_a_pipe_as_such(shell, swsearch):
    assert shell("swsearch query q.fa <(cat s.fa)").returncode == 0
    assert "database      <pipe>: 3 protein sequences" in swsearch("runs", "show", "latest").out
    refused = swsearch("report", "latest", "--format", "fasta")
    assert "<pipe> does not exist; name the database with --database" in refused.error
    assert swsearch("report", "latest", "--format", "fasta", "--database", "s.fa").out.startswith(">one first\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    ["swsearch index {} -o new.db", "swsearch db add s.db {}", "swsearch query q.fa {} --store none"],
)
@pytest.mark.parametrize(
    ("producer", "words"),
    [
        ("head -c 4000 many.fa", "the last line has no end, so the program that writes the pipe may have failed"),
        ("head -c 2000 many.fa.gz | zcat 2>/dev/null", "the last line has no end"),
        ("head -c 2000 many.fa.gz", "cannot be read to its end, it may be damaged or cut short"),
        ("zcat none.gz 2>/dev/null", "no sequences"),
    ],
    ids=["plain", "decompressed", "compressed", "failed"],
)
def test_a_pipe_that_was_cut_is_no_database(shell, swsearch, files, cache, command, producer, words):
    """Source: the first bytes of FASTA, in which no line ends after 4,000 bytes. Nothing new is left."""
    letters = random.Random(1).choices(LETTERS, k=9000)
    text = "".join(f">s{number}\n{''.join(letters[number * 90 :][:90])}\n" for number in range(100))
    assert text[3999] != "\n"
    (files / "many.fa").write_text(text)
    (files / "many.fa.gz").write_bytes(gzip.compress(text.encode(), 1))
    assert swsearch("index", "s.fa", "-o", "s.db").code == 0
    assert swsearch("db", "remove", "s.db", "two").code == 0  # makes its lock file
    before = sorted(path.name for path in files.rglob("*"))
    outcome = shell(command.format(f"<({producer})"))
    assert outcome.returncode == 1
    assert words in outcome.stderr
    assert sorted(path.name for path in files.rglob("*") if cache.parent not in (path, *path.parents)) == before
    assert entries(cache) == []


@pytest.mark.thorough
def test_a_last_line_without_an_end_is_complete_in_files_queries_and_fastq(shell, files):
    """By hand: an editor, or ``printf``, leaves such a line; of FASTQ, the length of the qualities tells."""
    (files / "s.fa").write_text(PROTEINS.rstrip())
    (files / "s.fq").write_text(READS.rstrip())
    for command in (
        "swsearch index s.fa -o 1.db", "swsearch index - -o 2.db < s.fa", "swsearch index <(cat s.fq) -o 3.db",
        "swsearch query <(printf '>q\\nMKVLAAGIVG') 1.db --store none", "swsearch query q.fa s.fa --store none",
    ):  # fmt: skip
        assert shell(command).returncode == 0, command


def test_a_changed_file_is_packed_again(swsearch, files, cache):
    """The change keeps the size and the time of modification, as ``touch -r`` does."""
    found = files / "s.fa"
    times = found.stat()
    assert swsearch("db", "export", "s.fa").out == PROTEINS
    found.write_text(PROTEINS.replace("WERTY", "WERTW"))
    os.utime(found, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "WERTW" in swsearch("db", "export", "s.fa").out
    assert len(entries(cache)) == 2


@pytest.mark.parametrize("damage", ["a letter", "the end of a file", "a file", "the catalogue"])
def test_a_damaged_entry_is_packed_again(swsearch, files, cache, damage):
    """Damaged files have the size that they had, or another one, or are missing."""
    assert swsearch("db", "export", "s.fa").out == PROTEINS
    (entry,) = (cache / name for name in entries(cache))
    residues = entry / "segment-000001" / "residues.bin"
    if damage == "a letter":
        with residues.open("r+b") as file:
            file.write(b"\x01\x02")
    elif damage == "the end of a file":
        os.truncate(residues, 3)
    elif damage == "a file":
        residues.unlink()
    else:
        (entry / "catalogue.json").write_text("{}")
    again = swsearch("db", "export", "s.fa")
    assert again.out == PROTEINS
    assert "packed into" in again.err
    assert "packed into" not in swsearch("db", "export", "s.fa").err
    assert len(entries(cache)) == 1


def test_a_checksum_is_remembered_until_the_file_changes(files, tmp_path, monkeypatch):
    """Source: SHA-256 of the content. A remembered checksum is recognised by a false one in its place."""
    monkeypatch.setattr(sequence_files, "SETTLED_SECONDS", -1e9)  # as if the file were old
    known = Checksums(tmp_path / "checksums")
    with (files / "s.fa").open("r+b") as file:
        true = known.of(file.fileno())
        (remembered,) = (tmp_path / "checksums").iterdir()
        remembered.write_text("0" * 64)
        assert known.of(file.fileno()) == "0" * 64
        remembered.write_text("no checksum")
        assert known.of(file.fileno()) == true
        times = os.fstat(file.fileno())
        file.write(b">0")  # of the same size
        file.flush()
        os.utime(file.fileno(), ns=(times.st_atime_ns, times.st_mtime_ns))
        assert known.of(file.fileno()) not in (true, "0" * 64)


def test_a_file_that_was_changed_lately_is_read_each_time(files, tmp_path):
    """A second change within a tick of the clock would leave all times as they are."""
    with (files / "s.fa").open("rb") as file:
        Checksums(tmp_path / "checksums").of(file.fileno())
    assert not (tmp_path / "checksums").exists()


def test_few_checksums_are_kept(files, tmp_path, monkeypatch):
    monkeypatch.setattr(sequence_files, "SETTLED_SECONDS", -1e9)
    monkeypatch.setattr(sequence_files, "MAX_FILES", 3)
    known = Checksums(tmp_path / "checksums")
    for number in range(5):
        path = files / f"{number}.fa"
        path.write_text(f">{number}\nMKV\n")
        with path.open("rb") as file:
            known.of(file.fileno())
        assert len(list((tmp_path / "checksums").iterdir())) == min(number + 1, 3)


def test_a_file_that_changes_while_it_is_packed_is_refused(files, cache):
    """Both a write to the file, and another file in its place, whose content is not that of the checksum."""
    caching = CachingReport()
    changed = PROTEINS.replace("W", "Y")
    caching.packing = lambda: nullcontext(lambda *_: (files / "s.fa").write_text(changed))
    with pytest.raises(InputError, match=r"s.fa changed while it was read; run the command again when it is whole"):
        packed(files / "s.fa", caching=caching)
    assert entries(cache) == []
    (files / "s.fa").write_text(PROTEINS)
    (files / "other.fa").write_text(">other\nMKV\n")

    def replace(*_):
        shutil.copy(files / "other.fa", files / "new.fa")
        os.replace(files / "new.fa", files / "s.fa")

    caching.packing = lambda: nullcontext(replace)
    with packed(files / "s.fa", caching=caching) as entry, open_database(entry.folder) as database:
        assert database.n_subjects == 3
    with open_database(files / "s.fa") as database:
        assert database.n_subjects == 1


def test_the_name_of_an_equal_file_is_its_own(swsearch, files, cache):
    shutil.copy(files / "s.fa", files / "copy.fa")
    for name in ("s.fa", "copy.fa"):
        assert f"sources     {name}\n" in swsearch("db", "info", name).out
    assert len(entries(cache)) == 1


def test_a_batch_is_resumed_with_the_file_or_its_database(swsearch, files, spawn_paused):
    (files / "two.fa").write_text(f">a\n{LETTERS}\n>b\n{LETTERS[5:]}\n")
    assert swsearch("index", "s.fa", "-o", "s.db").code == 0
    killed = spawn_paused('Results, "add", 1', "batch", "two.fa", "s.fa", "--store", "hits.sqlite")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    resumed = swsearch("batch", "two.fa", "s.db", "--store", "hits.sqlite", "--resume", "latest")
    assert "1 query done, 1 was there before" in resumed.out
    (files / "s.fa").write_text(PROTEINS + ">four\nMKV\n")
    new = swsearch("batch", "two.fa", "s.fa", "--store", "hits.sqlite", "--resume", "1")
    assert "is of another search: database differs" in new.error


def test_whole_sequences_of_a_stored_run_come_from_the_file_while_it_is_the_same(swsearch, files):
    assert swsearch("query", "q.fa", "s.fa").code == 0
    assert swsearch("report", "latest", "--format", "fasta").out.startswith(f">one first\n{LETTERS}\n")
    (files / "s.fa").write_text(PROTEINS.replace("WERTY", "WERTW"))
    refused = swsearch("report", "latest", "--format", "fasta")
    assert "s.fa has other content than the database that was searched" in refused.error


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.fa", b">a\nMKV\n>b\nMK7\n", "bad.fa, record 2 (b), line 4, column 3: '7'"),
        ("none.fa", None, "none.fa does not exist"),
        ("notes.txt", b"hello\n", "notes.txt is neither a packed database (a folder with catalogue.json) nor a seq"),
        ("empty.fa", b"", "empty.fa is neither a packed database"),
    ],
)
def test_files_without_sequences_are_one_line(swsearch, files, cache, name, content, words):
    if content is not None:
        (files / name).write_bytes(content)
    assert words in swsearch("query", "q.fa", name).error
    assert entries(cache) == []


def test_wrong_options_are_refused_before_a_file_is_packed(swsearch, files, cache):
    for option in (["--format", "none-such"], ["--evalue", "-1"]):
        assert swsearch("query", "q.fa", "s.fa", *option).code == 1
    assert entries(cache) == []


def test_a_file_without_room_in_the_cache_is_one_line(swsearch, monkeypatch, files, cache):
    """Also one that is found to be larger only when it was packed: an archive of equal letters."""
    monkeypatch.setenv("SWSEARCH_CACHE_LIMIT", "20K")
    (files / "large.fa").write_text(">a\n" + "MKV" * 10_000)
    (files / "large.fa.gz").write_bytes(gzip.compress((files / "large.fa").read_bytes()))
    for name in ("large.fa", "large.fa.gz"):
        refused = swsearch("query", "q.fa", name, "--store", "none")
        assert "has a limit of 20,480 bytes, and the database needs 3" in refused.error
        assert entries(cache) == []


PACK = """
from contextlib import nullcontext

from swsearch.database.opening import CachingReport
from swsearch.database.sequence_files import packed

caching = CachingReport()
caching.packing = lambda: nullcontext(pause)
with packed(sys.argv[1], caching=caching) as entry:
    print("packed", flush=True)
"""
"""Packs a file and waits after its first records."""


@pytest.mark.thorough
def test_a_file_is_packed_once_by_processes_at_the_same_time_and_again_after_a_kill(files, cache):
    """The second process waits for the lock of the first one, which is killed; then it packs the file itself."""
    command = ["-c", PAUSE + PACK, str(files / "s.fa")]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with start(command, **streams) as first, start(command, **streams) as second:

        def is_waiting() -> bool:
            waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
            return any(int(fields[5]) in (first.pid, second.pid) for fields in waiting)

        wait_until(is_waiting, "one process at the lock")
        (unfinished,) = entries(cache)
        assert unfinished.startswith("fetching-")
        waiting = {int(line.split()[5]) for line in Path("/proc/locks").read_text().splitlines() if "->" in line}
        packing, other = (first, second) if second.pid in waiting else (second, first)
        assert packing.stdout.readline() == "here\n"
        packing.kill()
        assert other.stdout.readline() == "here\n"
        third = start(command, **streams)
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "packed\n"
        assert third.communicate()[0] == "packed\n"
    assert entries(cache) == [unfinished.removeprefix("fetching-")]


def test_the_functions_of_python_take_files(files, cache):
    with package.open_database(files / "s.fa") as database:
        again = pickle.loads(pickle.dumps(database))
        assert (again.n_subjects, again.locations) == (3, (str(files / "s.fa"),))
        again.close()
    found = package.search_database(files / "q.fa", files / "s.fa")
    assert next(hit.subject_id for result in found for hit in result.hits) == "one"
    found.close()
    found = package.align_families(files / "q.fa", [files / "s.fa", files / "s.fa.gz"])
    assert next(iter(found)).hits
    found.close()
    (files / "no-letters.fa").write_text(">a\n>b\n")
    with pytest.raises(FastaFormatError, match=r"no-letters\.fa, record 1"):
        package.open_database(files / "no-letters.fa")
    with pytest.raises(DatabaseError, match="neither a packed database"):
        package.open_database(DATA / "README.md")


def test_a_changed_program_packs_again(files, cache, monkeypatch):
    with packed(files / "s.fa"):
        monkeypatch.setattr("swsearch.database.sequence_files.__version__", "0.2.0")
        with packed(files / "s.fa"):
            assert len(entries(cache)) == 2
