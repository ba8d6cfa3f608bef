"""The C++ of simd/ on its own: built with sanitizers, for another processor, and as a fuzz target.

Expected values: ``plain_gotoh.hpp``, the recurrence cell by cell in 64 bits. A program that finds a difference, or a
sanitizer that finds a fault, ends with an error, and its words are the test's message.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.compiled import compiled, compiler_version, digest_of

ROOT = Path(__file__).parents[2]
SIMD = ROOT / "simd"
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"]
FEWER_STEPS = ["-Og"]
"""For the scalar kernels, and all of pairs, under the sanitizers: one file takes a minute with -O1, a sixth so."""
SCORE = {"search": [], "group": [], "crew": [], "instruction_sets": [], "kernels_scalar": FEWER_STEPS}
KERNELS = {
    "x86_64": {
        "kernels_sse41": ["-msse4.1"],
        "kernels_avx2": ["-mavx2"],
        "kernels_avx512bw": AVX512,
        "kernels_avx512vbmi": [*AVX512, "-mavx512vbmi"],
    },
    "aarch64": {"kernels_neon": []},
}
ALIGN = {
    "path": [],
    "query": [],
    "forward_pass": [],
    "forward_scalar": [],
    "forward_sse41": ["-msse4.1"],
    "forward_avx2": ["-mavx2"],
    "forward_avx512": AVX512[:3],
}
PAIR = {
    "path": [],
    "strip": [],
    "sweep": [],
    "diamond_scalar": [],
    "diamond_sse41": ["-msse4.1"],
    "diamond_avx2": ["-mavx2"],
    "diamond_avx512": AVX512[:3],
    "walk": [],
}
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

pytestmark = pytest.mark.slow
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags of these builds are x86's")
needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def build(folder: Path, main: str, sources: dict[Path, Sequence[str]], flags: Sequence[str], compiler: str) -> Path:
    """Compile each source with its own flags beside ``flags``, and link them with ``main`` of this folder.

    The program is kept (``tests/compiled.py``).
    """
    sources = {**sources, Path(__file__).parent / main: []}
    own_flags = [f"{source.name} {' '.join(needed)}" for source, needed in sources.items()]
    parts = [compiler, compiler_version(compiler), *flags, *own_flags, digest_of(SIMD, Path(__file__).parent)]
    return compiled(Path(main).stem, parts, lambda program: link(program, folder, sources, flags, compiler))


def link(program: Path, folder: Path, sources: dict[Path, Sequence[str]], flags: Sequence[str], compiler: str) -> None:
    """Write the program of some sources; object files go to ``folder``."""
    common = [compiler, "-std=c++17", "-O1", "-w", "-pthread", f"-I{SIMD}", *flags]

    def compile_one(source: Path) -> str:
        target = folder / f"{source.stem}.o"
        done = subprocess.run(
            [*common, *sources[source], "-c", source, "-o", target], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return str(target)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    linked = subprocess.run([*common, *objects, "-o", program], capture_output=True, text=True, check=False)
    assert linked.returncode == 0, linked.stderr


def score_sources(machine: str) -> dict[Path, Sequence[str]]:
    """Sources of simd/score for a machine, with what each needs."""
    return {SIMD / "score" / f"{name}.cpp": flags for name, flags in {**SCORE, **KERNELS[machine]}.items()}


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


@needs_x86
@needs_gcc
def test_score_kernels_stay_in_their_arrays_and_agree(tmp_path):
    program = build(tmp_path, "score_harness.cpp", score_sources("x86_64"), ADDRESS, "g++")
    assert run(program, 12) == "all scores agree\n"


@needs_x86
@needs_gcc
def test_score_threads_do_not_race(tmp_path):
    program = build(tmp_path, "score_harness.cpp", score_sources("x86_64"), ["-fsanitize=thread"], "g++")
    # Without a fixed layout of memory, as some kernels lay it out, the thread sanitizer's runtime cannot start.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    assert run(*fixed, program, 2) == "all scores agree\n"


@needs_x86
@needs_gcc
def test_alignments_stay_in_their_arrays_and_rescore(tmp_path):
    sources = {SIMD / "align" / f"{name}.cpp": flags for name, flags in ALIGN.items()}
    program = build(tmp_path, "align_harness.cpp", sources, ADDRESS, "g++")
    assert run(program, 150) == "all paths agree\n"


@needs_x86
@needs_gcc
@pytest.mark.parametrize(("flags", "n_pairs"), [(ADDRESS, 12), (["-fsanitize=thread"], 4)])
def test_pairs_stay_in_their_arrays_and_do_not_race(tmp_path, flags, n_pairs):
    sources = {SIMD / "pair" / f"{name}.cpp": needed for name, needed in PAIR.items()}
    program = build(tmp_path, "pair_harness.cpp", sources, [*flags, *FEWER_STEPS], "g++")
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    assert run(*fixed, program, n_pairs) == "all pairs agree\n"


@needs_x86
@pytest.mark.skipif(shutil.which("clang++") is None, reason="there is no clang++ for libFuzzer")
def test_fuzzing_the_scores_finds_nothing(tmp_path):
    program = build(tmp_path, "fuzz_score.cpp", score_sources("x86_64"), ["-fsanitize=fuzzer,address"], "clang++")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    run(program, "-max_total_time=5", "-max_len=4096", "-seed=1", f"-artifact_prefix={tmp_path}/", corpus)
    assert not list(tmp_path.glob("crash-*"))
    assert list(corpus.iterdir())  # it has run and kept inputs that reach new code


@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-g++") is None or shutil.which("qemu-aarch64") is None,
    reason="needs Debian's g++-aarch64-linux-gnu and qemu-user",
)
def test_neon_kernels_agree(tmp_path):
    program = build(
        tmp_path, "score_harness.cpp", score_sources("aarch64"), ["-static", "-Wall"], "aarch64-linux-gnu-g++"
    )
    assert run("qemu-aarch64", program, 3) == "all scores agree\n"
