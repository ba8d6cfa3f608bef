"""The choice of an engine by name, and the sentence that states the reason. Expected: values written by hand."""

import pytest

from swsearch.engine import registry
from swsearch.engine.cuda.runtime.presence import DriverFacts, GpuProbe
from swsearch.engine.registry import Machine, engine_infos, open_engine
from swsearch.errors import EngineUnavailable, InputError

NO_PYCUDA = GpuProbe(plugged_in=True, pycuda=False, visible=None, ask_driver=lambda: DriverFacts(1))


def test_auto_takes_the_cpu_where_the_gpu_cannot_be_used_and_says_why_but_a_named_engine_is_no_other(monkeypatch):
    monkeypatch.setattr(registry, "look_for_gpus", lambda: NO_PYCUDA)
    engine, why = open_engine(Machine(), cells=10**15)
    with engine:
        assert engine.name == "cpu"
    assert why.startswith("cpu engine (")
    assert "not cuda: PyCUDA is not installed" in why
    with pytest.raises(EngineUnavailable, match="PyCUDA is not installed") as caught:
        open_engine(Machine("cuda"))
    assert caught.value.engine == "cuda"


def test_named_engines_are_what_they_are_called():
    for name in ("cpu", "reference"):
        engine, why = open_engine(Machine(name, threads=1))
        with engine:
            assert engine.name == name
        assert why.endswith("as asked")


def test_unknown_names_and_no_threads_are_refused():
    with pytest.raises(InputError, match="auto, cuda, cpu, reference"):
        open_engine(Machine("abacus"))
    with pytest.raises(InputError, match="threads=0"):
        open_engine(Machine("cpu", threads=0))


def test_every_engine_tells_what_it_is():
    infos = engine_infos()
    assert [info.name for info in infos] == ["cuda", "cpu", "reference"]
    assert all(info.usable or info.reason for info in infos)
