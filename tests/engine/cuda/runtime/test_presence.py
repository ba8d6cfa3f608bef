"""Detection of a GPU, and the messages of each command where no GPU can be used.

The expected messages are written by hand; files and libraries of the driver are imitated.
"""

import re
import subprocess

import pytest

from swsearch.engine import registry
from swsearch.engine.cuda.runtime import pycuda_device
from swsearch.engine.cuda.runtime.presence import DriverFacts, GpuProbe, ask_driver, look_for_gpus, plugged_in
from swsearch.engine.registry import Machine, engine_infos, open_engine
from swsearch.errors import EngineUnavailable

NO_LIBRARY = DriverFacts(0, "libcuda.so.1 cannot be loaded")


def probe(*, plugged_in=False, pycuda=False, visible=None, driver=NO_LIBRARY):
    return GpuProbe(plugged_in, pycuda, visible, lambda: driver)


NO_GPU = probe()
CASES = {
    "no GPU": (NO_GPU, "there is no NVIDIA GPU", False),
    "a driver without a GPU": (probe(driver=DriverFacts(0)), "there is no NVIDIA GPU", False),
    "a hidden GPU that nobody installed PyCUDA for": (
        probe(driver=DriverFacts(0), visible=""), "there is no NVIDIA GPU", False,
    ),
    "a GPU without PyCUDA": (probe(plugged_in=True, driver=DriverFacts(1)), "PyCUDA is not installed; pip", True),
    "a GPU that the driver alone shows": (probe(driver=DriverFacts(1)), "PyCUDA is not installed; pip", True),
    "PyCUDA without driver and GPU": (probe(pycuda=True), "the NVIDIA driver is missing or broken (libcuda", True),
    "PyCUDA without driver": (probe(plugged_in=True, pycuda=True), "but its driver is missing", True),
    "a GPU with nothing": (probe(plugged_in=True), "but its driver is missing or broken", True),
    "a driver that fails": (
        probe(plugged_in=True, pycuda=True, driver=DriverFacts(0, "error 803 of libcuda.so.1, mismatch")),
        "error 803", True,
    ),
    "a hidden GPU": (
        probe(plugged_in=True, pycuda=True, driver=DriverFacts(0), visible=""),
        "CUDA_VISIBLE_DEVICES='' hides every GPU", True,
    ),
    "a GPU that the driver does not show": (
        probe(plugged_in=True, pycuda=True, driver=DriverFacts(0)), "nvidia-smi", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_named_and_auto_speaks_of_a_gpu_only_where_one_is_expected(monkeypatch, case):
    gpus, words, expected = CASES[case]
    for module in (registry, pycuda_device):
        monkeypatch.setattr(module, "look_for_gpus", lambda: gpus)
    assert words in gpus.missing
    assert gpus.expected is expected
    info = pycuda_device.cuda_info()
    assert (info.built, info.usable, info.reason) == (True, False, gpus.missing)
    assert next(info for info in engine_infos() if info.name == "cuda").reason == gpus.missing
    engine, why = open_engine(Machine(threads=1), cells=10**15)
    engine.close()
    assert engine.name == "cpu"
    assert ("cuda" in why or "GPU" in why) is expected
    assert ("pip install" in why) is ("pip install" in gpus.missing)
    with pytest.raises(EngineUnavailable) as caught:
        open_engine(Machine("cuda"))
    assert caught.value.reason == gpus.missing


def test_no_installation_is_advised_where_there_is_no_gpu():
    assert "install" not in NO_GPU.missing


def test_a_short_search_does_not_start_the_driver(monkeypatch):
    def start():
        raise AssertionError("the driver was asked")

    for plugged, pycuda in ((False, False), (True, False), (True, True)):
        gpus = GpuProbe(plugged, pycuda, None, start)
        monkeypatch.setattr(registry, "look_for_gpus", lambda gpus=gpus: gpus)
        engine, why = open_engine(Machine(threads=1), cells=1)
        engine.close()
        assert ("less time than the start of a GPU" in why) is (plugged and pycuda)


def test_a_gpu_is_found_by_the_drivers_files_or_the_pci_bus(tmp_path):
    """Source: Linux's device listing; 0x10de is NVIDIA, 0x03… a display controller, 0x0403 the GPU's sound device."""
    assert not plugged_in(tmp_path)
    for number, (vendor, kind, found) in enumerate(
        [("0x8086", "0x030000", False), ("0x10de", "0x040300", False), ("0x10de", "0x030200", True)]
    ):
        device = tmp_path / f"sys/bus/pci/devices/0000:00:0{number}.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")
        assert plugged_in(tmp_path) is found
    for sign in ("dev/nvidia0", "proc/driver/nvidia/gpus/0000:01:00.0"):
        root = tmp_path / sign.partition("/")[0] / "root"
        (root / sign).mkdir(parents=True)
        assert plugged_in(root)


DRIVER = """
int cuInit(unsigned flags) {{ return {init}; }}
int cuDeviceGetCount(int *count) {{ *count = {count}; return 0; }}
int cuGetErrorString(int status, const char **words) {{ *words = "what it says"; return 0; }}
"""


@pytest.mark.parametrize(
    ("init", "count", "expected"),
    [
        (0, 2, DriverFacts(2)),
        (100, 0, DriverFacts(0)),
        (34, 0, "toolkit's library for linking, not the driver"),
        (803, 0, "error 803 of .*, what it says"),
    ],
)
def test_a_drivers_library_is_asked(tmp_path, init, count, expected):
    """Source: results of cuInit in CUDA's documentation: 34 is the toolkit's library for linking, 100: no device."""
    library = tmp_path / f"libcuda{init}.so"
    source = tmp_path / "driver.c"
    source.write_text(DRIVER.format(init=init, count=count))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    found = ask_driver(str(library))
    if isinstance(expected, DriverFacts):
        assert found == expected
    else:
        assert found.n_devices == 0
        assert re.search(expected, found.fault)


def test_a_missing_library_and_this_machine_can_be_asked():
    assert ask_driver("libnosuchdriver.so.1") == DriverFacts(0, "libnosuchdriver.so.1 cannot be loaded")
    assert isinstance(look_for_gpus().missing, str)
