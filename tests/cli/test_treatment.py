"""Masking, composition correction, simulated statistics and the score plot from the command line.

The expected values follow from the given options by hand.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import QUERIES


def test_a_treated_run_says_so_in_every_report(swsearch, protein_db):
    """Source: the given options; reports from the store state the same options."""
    arguments = ["query", QUERIES, protein_db, "--top", "2", "--mask", "tantan,lower", "--composition", "bias"]
    first = swsearch(*arguments)
    assert first.code == 0, first.err
    treatment = "queries masked (soft) by tantan,lower; composition corrected; E-values for"
    assert treatment in first.out
    for name in ("table", "pairwise", "html", "sam", "json"):
        stored = swsearch("report", "latest", "--format", name)
        if name == "json":
            parameters = json.loads(stored.out)["parameters"]
            assert [parameters[key] for key in ("mask", "mask_mode", "composition")] == ["tantan,lower", "soft", "bias"]
        else:
            assert treatment in stored.out, name
    shown = swsearch("runs", "show", "latest").out
    assert "--mask        tantan,lower" in shown
    assert "--composition bias" in shown


def test_simulated_statistics_are_labelled(swsearch, protein_db, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    scoring = ["--matrix", "BLOSUM80", "--gap-open", "18", "--gap-extend", "2"]
    shown = swsearch("query", QUERIES, protein_db, "--top", "1", *scoring)
    assert "residues (simulated statistics)" in shown.out
    assert "statistics    simulated with 65,536 pairs" in swsearch("runs", "show", "latest").out


def test_a_batch_with_a_mask_resumes_and_tells_cases_apart(swsearch, protein_db, tmp_path):
    """Queries that differ only in case share one search without a mask, and have one each if lower case is masked."""
    letters = (QUERIES).read_text().split(">")[1].split("\n", 1)[1].replace("\n", "")
    tail = letters[:40] + letters[40:].lower()
    (tmp_path / "q.fasta").write_text(f">upper\n{letters}\n>tail\n{tail}\n>again\n{tail}\n")
    hits = {}
    for name, options in (("plain", []), ("masked", ["--mask", "lower", "--mask-mode", "hard"])):
        store = f"{name}.sqlite"
        assert swsearch("batch", "q.fasta", protein_db, "--store", store, *options).code == 0
        resumed = swsearch("batch", "q.fasta", protein_db, "--store", store, "--resume", "1", *options)
        assert "0 queries done, 3 were there before" in resumed.out, resumed.err
        hits[name] = json.loads(swsearch("report", "latest", "--store", store, "--format", "json").out)["queries"]
    assert [len(query["hits"]) for query in hits["plain"]] == [len(hits["plain"][0]["hits"])] * 3
    masked = hits["masked"]
    assert len(masked[1]["hits"]) < len(masked[0]["hits"])
    assert masked[1]["hits"] == masked[2]["hits"]


def test_a_plot_is_drawn_and_a_misfit_is_said_and_stored(swsearch, protein_db, tmp_path):
    """The query consists of lysine and glutamate, shuffled from one seed; its composition is far from the average."""
    (tmp_path / "biased.fasta").write_text(">biased\n" + "EKKEKEEKEEKKKEKEEEKKEKEKKEEK" * 8 + "\n")
    ran = swsearch("query", "biased.fasta", protein_db, "--top", "1", "--plot", "scores.png")
    assert ran.code == 0, ran.err
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert "the scores of this run do not follow its statistics: at E = 10 the fit" in ran.err
    assert "the scores of this run do not follow its statistics" in swsearch("runs", "show", "latest").out
    quiet = swsearch("query", "biased.fasta", protein_db, "--top", "1", "--plot", "scores.png", "--quiet")
    assert quiet.err == ""
    assert quiet.out == ran.out


def test_queries_that_do_not_follow_the_statistics_are_warned_of_in_one_line(swsearch, protein_db, tmp_path):
    """Three coiled coils and proteins rich in few residues, and a GTPase, of data/proteins.fasta.gz."""
    names = ["K1RCS4", "F9N1V1", "B5T1P5", "B4RQP4"]
    assert swsearch("db", "fetch", protein_db, *names, "-o", "q.fasta").code == 0
    words = ["q.fasta", protein_db, "--top", "1", "--threads", "2", "--log", "log.txt"]
    several = swsearch("query", *words)
    (line,) = [line for line in several.err.splitlines() if "E-values are probably too small" in line]
    assert line.startswith("swsearch: warning: ")
    log = (tmp_path / "log.txt").read_text()
    assert "queries were compared with their statistics" in log
    for name in names[:2]:
        assert len(re.findall(rf" WARNING \d+ \w+\|{name}\|\w+: its scores with 400 subjects fit 0\.[56]", log)) == 1
    assert not re.search(rf"WARNING \d+ sp\|{names[3]}", log)
    assert swsearch("db", "fetch", protein_db, names[0], "-o", "one.fasta").code == 0
    one = swsearch("query", "one.fasta", protein_db, "--top", "1", "--threads", "2")
    assert "E-values are probably too small for tr|K1RCS4|K1RCS4_CRAGI: its scores with 400 subjects fit 0.5" in one.err
    assert swsearch("query", "one.fasta", protein_db, "--top", "1", "--threads", "2", "-q").err == ""
    assert swsearch("db", "fetch", protein_db, names[3], "-o", "usual.fasta").code == 0
    assert "E-values" not in swsearch("query", "usual.fasta", protein_db, "--top", "1", "--threads", "2").err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("scores.bmp", "ends in .png, .svg, .pdf"),
        ("nowhere/scores.png", "there is no folder"),
        ("-", "--plot -: a plot is a file; choose a name that ends in .png"),
    ],
)
def test_a_plot_that_cannot_be_written_is_refused_before_the_search(swsearch, protein_db, name, words):
    outcome = swsearch("query", QUERIES, protein_db, "--plot", name)
    assert words in outcome.refusal


def test_a_plot_in_a_folder_that_takes_none_is_refused_before_the_search(swsearch, protein_db, tmp_path, monkeypatch):
    """`os.access` answers as for a folder of another user, or on a read-only disk."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    outcome = swsearch("query", QUERIES, protein_db, "--store", "none", "--plot", "scores.png")
    assert f"--plot scores.png: nothing can be written to the folder {tmp_path}; choose another" in outcome.refusal


def test_a_plot_without_matplotlib_says_what_to_install(swsearch, protein_db, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = swsearch("query", QUERIES, protein_db, "--plot", "scores.png")
    assert "pip install 'swsearch[plot]'" in outcome.refusal


def test_a_mask_without_its_program_says_what_to_install(swsearch, protein_db, monkeypatch):
    monkeypatch.setenv("PATH", "")
    outcome = swsearch("query", QUERIES, protein_db, "--mask", "seg")
    assert "install BLAST+" in outcome.refusal
