"""Invalid input and system failures: one clear line, the right exit code, no half-written output, no loss of commits.

The expected messages are written by hand; searches that are stopped are compared with uninterrupted ones.
"""

import re
import resource
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from swsearch.errors import StoreError
from swsearch.output_files import binary_file
from tests.cli.conftest import DATA, QUERIES
from tests.patience import wait_until
from tests.processes import SWSEARCH, in_shell, paused, run_with_file_limit
from tests.tiers import mostly_thorough

BAD_FILES = {
    "empty": (b"", "no sequences"),
    "record without residues": (b">first\nMKV\n>second\n>third\nMKV\n", r"record 2 \(second\)"),
    "digits": (b">first\nMKVL\nAAG7IVG\n", r"record 1 \(first\), line 3, column 4: '7'"),
    "UTF-16": ("\ufeff>first\nMKVL\n".encode("utf-16-le"), "UTF-16"),
    "truncated gzip": ((DATA / "proteins.fasta.gz").read_bytes()[:200_000], "truncated|ended before|ends"),
    "broken FASTQ": (b"@first\nACGT\n+\nII\n", "bad.fasta"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_and_leave_nothing(swsearch, tmp_path, protein_db, name):
    """Source: hand-made files; the expected words are those that a user needs to find the error in the file."""
    content, words = BAD_FILES[name]
    (tmp_path / "bad.fasta").write_bytes(content)
    for command in (["index", "bad.fasta", "-o", "bad.db"], ["query", "bad.fasta", protein_db]):
        outcome = swsearch(*command)
        assert "bad.fasta" in outcome.refusal
        assert re.search(words, outcome.error), outcome.error
        assert [path.name for path in tmp_path.iterdir()] == ["bad.fasta"]


def test_protein_given_as_dna_names_the_letter_and_the_way_out(swsearch, tmp_path):
    (tmp_path / "p.fasta").write_text(">p\nACGT\nMKVL\n")
    outcome = swsearch("index", "p.fasta", "-o", "p.db", "--alphabet", "dna")
    assert "line 3, column 4: 'L'" in outcome.refusal
    assert "--alphabet protein" in outcome.error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["query", QUERIES, "{db}", "--alphabet", "dna"], "leave --alphabet out"),
        (["query", QUERIES, "nowhere.db"], "nowhere.db"),
        (["query", QUERIES, DATA / "README.md"], "nor a sequence file"),
        (["query", QUERIES, "{db}", "--format", "docx"], "blast6"),
        (["query", QUERIES, "{db}", "--format", "tsv", "--fields", "n_hsps"], "search with --count-hsps"),
        (["query", QUERIES, "{db}", "--out", "no/such/folder/hits.txt"], "no/such/folder"),
        (["query", QUERIES, "{db}", "--store", "no/such/folder/hits.sqlite"], "no/such/folder"),
        (["report", "7"], "hits.sqlite"),
        (["db", "info", "."], "catalogue"),
        (["index", QUERIES, "-o", "{db}"], "exists"),
    ],
)
def test_wrong_arguments_are_one_line_with_advice(swsearch, tmp_path, protein_db, arguments, words):
    outcome = swsearch(*[protein_db if argument == "{db}" else argument for argument in arguments])
    assert words in outcome.refusal
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("catalogue", ["[" * 100_000, '{"segments": [{"n_residues": 1e999}]}'])
def test_a_catalogue_without_sense_is_refused_in_one_line(swsearch, tmp_path, catalogue):
    """Its numbers are read early, for the choice of the engine, and by another function than the whole."""
    (tmp_path / "p.db").mkdir()
    (tmp_path / "p.db" / "catalogue.json").write_text(catalogue)
    assert "p.db cannot be used: catalogue.json" in swsearch("query", QUERIES, "p.db", "--store", "none").refusal


def test_a_signal_at_the_creation_of_an_output_leaves_no_file(tmp_path, monkeypatch):
    """The handler of the signal raises as soon as the file is there, before anybody has its stream."""
    opened = Path.open

    def stopped(path, mode):
        opened(path, mode).close()
        raise SystemExit(143)

    monkeypatch.setattr(Path, "open", stopped)
    with pytest.raises(SystemExit), binary_file(tmp_path / "hits.tsv", "--out"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["query"], ["nonsense"], ["query", "--nonsense"], ["report"]])
def test_wrong_usage_is_one_line_and_exits_with_2(swsearch, arguments):
    outcome = swsearch(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err == outcome.error + "\n"
    assert "swsearch query" in outcome.error or "--help`" in outcome.error


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "a\nb.fa", "-o", "c.db"],
        ["db", "info", "a\nb.db"],
        ["runs", "list", "--store", "a\nb.sqlite"],
        ["db", "export", "p.db", "--out", "a\nb/c.fa"],
    ],
)
def test_a_name_with_a_line_break_is_one_line(swsearch, tmp_path, arguments):
    """The line break of a file name is escaped in the message, so that a script can read errors line by line."""
    (tmp_path / "q.fa").write_text(">q\nMKV\n")
    assert swsearch("index", "q.fa", "-o", "p.db").code == 0
    outcome = swsearch(*arguments)
    assert outcome.code == 1
    (line,) = outcome.err.splitlines()
    assert line.startswith("swsearch: error: ")
    assert "a\\nb" in line


def test_a_closed_pipe_ends_quietly(protein_db, tmp_path):
    """Source: the effect of `head` on a well-behaved program."""
    command = f"swsearch query {QUERIES} {protein_db} --format blast6 --top 500 --store none | head -n 1"
    outcome = in_shell(f"set -o pipefail; {command}", tmp_path)
    assert outcome.returncode == 0
    assert outcome.stdout.count("\n") == 1
    assert "Traceback" not in outcome.stderr
    assert "error" not in outcome.stderr


def test_what_was_printed_before_an_error_is_not_lost():
    """The command ends without the interpreter's finalization, and therefore without its last flush."""
    program = "import swsearch.cli.app as app; app.main = lambda: (print('printed'), 3)[1]; app.run()"
    outcome = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (outcome.returncode, outcome.stdout) == (3, "printed\n")


def test_a_thread_that_is_at_work_ends_its_work(tmp_path):
    program = (
        "import threading, time, pathlib, swsearch.cli.app as app\n"
        "def work(): time.sleep(0.3); pathlib.Path('done').touch()\n"
        "app.main = lambda: threading.Thread(target=work).start() or 0\n"
        "app.run()\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=tmp_path).returncode == 0
    assert (tmp_path / "done").exists()


LOADING = """
from swsearch.cli.start import run

class Pause:
    def find_spec(self, name, *_):
        if name == "swsearch.cli.app":
            pause()

sys.meta_path.insert(0, Pause())
sys.argv[1:] = ["--version"]
run()
"""


@pytest.mark.parametrize(
    ("sent", "code"), mostly_thorough([(signal.SIGINT, 130), (signal.SIGTERM, 143)], (signal.SIGINT, 130))
)
def test_a_signal_while_the_program_is_loaded_ends_it_quietly(sent, code):
    process = paused(LOADING)
    process.send_signal(sent)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (code, "", "")


def test_an_ignored_signal_stays_ignored_while_the_program_is_loaded():
    program = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{LOADING}"
    process = paused(program)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate("\n")
    assert (process.returncode, err) == (0, "")
    assert out.startswith("swsearch ")


def test_the_installed_command_starts_where_signals_are_minded():
    """Source: the project file; `python -m swsearch` uses the same entry point."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["swsearch"] == "swsearch.cli.start:run"
    from swsearch import __main__
    from swsearch.cli import start

    assert __main__.run is start.run


def test_a_full_disk_is_one_line(protein_db, tmp_path):
    """Source: /dev/full, on which every write fails with ENOSPC."""
    with open("/dev/full", "w") as full:
        outcome = subprocess.run(
            [SWSEARCH, "query", QUERIES, protein_db, "--store", "none"],
            check=False, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        )  # fmt: skip
    assert outcome.returncode == 1
    errors = [line for line in outcome.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert "error: stdout: No space left on device; free some space" in errors[0]
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["query", "--store", "none", "--out", "hits.json", "--format", "json"], "hits.json"),
        (["query", "--store", "none", "--out", "hits.parquet", "--format", "parquet", "--top", "500"], "hits.parquet"),
        (["query", "--store", "none", "--out", "hits.sam", "--format", "sam"], tempfile.gettempdir()),
        (["query", "--store", "none", "--out", "/dev/full"], "/dev/full"),
        (["batch", "--store", "none.sqlite", "--events", "/dev/full"], "/dev/full"),
    ],
)
def test_a_file_that_cannot_take_more_is_named_and_not_left(protein_db, tmp_path, arguments, place):
    """Source: the system's limit on a file's size, which has the effect of a full disk, and /dev/full."""
    command, *options = arguments
    limit = resource.RLIM_INFINITY if "/dev/full" in options else 5_000
    outcome = run_with_file_limit([command, QUERIES, protein_db, *options], tmp_path, limit)
    assert outcome.returncode == 1
    assert re.search(f"error: {re.escape(place)}: (File too large|No space left)", outcome.stderr), outcome.stderr
    assert not list(tmp_path.glob("*hits*"))


def holds_a_query(store: Path) -> bool:
    """Return whether the store holds a committed query of its run."""
    from swsearch.store.store import Store

    try:
        with Store(store) as opened:
            return any(run.n_queries for run in opened.runs.all())
    except StoreError:  # the store does not exist yet, or the other process is still creating it
        return False


@pytest.mark.parametrize(
    ("number", "code"),
    mostly_thorough([(signal.SIGINT, 130), (signal.SIGKILL, -9), (signal.SIGTERM, 143)], (signal.SIGKILL, -9)),
)
def test_a_search_that_is_stopped_keeps_its_committed_queries_and_leaves_no_out_file(
    swsearch, spawn, tmp_path, user_store, few_proteins_db, number, code
):
    """Source: the same queries searched without interruption. The last query takes the engine many minutes."""
    (tmp_path / "endless.fasta").write_text(QUERIES.read_text() + ">endless\n" + 5000 * "MKWVTFISLLFLFSSAYSRG" + "\n")
    process = spawn(
        "query", "endless.fasta", few_proteins_db, "--engine", "reference", "--format", "jsonl", "--out", "hits.jsonl"
    )  # fmt: skip
    wait_until(lambda: holds_a_query(user_store) or process.poll() is not None, "the first query")
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == code
    assert "Traceback" not in errors
    assert not (tmp_path / "hits.jsonl").exists()
    state = swsearch("runs", "list").out.splitlines()[1]
    assert "interrupted" in state
    stored = swsearch("report", "latest", "--format", "blast6").out.splitlines()
    whole = swsearch("query", QUERIES, few_proteins_db, "--format", "blast6", "--store", "none").out.splitlines()
    assert stored
    assert stored == whole[: len(stored)]


WITHOUT_DRIVER = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "psycopg":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize(
    "search",
    [
        "from swsearch.cli.app import main; sys.exit(main(['query', sys.argv[1], 'no.db', '--store', sys.argv[2]]))",
        "from swsearch.cli.app import main; sys.exit(main(['allpairs', 'no.db', '--store', sys.argv[2]]))",
        "import swsearch; swsearch.search_database(sys.argv[1], 'no.db', store=sys.argv[2])",
        "import swsearch; swsearch.all_pairs('no.db', store=sys.argv[2])",
    ],
    ids=["query", "allpairs", "search_database", "all_pairs"],
)
def test_a_missing_driver_of_the_store_is_named_before_a_database_is_opened(tmp_path, search):
    """The import is blocked, and there is no such database: its error would come first if it were opened first."""
    store = "postgresql://me:secret@localhost:1/hits"
    command = [sys.executable, "-c", WITHOUT_DRIVER + search, str(QUERIES), store]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert "needs psycopg, which is not installed; `pip install 'swsearch[postgresql]'` adds it" in last
    assert "secret" not in last
    assert list(tmp_path.iterdir()) == []
