"""The cache of programs that tests compile (``tests/compiled.py``). The expected files are written by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiled import KEPT_SECONDS, compiled, digest_of, remove_oldest

ROOT = Path(__file__).parents[1]
PROCESS = """
import sys
from pathlib import Path
from tests.compiled import compiled

def make(path):
    with open(sys.argv[2], "a") as told:
        told.write("made\\n")
    path.write_bytes(b"whole" * 500_000)

print("here", flush=True)
sys.stdin.readline()
for number in range(5):
    path = compiled("program", ["source", str(number)], make, Path(sys.argv[1]))
    assert path.read_bytes() == b"whole" * 500_000
"""


def test_processes_that_need_the_same_file_make_it_once(tmp_path: Path) -> None:
    """Three processes need the same five files at once; each reads complete files, and each file is made once."""
    kept, told = tmp_path / "kept", tmp_path / "told"
    kept.mkdir()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(kept), str(told)], cwd=ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    outcomes = [child.communicate() for child in children]
    assert [(child.returncode, errors) for child, (_, errors) in zip(children, outcomes, strict=True)] == [(0, "")] * 3
    assert told.read_text() == "made\n" * 5
    assert len([path for path in kept.iterdir() if not path.name.startswith("lock-")]) == 5


def test_a_file_is_made_again_for_what_changes_it(tmp_path: Path) -> None:
    made = []

    def make(path: Path) -> None:
        made.append(path.name)
        path.write_text("")

    for parts in (["a", "b"], ["a", "b"], ["ab", ""], ["a", "c"]):
        compiled("program", parts, make, tmp_path)
    assert len(made) == len(set(made)) == 3


def test_sources_decide_by_name_and_content(tmp_path: Path) -> None:
    digests = []
    for number, (name, text) in enumerate([("a.cpp", "1"), ("a.cpp", "2"), ("b.cpp", "1"), ("sub/a.cpp", "1")]):
        path = tmp_path / str(number) / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        digests.append(digest_of(tmp_path / str(number)))
    assert len(set(digests)) == 4


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("no such word")

    with pytest.raises(ValueError, match="no such word"):
        compiled("program", ["source"], fail, tmp_path)
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith("lock-")]


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    """By hand: the limit is 25 bytes, so the first two of three old files of 10 bytes are removed, and no new one."""
    for number in range(4):
        path = tmp_path / f"program-{number}"
        path.write_bytes(bytes(10))
        if number < 3:
            used = path.stat().st_mtime - KEPT_SECONDS - 100 + number
            os.utime(path, (used, used))
    remove_oldest(tmp_path, 25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program-2", "program-3"]
    remove_oldest(tmp_path, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["program-3"]
