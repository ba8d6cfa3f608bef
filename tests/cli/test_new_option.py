"""The recipe "Add a search option" of CONTRIBUTING: a row of the table and a field are seen everywhere.

The recipe is carried out in another process, on the sources as they are imported there; no file is changed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = {
    "swsearch.options": (
        "    # --- machine ---\n",
        '    Option("max_score", int, FILTERS, SEARCHES, label="Maximum raw score", range=_COUNT,'
        ' help="Maximum raw score of a subject."),\n'
        "    # --- machine ---\n",
    ),
    "swsearch.search.options": (
        "    min_bits: float | None = None\n",
        "    min_bits: float | None = None\n    max_score: int | None = None\n",
    ),
}
"""What is replaced in each module, as the recipe says."""

PROGRAM = """
import importlib.util, json, os, sys
from pathlib import Path

for name, (old, new) in json.loads(sys.argv[1]).items():
    spec = importlib.util.find_spec(name)
    source = Path(spec.origin).read_text()
    assert source.count(old) == 1, name
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    exec(compile(source.replace(old, new), spec.origin, "exec"), module.__dict__)

import contextlib, io
from swsearch.cli.app import main
from swsearch.errors import SwSearchError
from swsearch.search.options import SearchOptions


def said(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(list(words))
    return out.getvalue() + err.getvalue()


Path("config.toml").write_text("max_score = 70\\n")
os.environ["SWSEARCH_CONFIG"] = "config.toml"
found = {
    "help": said("query", "--help"),
    "configuration": json.loads(said("config", "query", "--format", "json"))["options"],
    "unknown": said("allpairs", "none.db", "--max-score", "3"),
    "taken": SearchOptions(max_score=60).as_parameters()["max_score"],
}
try:
    SearchOptions(max_score=0)
except SwSearchError as error:
    found["python"] = str(error)
if sys.argv[2] == "service":
    from swsearch.service.api_models import SearchRequest
    from swsearch.service.pages.form import SearchForm, form_fields
    from swsearch.service.settings import ServerLimits
    from swsearch.service.submit import search_options

    found["form"] = [form_fields()["max_score"].row.label, form_fields()["max_score"].group]
    form = SearchForm(values={"max_score": "0"})
    form.options()
    found["form_error"] = form.errors["max_score"]
    found["api"] = SearchRequest.model_json_schema()["properties"]["options"]["properties"]["max_score"]
    found["api_value"] = search_options({"max_score": 60}, ServerLimits()).max_score
sys.path.insert(0, sys.argv[3])
import commands

found["page"] = commands.command_pages()["commands/swsearch-query.md"]
print(json.dumps(found))
"""


def carried_out(folder, what):
    command = [sys.executable, "-c", PROGRAM, json.dumps(STEPS), what, str(ROOT / "docs" / "site")]
    ended = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_a_new_option_needs_a_row_and_a_field(tmp_path):
    """By hand: what the row says, wherever options are offered, read, checked or described."""
    found = carried_out(tmp_path, "program")
    assert "--max-score N" in found["help"]
    assert "Maximum raw score of a subject." in found["help"]
    (row,) = [one for one in found["configuration"] if one["option"] == "--max-score"]
    assert (row["value"], row["source"]) == (70, "file")
    assert found["taken"] == 60
    problem = "choose a whole number, 1 to 2,147,483,647"
    assert found["python"] == f"max_score=0: {problem}"
    assert "no such option: --max-score" in found["unknown"]
    assert "Maximum raw score of a subject." in found["page"]


def test_a_new_option_is_one_of_the_service(tmp_path):
    """By hand: the form and the API have it without a line of their own."""
    pytest.importorskip("fastapi")
    found = carried_out(tmp_path, "service")
    assert found["form"][0] == "Maximum raw score"
    assert found["form_error"] == "Choose a whole number, 1 to 2,147,483,647"
    assert found["api"] == {"description": "Maximum raw score of a subject.", "default": None}
    assert found["api_value"] == 60
