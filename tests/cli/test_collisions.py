"""No output overwrites an input of the command, a store, a packed database or another output, however it is spelt.

Expected by hand: the command fails with a message, and the folder is unchanged.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from swsearch.cli.app import main

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFWMKVLAAGIVGLLLAQWERTY"

# Each command, and the option whose argument comes last. {…} are the files of the folder below.
WRITERS = {
    "query --out": "query q.fa p.db --store hits.sqlite --out",
    "query --out, stored nowhere": "query q.fa p.db --store none --out",
    "query --plot": "query q.fa p.db --store hits.sqlite --plot",
    "query --save-pssm": "query q.fa p.db --store hits.sqlite --save-pssm",
    "batch --events": "batch q.fa p.db --store hits.sqlite --events",
    "report --out": "report latest --store hits.sqlite --out",
    "report --save-pssm": "report latest --store hits.sqlite --save-pssm",
    "db export --out": "db export p.db --out",
    "align --out": "align q.fa q.fa --out",
    "align --plot": "align q.fa q.fa --plot",
    "align --matrix-out": "align q.fa q.fa --matrix-out",
    "bench kernels --out": "bench kernels --fasta q.fa --tasks pair --pair-length 10 --out",
}
STORE_WRITERS = {
    "query --store": "query q.fa p.db --store",
    "batch --store": "batch q.fa p.db --store",
    "runs merge --store": "runs merge hits.sqlite --store",
    "runs export --out": "runs export latest --store hits.sqlite --out",
}
READS_QUERIES = [name for name in WRITERS if "q.fa" in WRITERS[name]]
IN_DATABASE = Path("p.db", "segment-000001", "lengths.bin")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with queries, their database, and two stores with one run each."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "q.fa").write_text(f">q\n{LETTERS}\n")
    for name in ("hits.sqlite", "other.sqlite"):
        if not (folder / "p.db").exists():
            assert main(["index", str(folder / "q.fa"), "-o", str(folder / "p.db"), "--quiet"]) == 0
        arguments = [str(folder / "q.fa"), str(folder / "p.db"), "--store", str(folder / name)]
        assert main(["query", *arguments, "--quiet", "--out", os.devnull]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(swsearch, folder, command, target):
    """Return the error of a command that must not change anything."""
    before = snapshot(folder)
    outcome = swsearch(*command.split(), target)
    assert outcome.code == 1, outcome.err
    assert outcome.out == ""
    assert snapshot(folder) == before
    return outcome.error


def spelt(folder, name, spelling):
    """Return another spelling of a file's path."""
    if spelling == "./":
        return f".//{name}"
    if spelling == "absolute":
        return folder / name
    if spelling == "symlink":
        (folder / "link.png").symlink_to(name)
        return "link.png"
    if spelling == "hard link":
        os.link(folder / name, folder / "link.png")
        return "link.png"
    if spelling == "through a linked folder":
        (folder / "way").symlink_to(folder, target_is_directory=True)
        return f"way/{name}"
    return name


SPELLINGS = ["plain", "./", "absolute", "symlink", "hard link", "through a linked folder"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("writer", READS_QUERIES)
def test_no_output_is_an_input(swsearch, folder, writer, spelling):
    error = refused(swsearch, folder, WRITERS[writer], spelt(folder, "q.fa", spelling))
    assert "read by the same command" in error


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("store", ["hits.sqlite", "other.sqlite"])
@pytest.mark.parametrize("writer", WRITERS)
def test_no_output_is_a_store(swsearch, folder, writer, store, spelling):
    """Both the store in use and any other store are refused."""
    error = refused(swsearch, folder, WRITERS[writer], spelt(folder, store, spelling))
    assert "store" in error


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("store", ["hits.sqlite", "other.sqlite", "new.sqlite"])
def test_no_output_is_a_file_beside_a_store(swsearch, folder, store, end):
    assert "store" in refused(swsearch, folder, "query q.fa p.db --store new.sqlite --out", f"{store}{end}")


@pytest.mark.parametrize("writer", [*WRITERS, *STORE_WRITERS])
def test_no_output_lies_in_a_database(swsearch, folder, writer):
    command = {**WRITERS, **STORE_WRITERS}[writer]
    for target in ("p.db/new", "p.db", "./p.db/segment-000001/new", IN_DATABASE, "p.db/catalogue.json"):
        error = refused(swsearch, folder, command, target)
        assert "database" in error or "store" in error


@pytest.mark.parametrize("writer", [name for name in WRITERS if "p.db" in WRITERS[name]])
def test_no_output_is_another_name_of_a_file_of_the_database(swsearch, folder, writer):
    os.link(folder / IN_DATABASE, folder / "lengths.bin")
    assert "belongs to the database p.db" in refused(swsearch, folder, WRITERS[writer], "lengths.bin")


@pytest.mark.parametrize(
    "command",
    [
        "query q.fa p.db --store hits.sqlite --plot same.png --out same.png",
        "query q.fa p.db --store hits.sqlite --plot link.png --out ./same.png",
        "query q.fa p.db --store same.png --out same.png",
        "query q.fa p.db --store sqlite:///same.png --out same.png",
        "query q.fa p.db --store same.png --plot same.png",
        "batch q.fa p.db --store same.png --events same.png",
        "align q.fa q.fa --plot same.png --out same.png",
        "align q.fa q.fa --matrix-out link.png --out same.png",
        "align q.fa q.fa --matrix-out - --out -",
    ],
)
def test_two_outputs_are_two_files(swsearch, folder, command):
    """The two names refer to one file that does not exist yet."""
    (folder / "link.png").symlink_to("same.png")
    *words, last = command.split()
    error = refused(swsearch, folder, " ".join(words), last)
    assert "same file" in error or "is the store" in error


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("writer", ["query --store", "batch --store"])
def test_no_store_is_an_input(swsearch, folder, writer, spelling):
    error = refused(swsearch, folder, STORE_WRITERS[writer], spelt(folder, "q.fa", spelling))
    assert "read by the same command" in error


@pytest.mark.parametrize("option", ["--matrix", "--include", "--exclude", "--taxid-map", "--taxonomy"])
def test_files_that_options_read_are_inputs(swsearch, folder, option):
    (folder / "list.txt").write_text("q 9606\n")
    command = f"query q.fa p.db --store none --taxid 9606 {option} list.txt --out"
    assert "read by the same command" in refused(swsearch, folder, command, "list.txt")


def test_a_matrix_by_name_is_no_file(swsearch, folder):
    assert swsearch("query", "q.fa", "p.db", "--matrix", "BLOSUM62", "--out", "BLOSUM62").code == 0


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_index_replaces_nothing_that_must_stay(swsearch, folder, force):
    assert "read" in refused(swsearch, folder, " ".join(["index q.fa", *force, "-o"]), "q.fa")
    assert "lies in" in refused(swsearch, folder, " ".join(["index q.fa", *force, "-o"]), "p.db/new.db")
    refused(swsearch, folder, " ".join(["index q.fa", *force, "-o"]), "hits.sqlite")
    shutil.copy(folder / "q.fa", folder / "p.db" / "source.fa")
    assert "is read" in refused(swsearch, folder, " ".join(["index p.db/source.fa", *force, "-o"]), "p.db")
    shutil.copy(folder / "hits.sqlite", folder / "p.db" / "hits.sqlite")
    assert "is a store" in refused(swsearch, folder, " ".join(["index q.fa", *force, "-o"]), "p.db")


@pytest.mark.parametrize("name", ["q.fa", "other.sqlite", str(IN_DATABASE)])
def test_stdout_that_is_appended_to_is_an_output_too(fork_server, folder, name):
    command = [fork_server.swsearch, "query", "q.fa", "p.db", "--store", "none"]
    before = snapshot(folder)
    with (folder / name).open("ab") as target:
        outcome = subprocess.run(command, check=False, cwd=folder, stdout=target, stderr=subprocess.PIPE, text=True)
    assert outcome.returncode == 1
    assert "error: stdout" in outcome.stderr
    assert snapshot(folder) == before


def test_stdin_that_is_a_file_is_an_input_too(fork_server, folder):
    command = [fork_server.swsearch, "batch", "-", "p.db", "--store", "b.sqlite", "--events", "q.fa"]
    before = snapshot(folder)
    with (folder / "q.fa").open("rb") as source:
        outcome = subprocess.run(command, check=False, cwd=folder, stdin=source, stderr=subprocess.PIPE, text=True)
    assert outcome.returncode == 1
    assert "read by the same command" in outcome.stderr
    assert snapshot(folder) == before


def test_what_is_in_nobodys_way_is_written(swsearch, folder):
    """A device may be named twice; a link is followed to the file that is replaced, whose permissions do not change."""
    (folder / "old.txt").write_text("old\n")
    (folder / "old.txt").chmod(0o600)
    (folder / "link.txt").symlink_to("old.txt")
    assert swsearch("query", "q.fa", "p.db", "--out", "link.txt").code == 0
    assert (folder / "link.txt").is_symlink()
    assert (folder / "old.txt").read_text().startswith("Query:")
    assert (folder / "old.txt").stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        arguments = ["--store", "b.sqlite", "--events", "events.jsonl"]
        assert swsearch("batch", "q.fa", "p.db", *arguments).code == 0
    assert (folder / "events.jsonl").read_text().count('"event": "end"') == 2
    assert swsearch("align", "q.fa", "q.fa", "--out", os.devnull, "--matrix-out", os.devnull).code == 0
    long = 250 * "x"
    assert swsearch("align", "q.fa", "q.fa", "--out", long).code == 0
    assert (folder / long).read_text().startswith("Query:")
    assert not list(folder.glob(".*"))
