"""The examples of workflow systems. Expected: the bytes of the report of a single process.

Snakemake runs its example. Nextflow runs its example where it is installed; elsewhere, the scripts of the processes are
taken from the file and run by bash, with the values that Nextflow would insert.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, PAUSED
from tests.peers import SNAKEMAKE, program
from tests.processes import PAUSE

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SUBJECTS = "few.fasta"
N_SHARES = 3

PROGRAM = """#!/bin/bash
# swsearch; the first attempt of share 2 is killed after its first query.
if [[ " $* " == *" --shard 2/3 "* ]] && mkdir attempted 2>/dev/null; then
    coproc paused {{ exec {python} {paused} "$@" 2>&1; }}
    while read -r line <&"${{paused[0]}}" && [ "$line" != here ]; do :; done
    kill -9 "$paused_PID"
    wait "$paused_PID"
    exit 137
fi
exec {python} -m swsearch "$@"
"""


@pytest.fixture
def folder(tmp_path, few_proteins_db):
    """A folder with the queries and the FASTA of the subjects."""
    shutil.copy(DATA / "queries.fasta", tmp_path)
    shutil.copy(few_proteins_db.with_name("few.fasta"), tmp_path / SUBJECTS)
    return tmp_path


@pytest.fixture
def expected(swsearch, folder):
    """The table of a single process."""
    assert swsearch("index", SUBJECTS, "-o", "single.db", "-q").code == 0
    search = ["query", "queries.fasta", "single.db", "--top", "20", "--format", "blast6", "--store", "none"]
    outcome = swsearch(*search)
    assert len(outcome.out.splitlines()) > 20
    return outcome.out


def with_command(folder: Path, text: str) -> dict[str, str]:
    """Environment in which ``swsearch`` is a script with this text."""
    (folder / "bin").mkdir()
    (folder / "bin" / "swsearch").write_text(text)
    (folder / "bin" / "swsearch").chmod(0o755)
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.peer("snakemake")
def test_a_search_that_snakemake_runs_again_goes_on(folder, expected):
    installed = program("snakemake") or SNAKEMAKE
    (folder / "Snakefile").write_text((EXAMPLES / "snakemake" / "Snakefile").read_text())
    configuration = (EXAMPLES / "snakemake" / "config.yaml").read_text()
    values = {"shares": str(N_SHARES), "database": SUBJECTS, "options": "--top 20"}
    for name, value in values.items():
        configuration, n_changed = re.subn(rf"^{name}: .*$", f"{name}: {value}", configuration, flags=re.MULTILINE)
        assert n_changed == 1
    (folder / "config.yaml").write_text(configuration)
    (folder / "paused.py").write_text(PAUSE + PAUSED.format(moment='Results, "add", 1'))
    environment = with_command(folder, PROGRAM.format(python=sys.executable, paused=folder / "paused.py"))
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    done = subprocess.run(
        [installed, "--cores", "2"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "attempted").is_dir()
    assert "1 query done, 1 was there before, 0 failed" in (folder / "shares" / "2.log").read_text()
    assert (folder / "hits.tsv").read_text() == expected


def processes(workflow: str) -> dict[str, tuple[str, list[str], list[str], str]]:
    """The processes of a Nextflow file: directives, inputs, outputs and script of each."""
    form = (
        r"^process (\w+) \{\n(.*?)^    input:\n(.*?)^    output:\n(.*?)^    script:\n    \"\"\"\n(.*?)^    \"\"\"\n\}$"
    )
    found = re.findall(form, workflow, re.DOTALL | re.MULTILINE)
    return {
        name: (directives, inputs.split("\n"), outputs.split("\n"), script)
        for name, directives, inputs, outputs, script in found
    }


def test_the_scripts_of_the_nextflow_example_give_the_same_table(folder, expected):
    """Each process runs in a folder of its own with links to its inputs, by `bash -ue`, as Nextflow does."""
    workflow = (EXAMPLES / "nextflow" / "main.nf").read_text()
    found = processes(workflow)
    assert list(found) == ["INDEX", "SEARCH", "MERGE"]
    assert workflow.count("process ") == len(found)
    params = dict(re.findall(r"^params\.(\w+) = (.*)$", workflow, re.MULTILINE))
    values = {f"params.{name}": value.strip("'") for name, value in params.items()}
    values |= {"params.shares": str(N_SHARES), "params.options": "--top 20", "task.cpus": "2"}
    environment = with_command(folder, f'#!/bin/bash\nexec {sys.executable} -m swsearch "$@"\n')

    def run(name: str, place: str, **inputs: object) -> list[Path]:
        """Run a process with its inputs, which are files or a value; return its outputs."""
        _, declared, outputs, script = found[name]
        assert [line.split()[1] for line in declared if line] == list(inputs)
        work = folder / "work" / place
        work.mkdir(parents=True)
        filled = dict(values)
        for variable, value in inputs.items():
            files = value if isinstance(value, list) else [value] if isinstance(value, Path) else []
            for file in files:
                (work / file.name).symlink_to(file)
            filled[variable] = " ".join(file.name for file in files) if files else str(value)
        text = re.sub(r"\$\{([\w.]+)\}", lambda used: filled[used[1]], script).replace("\\\\", "\\")
        done = subprocess.run(
            ["bash", "-ue", "-c", text], cwd=work, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        patterns = [shlex.split(line)[1] for line in outputs if line.strip()]
        produced = [sorted(work.glob(pattern)) for pattern in patterns]
        assert all(produced), patterns
        return [path for paths in produced for path in paths]

    (database,) = run("INDEX", "index", fasta=folder / SUBJECTS)
    stores = []
    for share in range(1, N_SHARES + 1):
        stores += run("SEARCH", f"{share}", share=share, queries=folder / "queries.fasta", database=database)
    _, table = run("MERGE", "merge", stores=stores)
    assert table.read_text() == expected


@pytest.mark.peer("nextflow")
def test_nextflow_runs_its_example(folder, expected):
    environment = with_command(folder, f'#!/bin/bash\nexec {sys.executable} -m swsearch "$@"\n')
    asked = ["--queries", "queries.fasta", "--database", SUBJECTS, "--shares", str(N_SHARES), "--options", "--top 20"]
    done = subprocess.run(
        ["nextflow", "run", EXAMPLES / "nextflow" / "main.nf", *asked],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert (folder / "results" / "hits.tsv").read_text() == expected
