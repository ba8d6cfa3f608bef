"""A fork of the server is what a new interpreter is, and its client ends as it ends.

The expected state is that of a new interpreter, which is started in the same way.
"""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from tests.patience import wait_until

STATE = """
import json, os, resource, signal, sys

def stream(name):
    found = getattr(sys, name)
    assert found is getattr(sys, f"__{name}__")
    if found is None:
        return None
    attributes = ("name", "mode", "encoding", "errors", "line_buffering", "write_through")
    return [str(getattr(found, attribute)) for attribute in attributes] + [type(found.buffer).__name__]

def kind_of(number):
    status = os.fstat(number)
    return [status.st_mode, status.st_rdev, status.st_ino if number > 2 else 0]

found = {
    "arguments": sys.argv,
    "path": sys.path,
    "folder": os.getcwd(),
    "environment": {name: value for name, value in os.environ.items() if name not in ("_", "SHLVL")},
    "streams": [stream(name) for name in ("stdin", "stdout", "stderr")],
    "open": {n: kind_of(n) for n in range(40) if os.path.exists(f"/proc/self/fd/{n}") and n != int(os.environ["OUT"])},
    "signals": {n: str(signal.getsignal(n)) for n in range(1, 65)},
    "limits": [resource.getrlimit(kind) for kind in range(16)],
    "umask": os.umask(0),
    "main": sorted(name for name in vars(sys.modules["__main__"]) if name.startswith("__")),
    "flags": str(sys.flags),
}
with open(int(os.environ["OUT"]), "w") as out:
    json.dump(found, out, sort_keys=True)
"""


@pytest.fixture(params=["new", "fork"])
def python(request, fork_server):
    """The interpreter, and its stand-in."""
    return sys.executable if request.param == "new" else str(fork_server.python)


def state(python, script="{}", folder="/", **variables):
    """Return the state of a process that a shell starts, with descriptor 9 for its report."""
    program = '"$PYTHON" -c "$STATE" one "two words" 9> "$REPORT"'
    report = f"{folder}/report"
    environment = {**os.environ, "PYTHON": str(python), "STATE": STATE, "REPORT": report, "OUT": "9", **variables}
    subprocess.run(["bash", "-c", script.format(program)], check=True, cwd=folder, env=environment, timeout=100)
    with open(report) as file:
        found = json.load(file)
    assert found["environment"].pop("PYTHON") == str(python)
    return found


SCRIPTS = {
    "plain": "{}",
    "closed stdin": "{} <&-",
    "closed stdout": "{} >&-",
    "closed stderr": "{} 2>&-",
    "closed stdin and stdout": "{} <&- >&-",
    "closed stdin and stderr": "{} <&- 2>&-",
    "closed stdout and stderr": "{} >&- 2>&-",
    "all closed": "{} <&- >&- 2>&-",
    "a pipe": "echo text | {} | cat",
    "another descriptor": "exec 7</dev/null; {}",
    "in the background": "{} & wait $!",
    "nohup": "trap '' HUP TERM PIPE; {}",
    "limits": "ulimit -f 100; ulimit -n 300; ulimit -c 0; {}",
    "umask": "umask 027; {}",
    "another folder": "cd /usr; {}",
    "both as one": "{} > /dev/null 2>&1",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_fork_begins_like_an_interpreter(fork_server, tmp_path, script):
    expected, found = (state(python, script, tmp_path) for python in (sys.executable, fork_server.python))
    assert found == expected


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONUNBUFFERED": ""},
        {"PYTHONUNBUFFERED": "1"},
        {"LC_ALL": "POSIX"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONUTF8": "1"},
        {"PYTHONWARNINGS": "error"},
        {"OPENBLAS_NUM_THREADS": "2", "ANY": "value=1"},
    ],
)
def test_the_environment_has_the_effect_that_it_has_on_an_interpreter(fork_server, tmp_path, variables):
    expected, found = (state(python, "{}", tmp_path, **variables) for python in (sys.executable, fork_server.python))
    assert found == expected


@pytest.mark.parametrize("variables", [{"LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_server_of_another_environment_forks_for_it(fork_servers, tmp_path, variables):
    expected = state(sys.executable, "{}", tmp_path, **variables)
    assert state(fork_servers(**variables).python, "{}", tmp_path, **variables) == expected


def test_a_program_is_a_fork_unless_its_environment_needs_an_interpreter(fork_server):
    program = "import sys; print('swsearch.cli.app' in sys.modules)"

    def forked(**variables):
        command = [fork_server.python, "-c", program]
        environment = {**os.environ, **variables}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    assert forked() == "True\n"
    assert forked(ANY="value") == "True\n"
    assert forked(LC_ALL="POSIX", PYTHONUTF8="0") == "False\n"


ENDS = {
    "pass": 0,
    "import sys; sys.exit(7)": 7,
    "import sys; sys.exit('text')": 1,
    "raise ValueError('text')": 1,
    "import os; os._exit(130)": 130,
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": -signal.SIGTERM,
    "import os; os.abort()": -signal.SIGABRT,
    "raise KeyboardInterrupt": -signal.SIGINT,
    "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); print('text')": 120,
    "print('text')": 0,
    "import atexit; atexit.register(print, 'text')": 0,
    "import threading; threading.Timer(0.1, print, ['text']).start()": 0,
    "not a program": 1,
}


@pytest.mark.parametrize(("program", "code"), ENDS.items(), ids=ENDS)
def test_a_process_ends_as_its_program_ends(fork_server, python, program, code):
    """By hand: the exit codes and signals, and the text that is printed before the end."""
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    outcome = subprocess.run(
        [python, "-c", program], check=False, capture_output=True, text=True, env=buffered,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    )  # fmt: skip
    assert outcome.returncode == code
    printed = outcome.stdout + outcome.stderr
    assert ("text" in printed) == ("'text'" in program and "/dev/full" not in program)
    with fork_server.popen(["-c", program], env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as fork:
        out, err = fork.communicate()
    assert (fork.returncode, out) == (code, outcome.stdout)
    assert err.splitlines()[-1:] == outcome.stderr.splitlines()[-1:]


def test_a_command_is_the_command(fork_server, tmp_path):
    (tmp_path / "q.fa").write_text(">q\nMKV\n")
    commands = (["--version"], ["nonsense"], ["index", "q.fa", "-o", "a.db"], ["db", "export", "a.db"])
    for name in commands:
        expected, found = (
            subprocess.run([*program, *name], check=False, capture_output=True, cwd=tmp_path)
            for program in ([sys.executable, "-m", "swsearch"], [fork_server.swsearch])
        )
        if name[0] == "index":
            expected = found  # the database exists the second time
            assert b"a.db exists" in found.stderr
        assert (found.returncode, found.stdout, found.stderr) == (
            expected.returncode, expected.stdout, expected.stderr,
        )  # fmt: skip


WAITING = """
import os, signal, sys, time
def told(number, _):
    os.write(1, b"%d\\n" % number)  # the signal may arrive in a call of print, which must not be entered again
    sys.exit(3)
signal.signal(signal.SIGUSR1, told)
signal.signal(signal.SIGTERM, told)
os.write(1, b"ready\\n")
while True:
    time.sleep(10)
"""


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGUSR1, 3), (signal.SIGTERM, 3), (signal.SIGINT, -signal.SIGINT), (signal.SIGHUP, -signal.SIGHUP)],
)
def test_a_client_passes_signals_on(python, sent, code):
    with subprocess.Popen(
        [python, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),  # noqa: PLW1509 - under nohup the tests ignore SIGHUP
    ) as client:  # fmt: skip
        assert client.stdout.readline() == "ready\n"
        client.send_signal(sent)
        out, _ = client.communicate()
    assert client.returncode == code
    assert out == (f"{int(sent)}\n" if code == 3 else "")


def test_a_process_dies_with_its_client(fork_server):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    with subprocess.Popen([fork_server.python, "-c", program], stdout=subprocess.PIPE, text=True) as client:
        process = int(client.stdout.readline())
        assert process != client.pid
        client.kill()
        client.communicate()
    wait_until(lambda: not os.path.exists(f"/proc/{process}"), "the end of the process")


def test_a_fork_is_known_by_its_id_and_gone_when_it_was_waited_for(fork_server):
    with fork_server.popen(
        ["-c", "import os; print(os.getpid(), input(), flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as fork:  # fmt: skip
        fork.stdin.write("one\n")
        fork.stdin.flush()
        assert fork.stdout.readline() == f"{fork.pid} one\n"
        assert fork.poll() is None
        fork.kill()
        assert fork.wait() == -signal.SIGKILL
    assert not os.path.exists(f"/proc/{fork.pid}")
    assert fork.poll() == -signal.SIGKILL
    fork.send_signal(signal.SIGTERM)  # to none, because the id may belong to another process


def test_forks_change_nothing_for_each_other(fork_server):
    for _ in range(2):
        program = "import os, swsearch.words as words; print(words.counted(1, 'x')); words.counted = None; os.close(0)"
        assert subprocess.check_output([fork_server.python, "-c", program]) == b"1 x\n"


def test_a_client_without_a_server_fails(fork_server, tmp_path):
    for name in ("python", "swsearch"):
        (tmp_path / name).hardlink_to(fork_server.folder / name)
        outcome = subprocess.run([tmp_path / name, "-c", "pass"], check=False, capture_output=True, text=True)
        assert outcome.returncode == 98
        assert "the client of the fork server" in outcome.stderr
