"""The seeded first trials of the fuzzing parts, and every input that failed in the past.

The remaining trials are parts of the campaign; the properties that must hold are stated in the modules.
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
from tests.campaign.fuzz import arrays, databases, native, parsers
from tests.campaign.fuzz.children import in_child
from tests.campaign.fuzz.mutation import mutated

pytestmark = pytest.mark.thorough

REGRESSIONS = sorted(path for path in native.REGRESSIONS.glob("*/*") if not path.parent.name.startswith("native_"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_input_that_once_failed_is_read_or_refused(path: Path, tmp_path: Path) -> None:
    target = parsers.TARGETS[path.parent.name]
    assert parsers.check_all(path.parent.name, target, [path.read_bytes()], tmp_path) is None


@pytest.mark.parametrize("name", sorted(parsers.TARGETS))
def test_mutated_text_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    rng = random.Random(f"{name} in the tests")
    target = parsers.TARGETS[name]
    assert parsers.check_all(name, target, [mutated(rng, target) for _ in range(25)], tmp_path) is None


def test_damaged_databases_are_named_and_never_crash_a_command(tmp_path: Path) -> None:
    sound = databases.make_sound(tmp_path / "sound")
    for number in range(10):
        folder = tmp_path / f"trial-{number}"
        folder.mkdir()
        assert databases.problems(random.Random(f"database {number}"), folder, sound) == []


def test_arguments_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for number in range(6):
        assert arrays.problems(random.Random(f"arrays {number}"), tmp_path) == []


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
    assert (ended.code, ended.out, ended.err, ended.fault) == (3, "said\n", "", None)
    assert re.search(r"(?s)SIGSEGV.* in die\n", str(in_child(die).fault))
    assert "MemoryError" in str(in_child(lambda: len(bytearray(1 << 40))).fault)
