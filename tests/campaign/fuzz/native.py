"""The native kernels under sanitizers, driven by bytes.

libFuzzer drives them where clang++ exists; a seeded driver does so elsewhere, and under the thread sanitizer.

The targets are ``tests/simd/fuzz_*.cpp``. Each is built with the address and undefined-behaviour sanitizers, and those
that start threads also with the thread sanitizer. The corpus that libFuzzer collects is stored in the part's state, so
that a later call continues from it.
"""

import platform
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.campaign.faults import without_shim
from tests.campaign.trials import LeftOut, Trial
from tests.simd.test_native import ADDRESS, build

THREAD: Final = ["-fsanitize=thread"]
BUILDS: Final = {
    ("score", "address"): ADDRESS,
    ("align", "address"): ADDRESS,
    ("pair", "address"): ADDRESS,
    ("index", "address"): ADDRESS,
    ("pssm", "address"): ADDRESS,
    ("msa", "address"): ADDRESS,
    ("score", "thread"): THREAD,
    ("pair", "thread"): THREAD,
    ("pssm", "thread"): THREAD,
    ("msa", "thread"): THREAD,
}
REGRESSIONS: Final = Path(__file__).parent / "regressions"


def built(folder: Path, target: str, sanitizer: str, *, libfuzzer: bool) -> Path:
    """Return the program of a target; it is built if it is not in the cache of compiled programs."""
    build_folder = folder / f"{target}-{sanitizer}-{'libfuzzer' if libfuzzer else 'driver'}"
    build_folder.mkdir(parents=True, exist_ok=True)
    flags = BUILDS[target, sanitizer]
    if libfuzzer:
        return build(build_folder, f"fuzz_{target}.cpp", target, [*flags, "-fsanitize=fuzzer"], "clang++")
    return build(build_folder, f"fuzz_{target}.cpp", target, flags, driver="random_driver.cpp")


def problems(program: Path, arguments: Sequence[str]) -> list[str]:
    """Return the final output of a run of a built target, if the run failed."""
    # With address-space randomization, as some kernels do it, the thread sanitizer's runtime cannot start.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    done = subprocess.run([*fixed, str(program), *arguments], capture_output=True, check=False, env=without_shim())
    if done.returncode == 0:
        return []
    words = (done.stdout + done.stderr).decode("utf-8", "replace")
    return [f"{program.name}: exit code {done.returncode}: {words[-2500:]}"]


def trial(trial: Trial) -> None:
    """Run one target for at most a minute."""
    if platform.machine() != "x86_64" or shutil.which("g++") is None:
        raise LeftOut("the builds need g++ on x86-64")
    target, sanitizer = sorted(BUILDS)[trial.number % len(BUILDS)]
    # Threads increment the counters of the coverage without synchronization, which the thread sanitizer reports.
    libfuzzer = sanitizer != "thread" and shutil.which("clang++") is not None
    program = built(trial.state_dir / "programs", target, sanitizer, libfuzzer=libfuzzer)
    seconds = max(5, min(60, int(trial.ends - time.monotonic())))
    if libfuzzer:
        corpus = trial.state_dir / f"corpus-{target}"
        corpus.mkdir(exist_ok=True)
        known = REGRESSIONS / f"native_{target}"
        arguments = [f"-max_total_time={seconds}", "-max_len=3000", f"-seed={trial.rng.randrange(1, 2**31)}"]
        arguments += ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={trial.folder}/", str(corpus)]
        trial.problems += problems(program, [*arguments, *([str(known)] if known.is_dir() else [])])
        trial.counts[f"seconds of native {target} led by coverage"] += seconds
    else:
        # Debian's package clang has clang++, with which coverage leads the targets under the address sanitizer.
        began, n = time.monotonic(), 200
        while time.monotonic() - began < seconds and not trial.problems:
            trial.problems += problems(program, [str(n), str(trial.rng.randrange(2**31))])
            trial.counts[f"inputs of native {target} under the {sanitizer} sanitizer"] += n
