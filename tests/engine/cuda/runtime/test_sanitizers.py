"""The kernels under the address and undefined-behaviour sanitizers, on the emulated device.

A separate process runs some tests of the engine and of the other kernels with the sanitizers' library preloaded. In it,
device buffers and shared memory are heap blocks of their exact size, so an access outside them ends the process.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.cuda.emulation.emulated_device import SANITIZE

pytestmark = pytest.mark.thorough

FILES = (
    "search/test_emulated_engine.py",
    "search/test_end_positions.py",
    "search/test_forward.py",
    "pairs/test_emulated_diamonds.py",
    "pairs/test_emulated_paths.py",
    "search/test_long_subjects.py",
    "search/test_bound.py",
    "history/test_cudasw2_kernels.py",
    "pairs/test_short_pairs.py",
    "history/test_wavefront.py",
)
CHOSEN = (
    "gap_costs or strands or beyond_each_type or a_streamed_database or no_residue or (rule and 10000) "
    "or (dna_and_floors and striped) or pieces_and_empty or first_row or little_memory or several_launches "
    "or reaches_across or every_type or position_specific or long_subjects_alone "
    "or strips_of_their_own or floor_for_each_length"
)


@pytest.mark.peer("g++")
@pytest.mark.skipif(SANITIZE in os.environ, reason="this is the process under the sanitizers")
def test_kernels_stay_in_bounds_and_defined() -> None:
    library = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    if not Path(library.stdout.strip()).is_absolute():
        pytest.skip("g++ has no address sanitizer here")
    environment = os.environ | {
        SANITIZE: "1",
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", "-k", CHOSEN]
    command += [str(Path(__file__).parents[1] / name) for name in FILES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert " passed" in done.stdout
