"""``python -m tests.campaign PART FOLDER SEED FIRST TRIALS SECONDS``: trials of a part, for ``test_parts.py``.

The part has a process of its own, because forks are armed with a library that is preloaded before libc (`shim.c`). The
outcome is written to ``outcome.json`` in the folder.
"""

import json
import sys
from pathlib import Path

from tests.campaign.parts import PARTS
from tests.campaign.processes import die_with_parent
from tests.campaign.trials import run_trials


def main(name: str, folder: str, seed: str, first: str, n_trials: str, seconds: str) -> None:
    """Run the trials."""
    die_with_parent()
    (part,) = (part for part in PARTS if part.name == name)
    numbers = range(int(first), int(first) + int(n_trials))
    outcome = run_trials(name, part.trial(), numbers, int(seed), Path(folder), float(seconds))
    (Path(folder) / "outcome.json").write_text(json.dumps(vars(outcome)))


if __name__ == "__main__":
    main(*sys.argv[1:])
