"""The C++ of simd/ by itself: built with sanitizers, for another processor, and as a fuzz target.

Expected values: ``plain_gotoh.hpp``, the recurrence cell by cell in 64 bits. A program that finds a difference, or a
sanitizer that finds a fault, ends with an error, and its output is the test's message.
"""

import hashlib
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
"""For the scalar kernels, all of scores and pairs, and alignments under sanitizers: with -O1, a kernel of pairs takes a
minute to compile, and with -Og a sixth of that."""
KERNELS = {
    "x86_64": {
        "scalar": ("scalar", []),
        "sse41": ("sse41", ["-msse4.1"]),
        "avx2": ("avx2", ["-mavx2"]),
        "avx512bw": ("avx512", AVX512),
        "avx512vbmi": ("avx512", [*AVX512, "-mavx512vbmi", "-mavx512vnni"]),
    },
    "aarch64": {"scalar": ("scalar", []), "neon": ("neon", [])},
}
"""Vectors and compiler options of each instruction set, as CMakeLists.txt has them."""
COMMON = ["common/instruction_sets", "common/parallel_for"]
SOURCES = {
    "score": [*COMMON, "score/search", "score/group", "score/kernel_choice"],
    "align": [*COMMON, "align/path", "align/query", "align/forward_pass"],
    "context": [*COMMON, "context/context"],
    "pair": [*COMMON, "pair/path", "pair/strip", "pair/sweep", "pair/walk"],
    "index": ["index/identifiers", "index/records", "index/runs"],
    "pssm": ["common/parallel_for", "pssm/rows", "pssm/columns"],
    "domains": ["common/parallel_for", "domains/domains"],
    "msa": ["common/parallel_for", "msa/rows", "msa/selection", "msa/effective_number"],
}
MESSAGES = {
    "score": "all scores agree\n",
    "align": "all paths agree\n",
    "context": "all totals agree\n",
    "pair": "all pairs agree\n",
}
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

pytestmark = pytest.mark.thorough
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags of these builds are x86's")
needs_gcc = pytest.mark.peer("g++")


def build(
    folder: Path,
    main: str,
    part: str,
    flags: Sequence[str],
    compiler: str = "g++",
    machine: str = "x86_64",
    driver: str | None = None,
) -> Path:
    """Link ``main`` of this folder with a part of simd/ and its kernels for every instruction set.

    ``driver`` is another source of this folder that calls ``main``. The program is cached (``tests/compiled.py``).
    """
    here = Path(__file__).parent
    units: list[tuple[str, Path, list[str]]] = [("main", here / main, [])]
    units += [] if driver is None else [("driver", here / driver, [])]
    units += [(source.replace("/", "_"), SIMD / f"{source}.cpp", []) for source in SOURCES[part]]
    kernels = KERNELS[machine] if part in MESSAGES else {}
    for name, (vectors, options) in kernels.items():
        defines = [f"-DSWSEARCH_VECTORS={vectors}", f"-DSWSEARCH_KERNELS=kernels_{name}"]
        slower = FEWER_STEPS if name == "scalar" or part in ("score", "pair") else []
        units.append((f"kernels_{name}", SIMD / part / "kernels.cpp", [*defines, *options, *slower]))
    named = [f"{name} {source} {' '.join(options)}" for name, source, options in units]
    sources = [here / main, *([] if driver is None else [here / driver]), *sorted(here.glob("*.hpp"))]
    folders = [SIMD / "common", SIMD / part]  # a part includes no file of another part
    parts = [compiler, compiler_version(compiler), *flags, *named, digest_of(*folders)]
    parts += [f"{source.name} {hashlib.sha256(source.read_bytes()).hexdigest()}" for source in sources]
    return compiled(Path(main).stem, parts, lambda program: link(program, folder, units, flags, compiler))


def link(
    program: Path, folder: Path, units: list[tuple[str, Path, list[str]]], flags: Sequence[str], compiler: str
) -> None:
    """Write the program of some compilation units; object files go to ``folder``."""
    common = [compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-w", "-pthread", f"-I{SIMD}", *flags]

    def compile_one(unit: tuple[str, Path, list[str]]) -> str:
        name, source, options = unit
        target = folder / f"{name}.o"
        done = subprocess.run(
            [*common, *options, "-c", source, "-o", target], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return str(target)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, units))
    linked = subprocess.run([*common, *objects, "-o", program], capture_output=True, text=True, check=False)
    assert linked.returncode == 0, linked.stderr


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return done.stdout


@needs_gcc
@pytest.mark.parametrize("source", sorted(Path(__file__).parent.glob("*.cpp")), ids=lambda path: path.name)
def test_every_program_of_this_folder_compiles(source: Path) -> None:
    """The suite runs only some of them."""
    assert run("g++", "-std=c++17", "-w", "-fsyntax-only", f"-I{SIMD}", source) == ""


@needs_x86
@needs_gcc
@pytest.mark.parametrize(("part", "n_cases"), [("score", 12), ("align", 150), ("context", 20), ("pair", 12)])
def test_kernels_stay_in_their_arrays_and_agree(tmp_path, part, n_cases):
    program = build(tmp_path, f"{part}_harness.cpp", part, ADDRESS)
    assert run(program, n_cases) == MESSAGES[part]


@needs_gcc
@pytest.mark.parametrize(("part", "n_inputs"), [("pssm", 400), ("msa", 100), ("domains", 150)])
def test_functions_of_alignments_stay_in_their_arrays(tmp_path, part, n_inputs):
    """The fuzz targets, whose expected values are plain loops, with the inputs of one seed."""
    flags = [*ADDRESS, *FEWER_STEPS]
    program = build(tmp_path, f"fuzz_{part}.cpp", part, flags, driver="random_driver.cpp")
    assert run(program, n_inputs, 1) == f"{n_inputs} inputs\n"


@needs_x86
@needs_gcc
@pytest.mark.parametrize(("part", "n_cases"), [("score", 2), ("context", 2), ("pair", 4)])
def test_threads_do_not_race(tmp_path, part, n_cases):
    program = build(tmp_path, f"{part}_harness.cpp", part, ["-fsanitize=thread"])
    # With address-space randomization, as some kernels do it, the thread sanitizer's runtime cannot start.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    assert run(*fixed, program, n_cases) == MESSAGES[part]


@needs_x86
@pytest.mark.peer("clang++")
def test_fuzzing_the_scores_finds_nothing(tmp_path):
    program = build(tmp_path, "fuzz_score.cpp", "score", ["-fsanitize=fuzzer,address"], "clang++")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    # The campaign (tests/campaign/fuzz/test_native.py) runs this target for longer.
    run(program, "-max_total_time=2", "-max_len=4096", "-seed=1", f"-artifact_prefix={tmp_path}/", corpus)
    assert not list(tmp_path.glob("crash-*"))
    assert list(corpus.iterdir())  # it has run and stored inputs that reach new code


@pytest.mark.peer("NEON")
@pytest.mark.parametrize(("part", "n_cases"), [("score", 3), ("align", 30), ("context", 4), ("pair", 6)])
def test_neon_kernels_agree(tmp_path, part, n_cases):
    """Scores, tracebacks and pairs of NEON and of the plain vectors, under an emulator."""
    program = build(
        tmp_path, f"{part}_harness.cpp", part, ["-static", "-Wall"], "aarch64-linux-gnu-g++", machine="aarch64"
    )
    assert run("qemu-aarch64", program, n_cases) == MESSAGES[part]
