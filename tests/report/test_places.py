"""Reports contain no paths: their bytes depend neither on the spelling of a path nor on the working directory.

The expected bytes are those of the same search from the folder of the files.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.report.formats import FORMATS
from swsearch.scoring.matrix import matrix_text, named_matrix
from tests.cli.conftest import DATA
from tests.taxonomy.dumps import EXCERPT
from tests.tiers import mostly_thorough

FILTERED = ("--include", "chosen", "--matrix", "scores")


def make_files(folder: Path) -> None:
    """Write a database, queries and files for options to a folder."""
    folder.mkdir()
    shutil.copy(DATA / "queries.fasta", folder / "q.fasta")
    index = ["index", str(folder / "q.fasta"), "-o", str(folder / "x.db"), "--taxonomy", str(EXCERPT), "--quiet"]
    assert main(index) == 0
    lines = (folder / "q.fasta").read_text().splitlines()
    identifiers = [line[1:].split()[0] for line in lines if line.startswith(">")]
    (folder / "chosen").write_text("\n".join(identifiers[:4]) + "\n")
    (folder / "scores").write_text(matrix_text(named_matrix("BLOSUM62")))


@pytest.fixture
def places(tmp_path, monkeypatch) -> Path:
    """A folder with a database, queries and files for options, in which searches start."""
    folder = tmp_path / "one"
    make_files(folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def from_their_folder(tmp_path_factory) -> tuple[Path, dict[str, bytes], dict[str, bytes]]:
    """A folder, and the reports of two searches with paths relative to it: a plain one, and one with files of options.

    The searches are the same for every way to the files, so they are done once.
    """
    folder = tmp_path_factory.mktemp("places") / "one"
    make_files(folder)
    with contextlib.chdir(folder):
        out = folder.parent / "report"
        return folder, written(out, "q.fasta", "x.db"), written(out, "q.fasta", "x.db", *FILTERED)


def written(out: Path, queries: object, database: object, *options: str) -> dict[str, bytes]:
    """Return the bytes of a search's reports in every format; that of ``xml`` is compared with the search's output."""
    store = ("--store", str(out.with_suffix(".sqlite")))
    command = ["query", str(queries), str(database), "--format", "xml", "--out", str(out), "--quiet", *store]
    assert main([*command, *options]) == 0
    direct = out.read_bytes()
    found = {}
    for form in FORMATS:
        assert main(["report", "latest", "--format", form, "--out", str(out), *store]) == 0
        found[form] = out.read_bytes()
    assert found["xml"] == direct
    return found


def absolute(folder: Path) -> tuple[str, str, str]:
    return str(folder / "q.fasta"), str(folder / "x.db"), f"{folder}/"


def from_another_folder(folder: Path) -> tuple[str, str, str]:
    other = folder.parent / "two"
    other.mkdir()
    os.chdir(other)
    return "../one/q.fasta", "../one/x.db", "../one/"


def with_a_slash(folder: Path) -> tuple[str, str, str]:
    return "./q.fasta", "x.db/", "./"


def through_a_link(folder: Path) -> tuple[str, str, str]:
    (folder.parent / "link").symlink_to(folder)
    (folder / "newest").symlink_to("x.db")
    return "q.fasta", str(folder.parent / "link" / "newest"), str(folder.parent / "link") + "/"


def a_copy(folder: Path) -> tuple[str, str, str]:
    copied = folder.parent / "three"
    shutil.copytree(folder, copied)
    shutil.rmtree(folder)
    os.chdir(copied)
    return "q.fasta", "x.db", ""


def from_within(folder: Path) -> tuple[str, str, str]:
    os.chdir(folder / "x.db")
    return "../q.fasta", ".", "../"


@pytest.mark.parametrize(
    "way",
    mostly_thorough([absolute, from_another_folder, with_a_slash, through_a_link, a_copy, from_within], through_a_link),
)
def test_the_way_to_the_files_is_in_no_report(places, from_their_folder, way: Callable[[Path], tuple[str, str, str]]):
    """Source: the same search with paths relative to the folder of the files."""
    out = places.parent / "report"
    folder, plain, filtered = from_their_folder
    queries, database, before = way(places)
    assert written(out, queries, database) == plain
    others = ("--include", f"{before}chosen", "--matrix", f"{before}scores")
    assert written(out, queries, database, *others) == filtered
    for form, report in {**plain, **filtered}.items():
        assert str(folder).encode() not in report, form
        assert str(places).encode() not in report, form


def test_the_path_of_the_database_is_kept_in_the_store_and_in_no_report_of_it(places, capfd, monkeypatch):
    """By hand: `runs show` prints the path of the database, the report only the database's name."""
    monkeypatch.chdir(places.parent)
    assert main(["query", "one/q.fasta", "./one/x.db", "--store", "s.sqlite", "--quiet", "--format", "json"]) == 0
    printed = capfd.readouterr().out
    assert json.loads(printed)["database"]["name"] == "x.db"
    assert main(["report", "1", "--store", "s.sqlite", "--format", "json"]) == 0
    assert capfd.readouterr().out == printed
    assert main(["runs", "show", "1", "--store", "s.sqlite"]) == 0
    assert f"{places.resolve()}/x.db: 7 protein sequences" in capfd.readouterr().out


def test_another_spelling_of_an_option_is_the_same_search(places, capfd):
    """By hand: a finished batch is resumed although each path has another spelling."""
    batch = ["batch", "q.fasta", "x.db", "--store", "b.sqlite", "--quiet", *FILTERED]
    assert main(batch) == 0
    others = ["--include", f"{places}/chosen", "--matrix", "./scores", "--resume", "1"]
    capfd.readouterr()
    assert main(["batch", f"{places}/q.fasta", "../one/x.db", "--store", "b.sqlite", "--quiet", *others]) == 0
    assert "0 queries done, 7 were there before" in capfd.readouterr().out
