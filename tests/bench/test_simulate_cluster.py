"""The simulation of a cluster in ``benchmarks/``. Expected values: what must hold for any cluster."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "simulate_cluster.py"


@pytest.fixture(scope="module")
def simulator():
    spec = importlib.util.spec_from_file_location("simulate_cluster", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def cluster(simulator):
    """A cluster in which much goes wrong."""
    return simulator.Model(
        2000, n_slices=3, n_held=2, query_seconds=3.0, start_seconds=5.0, load_seconds=4.0, failure_seconds=100.0,
        speed_deviation=0.3,
    )  # fmt: skip


@pytest.mark.parametrize("n_slices", [1, 3])
@pytest.mark.parametrize("n_gpus", [3, 8, 40])
def test_every_task_is_done_once(simulator, cluster, n_gpus, n_slices):
    simulation = simulator.Simulation(replace(cluster, n_slices=n_slices), n_gpus, 1)
    outcome = simulation.run()
    assert {task.n_results for task in simulation.tasks} == {1}
    assert sum(task.work for task in simulation.tasks) == pytest.approx(2000 * 3.0)
    assert outcome.n_failures > 0
    assert outcome.n_sent >= outcome.n_tasks == outcome.n_results


def test_a_slow_driver_bounds_the_rate(simulator):
    """100 GPUs ask for a task each two seconds; a driver that needs 0.1 s for one keeps 20 of them busy."""
    model = simulator.Model(5000, query_seconds=2.0, driver_seconds=(0.1, 0.1), warm=True)
    equal = simulator.Simulation(model, 100, 1)
    equal.queries = [2.0] * 5000
    assert equal.run().efficiency == pytest.approx(0.2, rel=0.02)


def test_the_times_of_large_databases_are_those_of_the_page(simulator):
    """Source: the table of ``docs/design/scale.md``, computed by hand from its rates."""
    page = (SCRIPT.parents[1] / "docs" / "design" / "scale.md").read_text()
    databases = (simulator.UNIREF90, simulator.TREMBL, simulator.BFD)
    row = " | ".join(f"{one.n_bytes / 1e9:.2f} GB" for one in databases)
    assert f"| memory | {row} |" in page
    row = " | ".join(f"{one.query_seconds:.3g} s" for one in databases)
    assert f"| a query on one GPU | {row} |" in page
    assert [one.n_slices for one in databases] == [1, 2, 8]
