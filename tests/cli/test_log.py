"""The log of a command has what the command said, how it ended, and no secrets, also where the process is killed.

The lines are compared with what the same process printed on stderr; processes are real ones, and are really killed.
"""

import re
import signal
import subprocess
import sys
from datetime import datetime

import pytest

from swsearch.cli import output
from swsearch.cli.output import ProgressReport, quietly
from swsearch.command_log import close_log, open_log
from tests.cli.conftest import QUERIES
from tests.cli.test_progress import Clock
from tests.service.servers import RunningServer

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d) (DEBUG|INFO|WARNING|ERROR) (\d+) (.*)")


def entries(path):
    """The lines of a log as level, process id and message; each line has a time with its offset from UTC."""
    text = path.read_text()
    assert text.endswith("\n")
    found = []
    for line in text.splitlines():
        parts = LINE.fullmatch(line)
        assert parts is not None, line
        assert datetime.fromisoformat(parts[1]).tzinfo is not None
        found.append((parts[2], int(parts[3]), parts[4]))
    return found


def messages(path):
    return [message for _, _, message in entries(path)]


def said(outcome_error):
    """The messages on stderr."""
    return [line.removeprefix("swsearch: ") for line in outcome_error.splitlines()]


def test_a_log_has_the_command_what_was_said_and_the_end(spawn, tmp_path, few_proteins_db):
    words = ["query", str(QUERIES), str(few_proteins_db), "--log", "my log.txt", "--out", "hits.txt"]
    for n_commands in (1, 2):
        process = spawn(*words)
        _, errors = process.communicate()
        assert process.returncode == 0
        found = entries(tmp_path / "my log.txt")
        mine = [(level, message) for level, pid, message in found if pid == process.pid]
        assert mine[0][1].startswith("swsearch ")
        assert "Python" in mine[0][1]
        assert mine[0][1].endswith(f", in {tmp_path}")
        assert mine[1][1] == f"command: swsearch query {QUERIES} {few_proteins_db} --log 'my log.txt' --out hits.txt"
        assert len(said(errors)) > 1
        assert set(said(errors)) <= {message for _, message in mine}
        assert any(message.startswith("database few.db: protein, 60 sequences, ") for _, message in mine)
        assert mine[-1][0] == "INFO"
        assert re.fullmatch(r"exit code 0 after \d+\.\d{3} s", mine[-1][1])
        assert sum(message.startswith("exit code") for _, _, message in found) == n_commands


def test_the_option_stands_anywhere_and_has_defaults(swsearch, tmp_path, monkeypatch, few_proteins_db):
    """By hand: command line, environment, table of the command, and keys outside of tables, in this order."""
    info = ["db", "info", few_proteins_db]
    commands = {
        "first": ["--log", "first.log", *info],
        "debug": ["--log=debug.log", "--debug", *info],
        "between": ["db", "--log", "between.log", "info", few_proteins_db],
        "behind": ["db", "info", "--log", "behind.log", few_proteins_db],
        "last": [*info, "--log=last.log"],
        "blast": [*info, "-logfile", "blast.log"],
        "dash": [*info, "-log", "dash.log"],
    }
    for name, words in commands.items():
        assert swsearch(*words).code == 0
        assert messages(tmp_path / f"{name}.log")[-1].startswith("exit code 0")
    (tmp_path / "mine.toml").write_text("log = 'file.log'\n[db.info]\nlog = 'table.log'\n")
    monkeypatch.setenv("SWSEARCH_CONFIG", str(tmp_path / "mine.toml"))
    assert swsearch(*info).code == 0
    assert swsearch("engines").code == 0
    assert swsearch("bench", "kernels", "--nothing").code == 2
    monkeypatch.setenv("SWSEARCH_LOG", "environment.log")
    assert swsearch(*info).code == 0
    assert swsearch(*info, "--log", "line.log").code == 0
    commands_of = {
        name: [one for one in messages(tmp_path / f"{name}.log") if one.startswith("command: ")]
        for name in ("file", "table", "environment", "line")
    }
    assert [len(found) for found in commands_of.values()] == [2, 1, 1, 1]
    assert commands_of["file"][0] == "command: swsearch engines"
    assert "SWSEARCH_LOG" not in swsearch("config").err


def test_quiet_commands_log_what_they_do_not_say(swsearch, tmp_path, few_proteins_db):
    loud = swsearch("query", QUERIES, few_proteins_db, "--top", "1", "--log", "loud.log")
    quiet = swsearch("query", QUERIES, few_proteins_db, "--top", "1", "--log", "quiet.log", "-q")
    assert quiet.err == ""
    assert quiet.out == loud.out
    first, second = (messages(tmp_path / name)[2:-1] for name in ("loud.log", "quiet.log"))
    assert first[:-1] == second[:-1]
    assert (first[-1][:16], second[-1][:16]) == ("stored as run 1 ", "stored as run 2 ")


def test_a_batch_logs_its_summary(swsearch, tmp_path, few_proteins_db):
    outcome = swsearch("batch", QUERIES, few_proteins_db, "--log", "b.log", "--store", "h.sqlite")
    assert outcome.out.strip() in messages(tmp_path / "b.log")


def test_wrong_usage_and_expected_errors_are_one_line(swsearch, tmp_path, few_proteins_db):
    for code, *words in (
        (2, "query", QUERIES, few_proteins_db, "--nothing"),
        (2, "qurey"),
        (1, "query", "missing.fasta", few_proteins_db),
    ):
        outcome = swsearch("--log", f"{code}.log", *words)
        assert outcome.code == code
        found = entries(tmp_path / f"{code}.log")
        assert ("ERROR", outcome.error.removeprefix("swsearch: ")) in [(level, text) for level, _, text in found]
        assert found[-1][0] == "ERROR"
        assert found[-1][2].startswith(f"exit code {code} after ")
        assert not any("Traceback" in text for _, _, text in found)


def test_unexpected_errors_have_their_traceback(swsearch, tmp_path, few_proteins_db):
    """A full disk is one line on stderr, a bug is Python's traceback there; the log has both tracebacks."""
    full = swsearch("query", QUERIES, few_proteins_db, "--out", "/dev/full", "--log", "full.log")
    assert "No space left on device" in full.error
    found = messages(tmp_path / "full.log")
    assert "Traceback (most recent call last):" in found
    assert full.error.removeprefix("swsearch: ") in found
    code = (
        "import sys, threading\nfrom swsearch.cli import app, bench\n"
        "def bug():\n    raise ValueError('two\\nlines')\n"
        "def failing():\n    thread = threading.Thread(target=bug)\n    thread.start()\n    thread.join()\n    1 / 0\n"
        "bench.engines = failing\nsys.exit(app.main(sys.argv[1:]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "engines", "--log", "bug.log"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 1
    found = messages(tmp_path / "bug.log")
    assert found.count("Traceback (most recent call last):") == ran.stderr.count("Traceback") == 2
    assert "unexpected error of a thread" in found
    assert {"ValueError: two", "lines", "ZeroDivisionError: division by zero"} <= set(found)
    assert found[-1].startswith("exit code 1 after ")


@pytest.mark.parametrize(
    ("sent", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated by SIGTERM")]
)
def test_an_interrupted_command_logs_its_end(spawn_paused, tmp_path, few_proteins_db, sent, code, word):
    words = ["batch", QUERIES, few_proteins_db, "--store", "h.sqlite", "--log", "run.log"]
    process = spawn_paused('Results, "add", 3', *words)
    process.send_signal(sent)
    _, errors = process.communicate()
    assert process.returncode == code
    found = messages(tmp_path / "run.log")
    assert set(said(errors)) <= set(found)
    assert any("keeps 2 of 7 queries and is marked interrupted" in message for message in found)
    assert word in found
    assert found[-1].startswith(f"exit code {code} after ")


def test_a_killed_command_leaves_whole_lines_and_no_end(spawn_paused, tmp_path, few_proteins_db):
    process = spawn_paused(
        'Results, "add", 3', "batch", QUERIES, few_proteins_db, "--store", "h.sqlite", "--log", "run.log"
    )
    process.kill()
    process.communicate()
    found = messages(tmp_path / "run.log")
    assert found[1].startswith("command: swsearch batch ")
    assert any("engine" in message for message in found)
    assert not any(message.startswith("exit code") for message in found)


def test_a_file_that_cannot_be_a_log_is_refused_before_any_work(swsearch, tmp_path, few_proteins_db):
    (tmp_path / "folder").mkdir()
    (tmp_path / "q.fa").write_text(QUERIES.read_text())
    assert swsearch("query", "q.fa", few_proteins_db, "-q", "--store", "hits.sqlite").code == 0
    (tmp_path / "old.txt").write_text("a report\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name, reason in {
        "folder": "Is a directory; choose another file",
        "nowhere/x.log": "No such file or directory; choose another file",
        "-": "a log is a file",
        "/dev/stderr": "a log is a file",
        "/dev/fd/1": "a log is a file",
        "x.log.gz": "which no archive can take; choose a name without .gz",
        "q.fa": "names this file for something else, too",
        "out.txt": "names this file for something else, too",
        "./out.txt": "names this file for something else, too",
        "hits.sqlite": "is an SQLite database",
        "old.txt": "this file is not a log of swsearch, and would be changed; choose another",
        f"{few_proteins_db}/x.log": "lies in the packed database",
        "": "a log is a file",
    }.items():
        outcome = swsearch("query", "q.fa", few_proteins_db, "--out", "out.txt", "--store", "none", "--log", name)
        assert f"--log {name}" in outcome.refusal
        assert reason in outcome.error
        assert outcome.err.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_an_output_never_replaces_the_log(swsearch, tmp_path, monkeypatch, few_proteins_db):
    """The command line does not show all names: a share takes its place in some, others are configured or URLs."""
    words = ["batch", QUERIES, few_proteins_db, "--shard", "1/2", "--log"]
    configuration = tmp_path / "config.toml"
    (tmp_path / "empty.toml").touch()
    configuration.write_text('[batch]\nout = "configured.txt"\nformat = "blast6"\n')
    for log, others, option in (
        ("x-{shard}.txt", ["--format", "blast6", "--out", "x-{shard}.txt"], "--out x-1-of-2.txt"),
        ("s-{shard}", ["--store", "s-{shard}"], "--store s-1-of-2"),
        ("url.txt", ["--store", "sqlite:///url.txt"], "--store url.txt"),
        ("configured.txt", [], "--out configured.txt"),
    ):
        monkeypatch.setenv("SWSEARCH_CONFIG", str(configuration) if not others else str(tmp_path / "empty.toml"))
        outcome = swsearch(*words, log, *others)
        assert (outcome.code, outcome.out) == (1, "")
        problem = f"error: {option}: --log writes the same file; choose another for one of them"
        assert said(outcome.err) == [problem]
        found = entries(tmp_path / log.replace("{shard}", "1-of-2"))
        assert found[-2][2] == problem
        assert found[-1][2].startswith("exit code 1 after")


def test_a_log_that_cannot_be_written_any_more_ends_alone(swsearch, few_proteins_db):
    outcome = swsearch("query", QUERIES, few_proteins_db, "--top", "1", "--log", "/dev/full")
    assert outcome.code == 0
    assert outcome.err.count("No space left on device; the log ends here") == 1
    assert outcome.out == swsearch("query", QUERIES, few_proteins_db, "--top", "1").out


def test_no_secret_is_logged(swsearch, tmp_path, few_proteins_db, monkeypatch):
    token = "sws_0123456789abcdefghijklmnopqrstuv"
    monkeypatch.setenv("SWSEARCH_TOKEN", token)
    url = "http://me:hunter2@127.0.0.1:9"
    swsearch("query", QUERIES, "p.db", "--server", url, "--log", "s.log")
    swsearch("runs", "list", "--store", "postgresql://me:hunter/3@127.0.0.1:9/h?sslpassword=deep", "--log", "s.log")
    swsearch("runs", "list", "--store", "mysql://me:hunter2@127.0.0.1/h", "--log", "s.log")
    swsearch("report", token, "--log", "s.log")
    swsearch("query", QUERIES, "s3://b/p.db?X-Amz-Signature=hunter2", "--log", "s.log")
    swsearch("query", QUERIES, "s3://b/p.db?aws_secret_access_key=hunter2&client_secret=deep", "--log", "s.log")
    text = (tmp_path / "s.log").read_text()
    assert len(re.findall("exit code [12] after", text)) == 6
    assert "http://me:***@127.0.0.1:9" in text
    for secret in ("hunter2", "hunter/3", "deep", "0123456789abcdef"):
        assert secret not in text


def test_records_of_several_processes_do_not_mix(tmp_path):
    """Each of four processes appends 300 records of 40 lines; those of a record stand together."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom swsearch.command_log import append, open_log\n"
        "open_log(Path('one.log'), print)\nsys.stdin.readline()\n"
        "for number in range(300):\n"
        "    append('\\n'.join(f'{number} {line} ' + 'x' * 200 for line in range(40)))\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    found = entries(tmp_path / "one.log")
    assert len(found) == 4 * 300 * 40
    for at in range(0, len(found), 40):
        block = found[at : at + 40]
        assert len({pid for _, pid, _ in block}) == 1
        assert [message.split()[1] for _, _, message in block] == [str(line) for line in range(40)]
        assert len({message.split()[0] for _, _, message in block}) == 1


def test_progress_is_logged_in_plain_lines_whatever_stderr_shows(tmp_path, monkeypatch, capsys):
    """Hand calculation: 30 of 100 billion units in 6 s are 5.0 billion a second, and 70 billion are left for 14 s."""
    clock = Clock()
    monkeypatch.setattr(output, "time", clock)
    open_log(tmp_path / "p.log", print)
    try:
        with quietly(True), ProgressReport("searching", 100_000_000_000, "GCUPS", 1e9) as report:
            report.advance(0)
            clock.now += 6
            report.advance(30_000_000_000)
    finally:
        close_log()
    assert messages(tmp_path / "p.log") == ["searching: 30.0 % done, 5.0 GCUPS, 14 s left"]
    assert capsys.readouterr().err == ""


@pytest.mark.thorough
def test_a_service_logs_the_lines_of_all_its_processes(tmp_path, few_proteins_db):
    """Source: the JSON lines that server and worker wrote on stderr."""
    with RunningServer(tmp_path, [few_proteins_db], "--log", "service.log") as server:
        assert server.request("/api/v1/databases").status == 200
    found = messages(tmp_path / "service.log")
    printed = [line["event"] for line in server.log if line["event"] != "text"]
    logged = [message for message in found if message.startswith("{")]
    assert len(printed) == len(logged) >= 2
    assert sum("server started" in message for message in logged) == 1
    commands = [message for message in found if message.startswith("command: swsearch ")]
    assert sorted(message.split()[2] for message in commands) == ["serve", "worker"]
    assert sum(message.startswith("exit code 0") for message in found) == 2
