"""No output overwrites an input of the command, a store, a packed database or another output, however it is spelt.

Expected by hand: the command fails with a message, and the folder is unchanged.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import swsearch as package
from swsearch import file_registry
from swsearch.cli.app import main
from swsearch.errors import InputError
from swsearch.output_files import text_file
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.store.store import Store
from tests.processes import SWSEARCH
from tests.taxonomy.dumps import write_dump

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFWMKVLAAGIVGLLLAQWERTY"

# Commands, and the option whose argument comes last: a text, a picture and a file to which lines are appended. Other
# outputs are opened in one of these ways; tests/cli/test_every_output.py has the outputs of all commands.
WRITERS = {
    "query --out": "query q.fa p.db --store hits.sqlite --out",
    "query --plot": "query q.fa p.db --store hits.sqlite --plot",
    "batch --events": "batch q.fa p.db --store hits.sqlite --events",
}
STORE_WRITERS = {
    "query --store": "query q.fa p.db --store",
    "runs merge --store": "runs merge hits.sqlite --store",
    "runs export --out": "runs export latest --store hits.sqlite --out",
}
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


@pytest.mark.parametrize(("writer", "spelling"), list(zip([*WRITERS, *WRITERS], SPELLINGS, strict=True)))
@pytest.mark.parametrize(
    ("name", "words"),
    [("q.fa", "read by the same command"), ("other.sqlite", "store"), (IN_DATABASE, "the (packed )?database")],
)
def test_no_output_is_an_input_or_a_store_however_it_is_spelt(swsearch, folder, writer, name, words, spelling):
    assert re.search(words, refused(swsearch, folder, WRITERS[writer], spelt(folder, name, spelling)))


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("store", ["hits.sqlite", "other.sqlite", "new.sqlite"])
def test_no_output_is_a_file_beside_a_store(swsearch, folder, store, end):
    assert "store" in refused(swsearch, folder, "query q.fa p.db --store new.sqlite --out", f"{store}{end}")


@pytest.mark.parametrize("writer", [*WRITERS, *STORE_WRITERS])
def test_no_output_lies_in_a_database(swsearch, folder, writer):
    command = {**WRITERS, **STORE_WRITERS}[writer]
    for target in ("p.db/new", "p.db", "./p.db/segment-000001/new", "p.db/catalogue.json"):
        error = refused(swsearch, folder, command, target)
        assert "database" in error or "store" in error


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
def test_stdout_that_is_appended_to_is_an_output_too(folder, name):
    command = [SWSEARCH, "query", "q.fa", "p.db", "--store", "none"]
    before = snapshot(folder)
    with (folder / name).open("ab") as target:
        outcome = subprocess.run(command, check=False, cwd=folder, stdout=target, stderr=subprocess.PIPE, text=True)
    assert outcome.returncode == 1
    assert "error: stdout" in outcome.stderr
    assert snapshot(folder) == before


def test_stdin_that_is_a_file_is_an_input_too(folder):
    command = [SWSEARCH, "batch", "-", "p.db", "--store", "b.sqlite", "--events", "q.fa"]
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


@pytest.mark.parametrize("option", ["--out", "--save-pssm"])
@pytest.mark.parametrize("name", ["q.fa", "subjects.fa", "link.fa", "p.db/catalogue.json"])
def test_no_report_replaces_what_its_run_has_searched(swsearch, folder, option, name):
    """The record of the run names its files, so that they are refused from another folder, too."""
    (folder / "subjects.fa").write_text(f">s\n{LETTERS}\n")
    (folder / "link.fa").symlink_to("subjects.fa")
    for database in ("subjects.fa", "p.db"):
        assert swsearch("query", "q.fa", database, "--store", "runs.sqlite", "--out", os.devnull).code == 0
    run = "2" if name.startswith("p.db") else "1"
    (folder / "elsewhere").mkdir()
    os.chdir(folder / "elsewhere")
    for store in ("../runs.sqlite", "copy.sqlite"):
        if store == "copy.sqlite":
            assert swsearch("runs", "export", run, "--store", "../runs.sqlite", "--out", store).code == 0
            run = "1"
        error = refused(swsearch, folder, f"report {run} --store {store} {option}", f"../{name}")
        assert "has read this file" in error or "lies in the packed database" in error


def test_no_output_is_a_file_of_a_taxonomy(swsearch, folder, monkeypatch):
    """Its files are read although no option names them, or a variable names one of them."""
    write_dump(folder / "dump", {1: 1, 9606: 1})
    (folder / "map.txt").write_text("q 9606\n")
    search = "query q.fa p.db --store none --taxid 9606 --taxid-map map.txt"
    for name in ("names.dmp", "nodes.dmp"):
        error = refused(swsearch, folder, f"{search} --taxonomy dump --out", f"dump/{name}")
        assert "read by the same command" in error
    (folder / "dump" / "other.txt").write_text("a file that nobody reads\n")
    assert swsearch(*f"{search} --taxonomy dump --out dump/other.txt".split()).code == 0
    monkeypatch.setenv("SWSEARCH_TAXONOMY", str(folder / "dump" / "nodes.dmp"))
    assert "read by the same command" in refused(swsearch, folder, f"{search} --out", "dump/nodes.dmp")


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("name", ["q.fa", "p.db/catalogue.json", "hits.sqlite", "hits.sqlite-wal", "dump/nodes.dmp"])
def test_no_report_of_python_replaces_a_file(folder, monkeypatch, is_stored, name):
    monkeypatch.chdir(folder)
    write_dump(folder / "dump", {1: 1, 9606: 1})
    (folder / "map.txt").write_text("q 9606\n")
    options = package.SearchOptions(taxid="9606", taxid_map="map.txt", taxonomy="dump")
    with Store("hits.sqlite") as store:
        found = package.search_database("q.fa", "p.db", options, store=store)
        if is_stored:
            assert list(found)
            results = store.runs.get(found.run_id).info, store.results.queries(found.run_id)
        else:
            results = found
        before = {path: content for path, content in snapshot(folder).items() if "-" not in path.name}
        with pytest.raises(
            InputError, match=f"^path {name}: this|^path {name}: the search|^path {name}: .* is an SQLite"
        ):
            package.write_report(results, name)
        assert before.items() <= snapshot(folder).items()
        package.write_report(results, "new.txt")


def test_calls_of_python_do_not_remember_the_files_of_others(folder, monkeypatch):
    """What one call has read may be written by a later one; calls in threads have nothing to do with each other."""
    monkeypatch.chdir(folder)
    shutil.copy("q.fa", "old.fa")
    package.build_database("old.fa", "old.db")
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda name: list(package.search_database(name, "p.db")), ["q.fa", "old.fa"] * 4)
        assert len({len(results) for results in found}) == 1
    for _ in range(2):
        package.write_report(package.search_database("q.fa", "p.db"), "old.fa")
    assert file_registry.registry().sources == []


def test_an_input_that_is_opened_late_is_no_output(folder, monkeypatch):
    """What is read after the output was opened is refused when it is read, and when the output is published."""
    monkeypatch.chdir(folder)
    before = snapshot(folder)

    def write_and_read():
        with file_registry.registered(), text_file(Path("q.fa"), "--out") as stream:
            stream.write("new")
            with suppress(InputError):
                list(read_sequences("q.fa", PROTEIN))
            stream.write("more")

    with pytest.raises(InputError, match=r"--out q\.fa: this file is read by the same call"):
        write_and_read()
    assert snapshot(folder) == before


@pytest.mark.parametrize("is_link", [False, True])
def test_index_keeps_files_that_are_not_of_the_database(swsearch, folder, is_link):
    name = "p.db"
    if is_link:
        (folder / "link.db").symlink_to("p.db")
        name = "link.db"
    for path in (Path("notes.txt"), Path("segment-000001", "mine.bin"), Path("results", "hits.txt")):
        (folder / "p.db" / path).parent.mkdir(exist_ok=True)
        (folder / "p.db" / path).write_text("mine\n")
        assert str(path.parts[0] if path.parts[0] == "results" else path) in refused(
            swsearch, folder, "index q.fa --force --out", name
        )
        with pytest.raises(InputError, match="is not a file of the database"):
            package.build_database(folder / "q.fa", folder / name, overwrite=True)
        (folder / "p.db" / path).unlink()
    (folder / "p.db" / "results").rmdir()
    assert swsearch("db", "remove", name, "q").code == 1  # the last sequence
    (folder / "more.fa").write_text(f">more\n{LETTERS}\n")
    assert swsearch("db", "add", name, "more.fa").code == 0
    assert swsearch("db", "remove", name, "q").code == 0
    assert swsearch("index", "q.fa", "--force", "-o", name).code == 0
    assert (folder / name).is_symlink() == is_link
    assert swsearch("db", "export", "p.db").out == f">q\n{LETTERS}\n"
    assert not list(folder.glob(".*"))
