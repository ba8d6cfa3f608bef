"""``swsearch bench`` prints one line for each measurement and refuses what it cannot measure.

The expected rows and messages are written by hand.
"""

import json
import re

import pytest

from swsearch.bench import kernel_rates
from swsearch.cli import bench
from swsearch.engine import registry
from swsearch.engine.cuda.runtime import pycuda_device
from swsearch.engine.cuda.runtime.presence import DriverFacts, GpuProbe
from swsearch.engine.protocol import EngineInfo
from swsearch.errors import EngineError
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice


def test_every_length_set_and_thread_count_is_measured(swsearch):
    outcome = swsearch("bench", "--residues", 300_000, "--lengths", "10,20", "--threads", "1,2")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert lines[0].split()[:2] == ["query", "instructions"]
    assert [line.split()[:4:2] for line in lines[1:]] == [[n, t] for n in ("10", "20") for t in ("1", "1", "2", "2")]
    assert all(float(line.split()[-1]) > 0 for line in lines[1:])


def test_what_cannot_be_measured_is_one_clear_line(swsearch):
    assert "whole numbers of at least 1" in swsearch("bench", "--lengths", "10,x").error


SMALL = ["--residues", 5000, "--query-length", 30, "--pair-length", 60, "--pairs", 4, "--batch-length", 20]


def test_every_kernel_is_measured_or_says_why_not(swsearch, monkeypatch):
    """On a machine without a GPU, the GPU's rows are present, each with the reason why it was not measured."""
    monkeypatch.setattr(kernel_rates, "usable_gpu", lambda: "no GPU in this test")
    outcome = swsearch("bench", "kernels", *SMALL)
    assert outcome.code == 0
    lines = outcome.out.splitlines()[1:]
    assert {line.split()[0] for line in lines} == {"search", "pair", "batch"}
    on_gpu = [line for line in lines if " cuda " in line]
    kernels = ["strip", "simt", "striped", "partitioned", "diamond", "wavefront", "short"]
    assert [line.split()[2] for line in on_gpu] == kernels
    assert all(line.endswith("not measured: no GPU in this test") for line in on_gpu)
    measured = [line.split() for line in lines if " cuda " not in line]
    assert all(float(line[-2].replace(",", "")) > 0 for line in measured)  # speed relative to the reference
    assert all(int(line[-1]) > 0 for line in measured if "reference" not in line)  # checked


def test_kernels_are_measured_as_json(swsearch):
    outcome = swsearch("bench", "kernels", *SMALL[4:], "--tasks", "pair,batch", "--format", "json", "--threads", 1)
    document = json.loads(outcome.out)
    assert document["schema_version"] == 1
    rows = {(row["task"], row["kernel"]): row for row in document["rows"]}
    assert rows["pair", "cpu diamond"]["cells"] == 3600
    assert rows["pair", "cpu diamond"]["times_default"] == 1
    assert rows["batch", "cpu short pairs"]["checked"] == 4


def test_kernels_refuse_what_they_cannot_measure(swsearch):
    assert "choose search, pair, batch" in swsearch("bench", "kernels", "--tasks", "search,knit").error
    assert "choose table or json" in swsearch("bench", "kernels", "--format", "xml").error


@pytest.fixture
def one_gpu(monkeypatch):
    """A machine whose GPU is emulated, and a measurement of few cells."""
    infos = registry.engine_infos()[1:]
    gpu = EngineInfo("cuda", built=True, usable=True, detail="an emulated GPU")
    monkeypatch.setattr(registry, "engine_infos", lambda: [gpu, *infos])
    monkeypatch.setattr(
        registry, "look_for_gpus", lambda: GpuProbe(True, True, visible=None, ask_driver=lambda: DriverFacts(1))
    )
    monkeypatch.setattr(bench, "MEASURED_RESIDUES", 400)
    monkeypatch.setattr(bench, "MEASURED_QUERIES", {"cpu": 1, "cuda": 2})


@pytest.mark.peer("g++")
def test_the_speed_of_a_gpu_is_measured_as_that_of_the_cpu(swsearch, monkeypatch, one_gpu):
    monkeypatch.setattr(pycuda_device, "PyCudaDevice", lambda ordinal, **_: EmulatedDevice())
    lines = swsearch("engines").out.splitlines()
    assert re.fullmatch(r"cuda +usable +an emulated GPU; [0-9]+\.[0-9] GCUPS now", lines[0])
    assert re.search(r"; [0-9.]+ GCUPS now$", lines[1])
    assert "GCUPS" not in lines[2]
    speeds = {one["name"]: one["gcups"] for one in json.loads(swsearch("engines", "--format", "json").out)["engines"]}
    assert speeds["cuda"] > 0


def test_a_gpu_that_cannot_be_measured_does_not_hide_the_other_engines(swsearch, monkeypatch, one_gpu):
    def refuse(ordinal, **_):
        raise EngineError("the GPU has no free memory")

    monkeypatch.setattr(pycuda_device, "PyCudaDevice", refuse)
    outcome = swsearch("engines")
    assert outcome.printed.splitlines()[0].endswith("an emulated GPU; not measured: the GPU has no free memory")
    assert outcome.out.splitlines()[1].endswith("GCUPS now")
