"""Writes transcripts anew from what their commands do now, or compares them.

    python -m tests.golden [--check] [NAME…]

With ``--check``, nothing is written; the differences are printed, and the exit code is 1 if there are some.
"""

import difflib
import sys
import tempfile
from pathlib import Path

from tests.golden.transcripts import FOLDER, accepted, names, run

checks = sys.argv[1:2] == ["--check"]
differences: list[str] = []
for name in sys.argv[1 + checks :] or names():
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "here")
        place.mkdir()
        present = run(accepted(name), place)
    if checks:
        lines = (text.splitlines() for text in (accepted(name), present))
        differences += difflib.unified_diff(*lines, name, "now", n=1, lineterm="")
    else:
        (FOLDER / f"{name}.txt").write_text(present, encoding="utf-8")
print("\n".join(differences))
sys.exit(1 if differences else 0)
