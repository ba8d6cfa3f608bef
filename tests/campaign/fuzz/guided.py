"""The targets of ``parsers`` under coverage guidance: ``python -m tests.campaign.fuzz.guided TARGET CORPUS [options]``.

The options are libFuzzer's. Atheris counts the branches of ``swsearch``; inputs that reach new branches are stored in
the folder ``CORPUS``. Atheris is installed by ``pip install 'swsearch[fuzz]'`` for the Python versions that it has
wheels for; where it is missing, the campaign's part reports that. The command must be run from the folder that holds
``swsearch``.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from tests.campaign.fuzz.native import REGRESSIONS

if TYPE_CHECKING:
    from tests.campaign.parts import Budget, Outcome
    from tests.campaign.trials import Trial


def main() -> None:
    """Fuzz one target until an option or a fault ends it."""
    import atheris

    # The finder of an editable install hides from Atheris that the modules are plain files.
    sys.meta_path.insert(0, PathFinder)
    with atheris.instrument_imports(include=["swsearch"]):
        from tests.campaign.fuzz.parsers import TARGETS

    target = TARGETS[sys.argv[1]]
    corpus = Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup(sys.argv[:1] + sys.argv[2:], lambda data: target.check(data, Path(folder)))
        atheris.Fuzz()


def run(budget: Budget, seed: int, state_dir: Path) -> Outcome:
    """Run the part, as :mod:`tests.campaign.parts` specifies. A trial is at most one minute of one target."""
    from tests.campaign.fuzz.parsers import TARGETS
    from tests.campaign.parts import Outcome
    from tests.campaign.trials import run_trials

    if importlib.util.find_spec("atheris") is None:
        return Outcome(notes=["left out: Atheris is not installed (pip install 'swsearch[fuzz]')"])
    ends = time.monotonic() + budget.seconds

    def trial(trial: Trial) -> None:
        name = sorted(TARGETS)[trial.number % len(TARGETS)]
        seconds = max(5, min(30, int(ends - time.monotonic())))
        known = REGRESSIONS / name
        words = [sys.executable, "-m", "tests.campaign.fuzz.guided", name, str(state_dir / f"corpus-{name}")]
        words += [f"-max_total_time={seconds}", "-max_len=20000", f"-seed={trial.rng.randrange(1, 2**31)}"]
        words += ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={trial.folder}/"]
        words += [str(known)] if known.is_dir() else []
        done = subprocess.run(words, capture_output=True, check=False)
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        if done.returncode != 0:
            _, uncaught, traceback = output.partition("Uncaught Python exception")
            trial.problems.append(f"{name}: {traceback[:2500] if uncaught else output[-2500:]}")
        trial.counts[f"seconds of {name} led by coverage"] += seconds

    return run_trials("fuzz_guided", trial, budget, seed, state_dir)


if __name__ == "__main__":
    main()
