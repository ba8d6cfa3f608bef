"""Lints the wrapper for Galaxy with Galaxy's own rules, and runs its tests as Galaxy does, without a server.

    python run_tests.py TOOL WORK

The packages galaxy-tool-util, edam-ontology and CT3 are needed, and `swsearch` on PATH. The command of each test is
rendered by Cheetah with the values of the test, or else the defaults of the inputs. Files are named as in Galaxy's
store, ``dataset_1.dat``; the name of an optional one that a test does not give is empty. Outputs are compared by
Galaxy's code for the tests of tools.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from Cheetah.Template import Template
from galaxy.tool_util.lint import lint_tool_source
from galaxy.tool_util.parser import get_tool_source
from galaxy.tool_util.verify import verify
from galaxy.util import xml_macros


def default(parameter: ET.Element) -> str:
    """The value of an input that a test does not give."""
    chosen = parameter.find("option[@selected='true']")
    return parameter.get("value", "") if chosen is None else chosen.get("value", "")


def name(parameter: ET.Element) -> str:
    """The name of an input: the one given, or that of its argument."""
    return parameter.get("name") or parameter.get("argument", "").lstrip("-").replace("-", "_")


class Files:
    """Copies of test data in the folder of a test, with the names of Galaxy's store."""

    def __init__(self, source: Path, store: Path) -> None:
        self._source, self._store, self._n_files = source, store, 0

    def stored(self, parameter: ET.Element, value: str) -> str | list[str]:
        """The path of the file, or a list of paths if the input takes several files."""
        paths = []
        for file in filter(None, value.split(",")):
            self._n_files += 1
            paths.append(str(self._store / f"dataset_{self._n_files}.dat"))
            shutil.copy(self._source / file, paths[-1])
        return paths if parameter.get("multiple") == "true" else "".join(paths)


def values(inputs: ET.Element, given: dict[str, str], files: Files, prefix: str = "") -> dict[str, Any]:
    """The values of all inputs, by their names; conditionals are objects with attributes."""
    found: dict[str, Any] = {name(one): given.get(prefix + name(one), default(one)) for one in inputs.findall("param")}
    for one in inputs.findall("param[@type='data']"):
        found[name(one)] = files.stored(one, found[name(one)])
    for conditional in inputs.findall("conditional"):
        inner = f"{prefix}{conditional.get('name')}|"
        selector = values(conditional, given, files, inner)
        (chosen,) = selector.values()
        (case,) = (case for case in conditional.findall("when") if case.get("value") == chosen)
        found[str(conditional.get("name"))] = types.SimpleNamespace(**selector, **values(case, given, files, inner))
    return found


def run_test(tool: Path, test: dict[str, Any], work: Path) -> None:
    """Run a test of the tool in an empty folder."""
    root = xml_macros.load(tool).getroot()
    given = {one["name"]: one["value"] for one in test["inputs"]}
    unknown = set(given)
    inputs = root.find("inputs")
    assert inputs is not None
    chosen = values(inputs, given, Files(tool.parent / "test-data", work))
    for key in given:
        group, _, member = key.rpartition("|")
        if hasattr(chosen[group], member) if group else member in chosen:
            unknown.discard(key)
    assert not unknown, f"the inputs have no {sorted(unknown)}"
    (output,) = test["outputs"]
    result = work / "dataset_9.dat"
    command = str(Template(root.findtext("command"), searchList=[chosen | {output["name"]: str(result)}]))
    done = subprocess.run(["bash", "-c", " ".join(command.split("\n"))], cwd=work, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stderr.decode())
    folder = tool.parent / "test-data"
    file = output["value"]  # None if the test asserts something of the output
    verify(output["name"], result.read_bytes(), output["attributes"], file, get_filename=lambda it: str(folder / it))


def main() -> None:
    """Lint the tool and run all its tests."""
    tool, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    source = get_tool_source(str(tool))
    if not lint_tool_source(source, name="swsearch"):
        sys.exit("the wrapper has faults")
    tests = source.parse_tests_to_dict()["tests"]
    for number, test in enumerate(tests, start=1):
        folder = work / str(number)
        os.makedirs(folder)
        run_test(tool, test, folder)
    print(f"{len(tests)} tests passed")


if __name__ == "__main__":
    main()
