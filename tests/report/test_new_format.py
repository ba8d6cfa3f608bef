"""The recipe "Add a report format" of CONTRIBUTING: a row of the table and a module are seen everywhere.

The recipe is carried out in another process, on the sources as they are imported there; no file is changed.
"""

import json
import subprocess
import sys

import pytest

ROW = 'Format("lengths", "lengths.LengthsReport", "Lengths of the hits", _TEXT, ending=".len", suffixes=(".len",)),'
MODULE = '''
"""``lengths``: for each hit, the lengths of query and subject."""

from swsearch.report.base import Report


class LengthsReport(Report):
    def begin(self, run):
        super().begin(run)
        self.stream.write(f"{run.database.name}\\n")

    def write(self, query):
        self.stream.writelines(f"{query.length} {hit.subject_length}\\n" for hit in query.hits)
'''
PROGRAM = """
import contextlib, importlib.util, io, json, os, sys, types
from pathlib import Path

row, source = json.loads(sys.argv[1])
spec = importlib.util.find_spec("swsearch.report.formats")
table = Path(spec.origin).read_text()
before = '    Format("sto", '
assert table.count(before) == 1
sys.modules["swsearch.report.formats"] = formats = importlib.util.module_from_spec(spec)
exec(compile(table.replace(before, f"    {row}{before.strip()} "), spec.origin, "exec"), formats.__dict__)
sys.modules["swsearch.report.lengths"] = module = types.ModuleType("swsearch.report.lengths")
exec(source, module.__dict__)

import swsearch
from swsearch.cli.app import main


def said(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(list(words))
    return out.getvalue() + err.getvalue()


query = ["query", "q.fa", "s.fa", "--top", "1", "--threads", "1", "--store", "hits.sqlite", "--quiet"]
found = {
    "help": " ".join(said("query", "--help").split()),
    "query": said(*query, "--format", "lengths"),
    "report": said("report", "latest", "--store", "hits.sqlite", "--format", "lengths"),
    "suggested": said(*query, "--out", "found.len") + Path("found.len").read_text(),
    "refused": said(*query, "--format", "lengths", "--width", "60"),
}
swsearch.write_report(swsearch.search_database("q.fa", "s.fa"), "python.len", "lengths")
found["python"] = Path("python.len").read_text()
from swsearch.cli.completion import formats as completed

found["completed"] = [name for name in completed(None, [], "len") if name.startswith("len")]
if sys.argv[2] == "service":
    from swsearch.service.json_api import router
    from swsearch.service.reports import offered_formats
    from swsearch.store.store import Store

    with Store("hits.sqlite") as store:
        found["menu"] = dict(offered_formats(store.runs.get(1).info))["lengths"]
    (route,) = [one for one in router.routes if one.path.endswith("/report")]
    (parameter,) = [one for one in route.dependant.query_params if one.name == "format"]
    found["api"] = parameter.field_info.json_schema_extra["enum"]
print(json.dumps(found))
"""


def carried_out(folder, what):
    (folder / "q.fa").write_text(">q\nMKVLAAGIVGLQWERTY\n")
    (folder / "s.fa").write_text(">s\nMKVLAAGIVGLLLAQWERTY\n")
    command = [sys.executable, "-c", PROGRAM, json.dumps([ROW, MODULE]), what]
    ended = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_a_new_format_needs_a_row_and_a_module(tmp_path):
    """By hand: what the row says, wherever formats are offered, and what the class writes."""
    found = carried_out(tmp_path, "program")
    assert "a3m, lengths, sto" in found["help"]
    assert found["query"] == found["report"] == found["python"] == "s.fa\n17 20\n"
    assert found["suggested"] == found["query"]
    assert "format lengths has lines of any length; give --width with --format table" in found["refused"]
    assert found["completed"] == ["lengths"]


def test_a_new_format_is_a_download_of_the_service(tmp_path):
    """By hand: the menu and the API have it without a line of their own."""
    pytest.importorskip("fastapi")
    found = carried_out(tmp_path, "service")
    assert found["menu"] == "Lengths of the hits"
    assert "lengths" in found["api"]
