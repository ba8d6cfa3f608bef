"""Every text that is read: mutated at random, led by the coverage of branches (Atheris), and as it once failed.

The properties that must hold are those of :mod:`checks`; a hang, a signal and memory beyond a limit are faults, too.
"""

import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.campaign.fuzz.mutation import mutated
from tests.campaign.fuzz.targets import TARGETS
from tests.campaign.program import called
from tests.campaign.trials import Trial

pytestmark = [pytest.mark.thorough, pytest.mark.peer("gcc")]

N_INPUTS = 40
REGRESSIONS = Path(__file__).parent / "regressions"
ONCE_FAILED = sorted(path for path in REGRESSIONS.glob("*/*") if not path.parent.name.startswith("native_"))


def read_all(name: str, inputs: Sequence[bytes], folder: Path) -> int:
    """Check a target with some inputs; return 1 after a fault."""
    for data in inputs:
        (folder / "input").write_bytes(data)  # before the input can end the process
        try:
            TARGETS[name].check(data, folder)
        except Exception:  # any exception that a check does not catch is the fault looked for
            traceback.print_exc()
            return 1
    return 0


def check_all(name: str, inputs: Sequence[bytes], folder: Path) -> None:
    """Check a target with some inputs, in a process of its own."""
    ended = called(read_all, name, inputs, folder)
    if ended.code != 0 or ended.fault is not None:
        saved = folder / "input"
        pytest.fail(f"{name}: {ended.fault or ended.text[-1500:]} (input {saved.read_bytes()[:300]!r} in {saved})")


@pytest.mark.parametrize("path", ONCE_FAILED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_input_that_once_failed_is_read_or_refused(path: Path, tmp_path: Path) -> None:
    check_all(path.parent.name, [path.read_bytes()], tmp_path)


@pytest.mark.campaign(len(TARGETS), 1_700)
def test_any_input_is_read_exactly_or_refused_in_one_line(trial: Trial) -> None:
    name = sorted(TARGETS)[trial.number % len(TARGETS)]
    check_all(name, [mutated(trial.rng, TARGETS[name]) for _ in range(N_INPUTS)], trial.folder)


@pytest.mark.campaign(0, 34)
def test_any_input_that_reaches_another_branch_is_read_or_refused(trial: Trial) -> None:
    """Atheris leads the inputs of one target for half a minute."""
    pytest.importorskip("atheris", reason="Atheris is not installed (pip install 'swsearch[fuzz]')")
    name = sorted(TARGETS)[trial.number % len(TARGETS)]
    command = [sys.executable, "-m", "tests.campaign.fuzz.guided", name, str(trial.state_dir / f"corpus-{name}")]
    command += [f"-max_total_time={trial.seconds:.0f}", "-max_len=20000", f"-seed={trial.rng.randrange(1, 2**31)}"]
    command += ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={trial.folder}/"]
    command += [str(REGRESSIONS / name)] if (REGRESSIONS / name).is_dir() else []
    done = subprocess.run(command, capture_output=True, check=False)
    words = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode == 0, words.partition("Uncaught Python exception")[2][:2500] or words[-2500:]
