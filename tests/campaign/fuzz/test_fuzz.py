"""Every input that failed in the past, and the first damaged databases; other trials are parts of the campaign.

The properties that must hold are stated in the modules.
"""

from __future__ import annotations

import os
import platform
import random
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from swsearch import _native
from tests.campaign.fuzz import databases, native, parsers
from tests.campaign.processes import in_child

pytestmark = pytest.mark.thorough

REGRESSIONS = sorted(path for path in native.REGRESSIONS.glob("*/*") if not path.parent.name.startswith("native_"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_input_that_once_failed_is_read_or_refused(path: Path, tmp_path: Path) -> None:
    target = parsers.TARGETS[path.parent.name]
    assert parsers.check_all(path.parent.name, target, [path.read_bytes()], tmp_path) is None


def test_damaged_databases_are_named_and_never_crash_a_command(tmp_path: Path) -> None:
    sound = databases.make_sound(tmp_path / "sound")
    for number in range(10):
        folder = tmp_path / f"trial-{number}"
        folder.mkdir()
        assert databases.problems(random.Random(f"database {number}"), folder, sound) == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags of these builds are x86's")
@pytest.mark.peer("g++")
def test_indexing_driven_by_bytes_equals_plain_code(tmp_path: Path) -> None:
    program = native.built(tmp_path, "index", "address", libfuzzer=False)
    assert native.problems(program, ["2000", "1"]) == []
    assert native.problems(program, [str(path) for path in (native.REGRESSIONS / "native_index").iterdir()]) == []


def test_a_local_path_begins_with_its_first_pair_whichever_ends_are_free() -> None:
    """By hand: only the third letter matches. The path used to begin with a gap where an end was not declared free."""
    query, subject = np.array([3], np.uint16), np.array([1, 2, 3], np.uint16)
    for free in range(16):
        found = _native.align_pair(query, subject, None, 5, -4, 2, 1, True, free, True)
        assert found == (5, 1, 3, 0, 2, [("M", 1)])


def test_a_child_that_dies_hangs_or_takes_all_memory_is_told_from_one_that_ends() -> None:
    """The harness itself: each kind of end is recognized."""

    def print_and_return() -> int:
        print("said")
        return 3

    def die() -> int:
        os.kill(os.getpid(), signal.SIGSEGV)
        return 0

    ended = in_child(print_and_return)
    assert (ended.code, ended.out, ended.err, ended.fault) == (3, b"said\n", b"", None)
    assert re.search(r"(?s)SIGSEGV.* in die\n", str(in_child(die).fault))
    assert "MemoryError" in str(in_child(lambda: len(bytearray(1 << 40))).fault)
