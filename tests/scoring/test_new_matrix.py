"""The recipe "Add a scoring matrix" of CONTRIBUTING: rows of the table and a digest.

It is carried out in another process, on a copy of the sources; no file is changed.
"""

import json
import subprocess
import sys

ROWS = """\
GONNET1992	none	none	0.21	0.11	1.0	10.0	10.0
GONNET1992	14	2	0.19	0.05	1.5	30.0	30.0
"""
PROGRAM = """
import contextlib, hashlib, importlib.util, io, json, sys
from pathlib import Path

import numpy as np

from swsearch.scoring.matrix import named_matrix

home = Path(importlib.util.find_spec("swsearch.scoring.published_parameters").origin)
rows = Path("karlin_altschul.tsv")
rows.write_text(home.with_name(rows.name).read_text().rstrip() + "\\n" + sys.argv[1])
source, before = home.read_text(), "_MATRIX_DIGESTS: Final = {\\n"
assert source.count(before) == 1
scores = np.ascontiguousarray(named_matrix("GONNET1992").scores[:20, :20])
digest = hashlib.sha256(scores.tobytes()).hexdigest()[:16]
Path("parameters.py").write_text(source.replace(before, f'{before}    "{digest}": "GONNET1992",\\n'))
spec = importlib.util.spec_from_file_location("swsearch.scoring.published_parameters", "parameters.py")
sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

from swsearch.cli.app import main

found = {}
for words in (["--gap-open", "14", "--gap-extend", "2"], ["--gap-open", "15", "--gap-extend", "2"]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(["query", "q.fa", "s.fa", "--store", "none", "--matrix", "gonnet1992", *words, "--format", "json"])
    found[words[1]] = json.loads(out.getvalue())
print(json.dumps(found))
"""


def test_published_statistics_of_a_matrix_need_rows_and_a_digest(tmp_path):
    """By hand: what the rows say; other gap costs have no published statistics and are simulated."""
    (tmp_path / "q.fa").write_text(">q\nMKVLAAGIVGLQWERTY\n")
    (tmp_path / "s.fa").write_text(">s\nMKVLAAGIVGLLLAQWERTY\n")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, ROWS], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert (found["14"]["lambda"], found["14"]["k"]) == (0.19, 0.05)
    assert found["14"]["statistics"].endswith("GONNET1992 14/2")
    assert "simulated" in found["15"]["statistics"]
