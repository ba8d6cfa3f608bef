"""The options of ``swsearch batch`` for clusters: what they refuse, and the workers that ``local:N`` starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from swsearch.cli.app import main
from tests.sliced_databases import DATA


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--cluster local:0", "--cluster local:0: give the number of workers, such as local:4"),
        ("--slices yes", "--slices is for the workers of a cluster; name one with --cluster, or leave it out"),
        ("--deadline 5", "--deadline is for the workers of a cluster; name one with --cluster, or leave it out"),
        ("--cluster local:1 --plot scores.png", "--plot needs the scores of all subjects"),
        (
            "--cluster local:1 --slices yes",
            "has one slice with residues to search; leave it out, or index the FASTA again",
        ),
        ("--cluster local:2 --devices 0", "needs a GPU for each worker, and --devices names 1"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(folder, tmp_path, capfd, arguments, message):
    """Expected values: the messages; nothing is stored."""
    database = tmp_path / "one.db"
    assert main(["index", str(folder / "bases0.fasta"), "-o", str(database), "--quiet"]) == 0
    store = tmp_path / "hits.sqlite"
    line = ["batch", str(folder / "reads.fasta"), str(database), "--store", str(store), *arguments.split()]
    assert main(line) == 1
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not store.exists()


@pytest.mark.parametrize("index_options", [[], ["--slices", "2"]])
def test_a_search_without_residues_ends_without_hits(tmp_path, capfd, index_options):
    """A subject of two bases passes the filter, and has no residue in any frame; as without a cluster."""
    (tmp_path / "bases.fasta").write_text(">a\nACGTACGTACGT\n>b\nACGTTGCATCGA\n>c\nAC\n")
    database, store = str(tmp_path / "bases.db"), str(tmp_path / "hits.sqlite")
    assert main(["index", str(tmp_path / "bases.fasta"), "-o", database, "--quiet", *index_options]) == 0
    line = ["batch", str(DATA / "queries.fasta"), database, "--translate", "subject", "--max-length", "2", "--quiet"]
    for cluster in ([], ["--cluster", "local:1", "--engine", "cpu"]):
        assert main([*line, "--store", store, *cluster]) == 0
        assert "7 queries done, 0 failed" in capfd.readouterr().out
        assert main(["report", "latest", "--store", store, "--format", "blast6"]) == 0
        assert capfd.readouterr() == ("", "")


def test_the_plan_shows_the_slices(folder, capfd):
    """Expected value: three slices, whose cells are all."""
    line = ["batch", str(DATA / "queries.fasta"), str(folder / "proteins.db"), "--store", "unused.sqlite"]
    assert main([*line, "--cluster", "local:2", "--slices", "yes", "--engine", "cpu", "--explain"]) == 0
    first, *slices = capfd.readouterr().out.splitlines()
    assert "2 workers with" in first
    assert "each holds some of 3 slices" in first
    assert [one.split(":")[0] for one in slices] == ["slice 1", "slice 2", "slice 3"]
    assert sum(float(one.split(", ")[1].split("%")[0]) for one in slices) == pytest.approx(100, abs=0.2)


def test_workers_execute_no_code_of_the_folder_where_the_command_was_started(folder, tmp_path):
    """Dask starts them with `python -c`, which looks for modules there first."""
    for name in ("json", "multiprocessing", "numpy", "swsearch"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'a').write(__name__)\nimport nothing\n")
    program = [Path(sys.executable).with_name("swsearch"), "batch", folder / "reads.fasta", folder / "bases.db"]
    options = ["--cluster", "local:1", "--engine", "cpu", "--store", "hits.sqlite", "--quiet"]
    ended = subprocess.run([*program, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not (tmp_path / "executed").exists()
