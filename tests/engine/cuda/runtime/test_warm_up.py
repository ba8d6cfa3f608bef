"""Creation of GPU contexts at program start: the calls to the driver's library, and no error if it is missing.

The expected calls are recorded by a small library that replaces the driver's.
"""

import importlib.machinery
import importlib.util
import subprocess
import threading
from pathlib import Path

import pytest

from swsearch.engine import registry
from swsearch.engine.cuda.runtime import presence
from swsearch.engine.registry import CPU_CELLS_PER_SECOND, GPU_START_SECONDS, Machine

DRIVER = r"""
#include <stdio.h>
static void note(const char *call, int number) {
    FILE *file = fopen(CALLS, "a");
    fprintf(file, "%s %d\n", call, number);
    fclose(file);
}
int cuInit(unsigned flags) { note("init", flags); return STATUS; }
int cuDeviceGet(int *device, int ordinal) { *device = 10 + ordinal; return ordinal > 1 ? 101 : 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { note("retain", device); *context = 0; return 0; }
"""


def make_driver(folder: Path, status: int) -> tuple[str, Path]:
    """Compile a library that records its calls; return its name and the file of the record."""
    calls = folder / "calls.txt"
    calls.touch()
    (folder / "driver.c").write_text(DRIVER)
    library = folder / "libdriver.so"
    options = ["-shared", "-fPIC", f'-DCALLS="{calls}"', f"-DSTATUS={status}", "-o", str(library)]
    subprocess.run(["gcc", *options, str(folder / "driver.c")], check=True)
    return str(library), calls


@pytest.mark.peer("gcc")
@pytest.mark.parametrize(("status", "expected"), [(0, ["init 0", "retain 10", "retain 11"]), (100, ["init 0"])])
def test_contexts_of_the_devices_that_are_there(tmp_path, monkeypatch, status, expected):
    """Device 2 does not exist; status 100 is CUDA's "no device"."""
    library, calls = make_driver(tmp_path, status)
    monkeypatch.setattr(presence, "LIBRARY", library)
    presence.warm_up([0, 2, 1]).join()
    assert calls.read_text().splitlines() == expected


def test_no_driver_is_no_error(monkeypatch):
    monkeypatch.setattr(presence, "LIBRARY", "libthere-is-none.so")
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    thread = presence.warm_up([0])
    thread.join()
    assert not thread.is_alive()
    assert failures == []


@pytest.mark.parametrize(
    ("name", "cells", "installed", "expected"),
    [
        ("cuda", 1, True, [[0, 1]]),
        ("auto", 10**15, True, [[0, 1]]),
        ("auto", 10**9, True, []),
        ("cpu", 10**15, True, []),
        ("cuda", 10**15, False, []),
    ],
)
def test_gpus_start_only_where_they_are_going_to_be_used(monkeypatch, name, cells, installed, expected):
    asked: list[list[int]] = []
    spec = importlib.machinery.ModuleSpec("pycuda", None) if installed else None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(registry, "warm_up", asked.append)
    assert Machine(name, devices=[0, 1]).warm_up_gpus(cells) == bool(expected)
    assert asked == expected


def test_a_gpu_is_worth_its_start_where_the_cpu_takes_longer():
    """By hand: one core takes as long as the start for half a second's cells; two cores take half that time."""
    cells = int(GPU_START_SECONDS * CPU_CELLS_PER_SECOND)
    assert not Machine(threads=1).gpu_is_faster(cells)
    assert Machine(threads=1).gpu_is_faster(cells * 11 // 10)
    assert not Machine(threads=2).gpu_is_faster(cells * 11 // 10)
