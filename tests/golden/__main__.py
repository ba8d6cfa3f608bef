"""Writes transcripts, and the description of the API, anew from what the program does now, or compares them.

    python -m tests.golden [--check] [NAME…]

With ``--check``, nothing is written; the differences are printed, and the exit code is 1 if there are some.
"""

import difflib
import sys
import tempfile
from pathlib import Path

from tests.golden import api_description
from tests.golden.transcripts import FOLDER, accepted, names, run

checks = sys.argv[1:2] == ["--check"]
differences: list[str] = []
for name in sys.argv[1 + checks :] or [*names(), api_description.NAME]:
    if name == api_description.NAME:
        path, present = api_description.PATH, api_description.api_description()
    else:
        path = FOLDER / f"{name}.txt"
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "here")
            place.mkdir()
            present = run(accepted(name), place)
    if checks:
        lines = (text.splitlines() for text in (path.read_text(encoding="utf-8"), present))
        differences += difflib.unified_diff(*lines, name, "now", n=1, lineterm="")
    else:
        path.write_text(present, encoding="utf-8")
print("\n".join(differences))
sys.exit(1 if differences else 0)
