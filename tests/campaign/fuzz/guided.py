"""The targets of ``parsers`` under coverage guidance: ``python -m tests.campaign.fuzz.guided TARGET CORPUS [options]``.

The options are libFuzzer's. Atheris counts the branches of ``swsearch``; inputs that reach new branches are stored in
the folder ``CORPUS``. Atheris is installed by ``pip install 'swsearch[fuzz]'`` for the Python versions that it has
wheels for; where it is missing, the campaign's part reports that. The command must be run from the folder that holds
``swsearch``.
"""

import importlib.util
import subprocess
import sys
import tempfile
import time
from importlib.machinery import PathFinder
from pathlib import Path

from tests.campaign.fuzz.native import REGRESSIONS
from tests.campaign.trials import LeftOut, Trial


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


def trial(trial: Trial) -> None:
    """Fuzz one target for at most half a minute."""
    from tests.campaign.fuzz.parsers import TARGETS

    if importlib.util.find_spec("atheris") is None:
        raise LeftOut("Atheris is not installed (pip install 'swsearch[fuzz]')")
    name = sorted(TARGETS)[trial.number % len(TARGETS)]
    seconds = max(5, min(30, int(trial.ends - time.monotonic())))
    known = REGRESSIONS / name
    words = [sys.executable, "-m", "tests.campaign.fuzz.guided", name, str(trial.state_dir / f"corpus-{name}")]
    words += [f"-max_total_time={seconds}", "-max_len=20000", f"-seed={trial.rng.randrange(1, 2**31)}"]
    words += ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={trial.folder}/"]
    words += [str(known)] if known.is_dir() else []
    done = subprocess.run(words, capture_output=True, check=False)
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode != 0:
        _, uncaught, traceback = output.partition("Uncaught Python exception")
        trial.problems.append(f"{name}: {traceback[:2500] if uncaught else output[-2500:]}")
    trial.counts[f"seconds of {name} led by coverage"] += seconds


if __name__ == "__main__":
    main()
