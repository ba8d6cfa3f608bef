"""``swsearch query --explain``: the plan is printed, and nothing is searched or stored."""

import re

import pytest

from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.cuda.search.plan import PlanOptions
from tests.cli.conftest import DATA
from tests.engine.cuda.emulation.emulated_device import opener


@pytest.mark.parametrize("command", ["query", "batch"])
def test_the_plan_is_printed_instead_of_a_search(swsearch, tmp_path, protein_db, command):
    done = swsearch(command, DATA / "queries.fasta", protein_db, "--explain", "--engine", "cpu", "--store", "h.sqlite")
    assert done.printed.splitlines()[-1] == "one query at a time against 1,500 subjects, divided among the threads"
    assert not (tmp_path / "h.sqlite").exists()


def test_the_plan_of_the_cuda_engine_names_its_kernels(swsearch, monkeypatch, protein_db, tmp_path):
    """By hand: BLOSUM62 has no score that makes a protein of 200 residues exceed 2,047, and E-values give a floor."""
    monkeypatch.setattr(
        "swsearch.search.searcher.open_engine",
        lambda *_, **__: (CudaDevices([0], opener(multiprocessors=132), options=PlanOptions(band_rows=5)), "emulated"),
    )
    (tmp_path / "q.fa").write_text(">a\n" + "MKVLAAGIVG" * 20 + "\n>b\n" + "MKVLAAGIVG" * 60 + "\n")
    lines = swsearch("query", "q.fa", protein_db, "--explain").out.splitlines()
    assert lines[0] == "emulated"
    text = "\n".join(lines)
    assert "of 200" in text
    assert "600 residues" in text
    assert "inter-task: 1," in text
    assert "11 bits, bound, bands of 5 rows" in text
    assert "scored again in 16 bits: " in text
    lowest, highest = map(int, re.findall(r"may reach a score of (\d+) to (\d+), by their length", text)[0])
    assert lowest < highest
