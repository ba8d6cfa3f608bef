"""The benchmark's cell counts, workloads and peers. Expected values: hand calculation, and the CPU engine's scores."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from swsearch.bench.workloads import (
    generated_proteins,
    generated_query,
    measure,
    profiles_of,
    search_floor,
    workload_of_file,
)
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.sequences.alphabet import DNA, PROTEIN


def test_generated_subjects_have_the_size_asked_for_and_do_not_change():
    """A comparison of runs requires the same workload in each run."""
    proteins = generated_proteins(100_000)
    assert 100_000 <= proteins.partition.n_residues <= 105_000
    assert 300 < proteins.partition.lengths.mean() < 420
    np.testing.assert_array_equal(proteins.partition.residues, generated_proteins(100_000).partition.residues)


def test_cells_count_both_strands_of_dna():
    """Expected values by hand: query residues times subject residues, twice for DNA."""
    query = generated_query(PROTEIN, 20)
    workload = generated_proteins(20_000)
    found = measure(workload, query, threads=1)
    assert found.cells == 20 * workload.partition.n_residues
    assert (found.program, found.threads, found.query_length) == ("swsearch", 1, 20)
    assert found.gcups > 0
    assert found.core_gcups > 0
    phage = workload_of_file(str(Path(__file__).parents[2] / "data" / "lambda_phage.fasta"))
    assert measure(phage, generated_query(DNA, 30), floored=True).cells == 60 * phage.partition.n_residues


def test_floor_is_that_of_a_search():
    """The floor grows with the search space and is above 1 where the statistics are known."""
    small, large = generated_proteins(20_000), generated_proteins(200_000)
    assert 1 < search_floor(small, 100) < search_floor(large, 100)


def test_pyopal_is_given_the_same_problem(monkeypatch):
    """Expected values: the CPU engine; a peer with other results could not be compared."""
    pytest.importorskip("pyopal")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    workload = generated_proteins(20_000)
    query = generated_query(PROTEIN, 60)
    (block,) = CpuEngine(1).score(score_requests(profiles_of(workload, query)), workload.partition)
    with importlib.import_module("cpu_peers").Peer("pyopal", workload) as peer:
        assert peer.scores(query) == block.score.tolist()
        assert peer.measure(query).cells == 60 * workload.partition.n_residues
