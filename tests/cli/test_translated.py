"""Translated searches from the command line: printed, stored, printed again, in batches, refused.

The expected output comes from the same search printed directly, run as a query, or run without translation.
"""

import re

import numpy as np
import pytest

from tests.support import write_fasta
from tests.translated_data import planted, real_proteins

MODES = {"query": ("genes", "proteins"), "subject": ("proteins", "genes"), "both": ("genes", "genes")}


@pytest.fixture
def files(swsearch, tmp_path):
    """FASTA files and databases of six real proteins, and of one gene for each."""
    proteins = real_proteins(6)
    write_fasta(tmp_path / "proteins.fasta", proteins)
    write_fasta(tmp_path / "genes.fasta", planted(np.random.default_rng(7), proteins, 11))
    for name in ("proteins", "genes"):
        assert swsearch("index", f"{name}.fasta", "-o", f"{name}.db", "--quiet").code == 0
    return tmp_path


@pytest.mark.parametrize("translate", MODES)
def test_stored_hits_are_printed_again_to_the_byte(swsearch, files, translate):
    """Source: the output of the search itself, in each format."""
    queries, database = MODES[translate]
    search = ["query", f"{queries}.fasta", f"{database}.db", "--translate", translate, "--genetic-code", "11"]
    assert swsearch(*search, "--quiet").code == 0
    for name in ("table", "blast7", "tsv", "json", "pairwise", "xml", "html"):
        printed = swsearch(*search, "--store", "none", "--format", name)
        assert printed.code == 0, printed.err
        assert "gene_of_" in printed.out
        assert swsearch("report", "latest", "--format", name).out == printed.out, name


@pytest.mark.parametrize("command", ["query", "batch"])
def test_translating_a_database_is_told_before_the_search(swsearch, files, monkeypatch, command):
    """By hand: one line, because the database is one block; no line where only the queries are translated."""
    monkeypatch.setattr("swsearch.cli.output.PLAIN_INTERVAL_SECONDS", 0.0)
    search = [command, "proteins.fasta", "genes.db", "--translate", "subject"]
    outcome = swsearch(*search)
    assert outcome.code == 0, outcome.err
    lines = [line for line in outcome.err.splitlines() if "translating" in line]
    assert len(lines) == 1
    assert re.fullmatch(r"swsearch: translating: 100\.0 % done, \d+\.\d M bases/s, 0 s left", lines[0])
    assert outcome.err.index("translating") < outcome.err.index("searching: ")
    assert swsearch(*search, "--quiet").err == ""
    assert "translating" not in swsearch(command, "genes.fasta", "proteins.db", "--translate", "query").err


def test_what_is_wrong_with_a_database_is_told_as_without_translation(swsearch, files):
    """Source: the same command without ``--translate``."""
    (files / "broken.db").mkdir()
    (files / "notes.txt").write_text("hello")
    for database in ("none.db", "notes.txt", "broken.db"):
        plain = swsearch("query", "proteins.fasta", database)
        translated = swsearch("query", "proteins.fasta", database, "--translate", "subject")
        assert (translated.code, translated.error) == (plain.code, plain.error) == (1, plain.error)


@pytest.mark.parametrize(
    ("queries", "database", "side", "words"),
    [
        ("proteins", "genes", "subject", "the queries are proteins, genes.db is DNA: it is searched in six frames"),
        (
            "genes",
            "proteins",
            "query",
            "the queries are DNA, proteins.db is protein: they are translated in six frames",
        ),
    ],
)
def test_queries_of_the_other_alphabet_are_translated_and_it_is_said(swsearch, files, queries, database, side, words):
    """Source: the search in which the translation is given."""
    command = ["query", f"{queries}.fasta", f"{database}.db", "--format", "jsonl", "--store", "none"]
    given, offered = swsearch(*command, "--translate", side), swsearch(*command)
    assert offered.out == given.out != ""
    assert f"{words}; --translate none refuses" in offered.err
    assert "--translate none" not in given.err
    assert "--translate none" not in swsearch(*command, "--quiet").err
    assert swsearch(*command, "--genetic-code", "1").out == given.out
    command[2] = f"{database}.fasta"  # which is packed after the options are checked
    assert swsearch(*command, "--genetic-code", "1").out == swsearch(*command).out != ""
    assert (swsearch(*command, "--max-intron", "500").code == 0) == (side == "subject")


def test_dna_with_one_wrong_letter_is_no_protein(swsearch, files):
    """By hand: a record of DNA with an L is refused, not searched as protein."""
    letters = (files / "genes.fasta").read_text().split("\n")[1]
    (files / "wrong.fasta").write_text(f">wrong\n{letters[:40]}L{letters[40:]}\n")
    wrong = swsearch("query", "wrong.fasta", "genes.db")
    assert (wrong.code, "'L' is not in alphabet dna" in wrong.error) == (1, True)


def test_what_cannot_be_is_one_line(swsearch, files, user_store):
    """By hand: the message says what is wrong and what to do."""
    sam = swsearch("query", "genes.fasta", "proteins.db", "--translate", "query", "--format", "sam")
    assert "format sam cannot hold a translated search" in sam.refusal
    assert not user_store.exists()
    protein = swsearch("query", "proteins.fasta", "proteins.db", "--translate", "query")
    assert "is not in alphabet dna" in protein.refusal
    letters = swsearch("query", "genes.fasta", "proteins.db", "--translate", "query", "--alphabet", "protein")
    assert "with --translate query queries are dna" in letters.refusal
