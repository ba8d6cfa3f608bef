"""The native kernels under sanitizers, driven by bytes.

libFuzzer drives them where clang++ exists (Debian's package clang); a seeded driver does so elsewhere, and under the
thread sanitizer, because threads increment the counters of the coverage without synchronization. The targets are
``tests/simd/fuzz_*.cpp``.
"""

import platform
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from swsearch import _native
from tests.campaign.trials import Trial
from tests.simd.test_native import ADDRESS, build

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.peer("g++"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags of these builds are x86's"),
]

THREAD: Final = ["-fsanitize=thread"]
BUILDS: Final = [(target, ADDRESS) for target in ("align", "index", "msa", "pair", "pssm", "score")]
BUILDS += [(target, THREAD) for target in ("msa", "pair", "pssm", "score")]
REGRESSIONS: Final = Path(__file__).parent / "regressions"


def check(program: Path, arguments: Sequence[object]) -> None:
    """Run a built target; a fault ends it."""
    # With address-space randomization, as some kernels do it, the thread sanitizer's runtime cannot start.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    done = subprocess.run([*fixed, str(program), *map(str, arguments)], capture_output=True, check=False)
    words = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode == 0, f"{program.name}: exit code {done.returncode}: {words[-2500:]}"


@pytest.mark.campaign(0, 40)
def test_bytes_break_no_kernel(trial: Trial) -> None:
    """One target with one sanitizer for half a minute."""
    target, flags = BUILDS[trial.number % len(BUILDS)]
    seed = trial.rng.randrange(1, 2**31)
    if flags != THREAD and shutil.which("clang++") is not None:
        program = build(trial.folder, f"fuzz_{target}.cpp", target, [*flags, "-fsanitize=fuzzer"], "clang++")
        corpora = [trial.state_dir / f"corpus-native-{target}", REGRESSIONS / f"native_{target}"]
        corpora[0].mkdir(exist_ok=True)
        options = [f"-max_total_time={trial.seconds:.0f}", "-max_len=3000", f"-seed={seed}", "-timeout=60"]
        options += ["-rss_limit_mb=4096", f"-artifact_prefix={trial.folder}/"]
        check(program, [*options, *(corpus for corpus in corpora if corpus.is_dir())])
    else:
        program = build(trial.folder, f"fuzz_{target}.cpp", target, flags, driver="random_driver.cpp")
        ends = time.monotonic() + trial.seconds
        while time.monotonic() < ends:
            check(program, [200, trial.rng.randrange(2**31)])


def test_indexing_driven_by_bytes_equals_plain_code(tmp_path: Path) -> None:
    program = build(tmp_path, "fuzz_index.cpp", "index", ADDRESS, driver="random_driver.cpp")
    check(program, [2000, 1])
    check(program, sorted((REGRESSIONS / "native_index").iterdir()))


def test_a_local_path_begins_with_its_first_pair_whichever_ends_are_free() -> None:
    """By hand: only the third letter matches. The path used to begin with a gap where an end was not declared free."""
    query, subject = np.array([3], np.uint16), np.array([1, 2, 3], np.uint16)
    for free in range(16):
        found = _native.align_pairs(query, np.array([1]), subject, np.array([3]), None, 5, -4, 2, 1, True, free, True)
        assert found[0].tolist() == [[5, 1, 3, 0, 2]]
        assert found[2].tolist() == [1 << 2]
