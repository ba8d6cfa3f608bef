"""Signals at any moment of any command, and standard streams that are closed at the start or during the command.

SIGINT ends a command with 130 and SIGTERM with 143, with nothing half-written, no leftover files and no traceback.
SIGHUP ends it by the system's default action and leaves the same state as a kill. SIGPIPE alone has no effect, because
the command handles a reader that has ended as a write error.
"""

import os
import signal
import time

import pytest

from tests.campaign import faults
from tests.campaign.commands import NAMES, NEW, OLD, SEARCH, DatabaseCommand, judge, prepared
from tests.campaign.faults import Fault
from tests.campaign.program import Done, forked, run, started
from tests.campaign.trials import Trial, told

pytestmark = [pytest.mark.thorough, pytest.mark.peer("gcc")]

SENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: -signal.SIGHUP}
PRINTING = (
    ("query", "q.fa", "base.db", "--store", "none", "--format", "blast6", *SEARCH),
    ("query", "q.fa", "base.db", "--store", "none", "--format", "pairwise", *SEARCH),
    ("report", "latest", "--store", "hits.sqlite", "--format", "json"),
    ("db", "export", "base.db"),
    ("db", "info", "base.db"),
    ("db", "verify", "base.db"),
    ("runs", "list", "--store", "hits.sqlite"),
    ("runs", "show", "latest", "--store", "hits.sqlite"),
    ("align", "q.fa", "q.fa", "--format", "pairwise", "--quiet"),
    ("engines",),
    ("--help",),
    ("--version",),
)


@pytest.mark.campaign(46, 800)
def test_a_signal_ends_a_command_with_its_code_and_leaves_nothing(trial: Trial) -> None:
    """At a system call, or at a random time of a fork or of the installed command."""
    name = NAMES[trial.number % len(NAMES)]
    sent = SENT[(trial.number // len(NAMES)) % len(SENT)]
    command, folder = prepared(trial, name)
    way = trial.rng.randrange(3)
    if way == 0:
        call = trial.rng.randint(1, command.calls)
        done = run(command.arguments, folder, Fault(call, faults.SIGNAL, sent))
        how = f"{name}, {sent.name} at call {call} of {command.calls}, {done.what}"
    else:
        process = (forked if way == 1 else started)(command.arguments, folder)
        time.sleep(trial.rng.random() * (command.seconds + (1.5 if way == 2 else 0)))
        process.signal(sent)
        done = process.wait()
        how = f"the {'forked' if way == 1 else 'installed'} {name}, {sent.name} at a random time"
    if done.began:
        with told(how):
            check_end(done, sent, in_interpreter=way != 1)
            if done.code in (130, 143) and isinstance(command, DatabaseCommand):
                assert not command.leftovers(folder)
    state = judge(command, folder, how)
    assert done.began or state == OLD, f"{how}: the program had not begun"
    assert done.code != 0 or state == NEW, f"{how}: exit code 0, but the state is {state}"


def check_end(done: Done, sent: signal.Signals, *, in_interpreter: bool) -> None:
    """Check the exit code and the messages."""
    if done.code == 0:
        return
    if in_interpreter and sent is signal.SIGPIPE and done.code == -signal.SIGPIPE:
        return  # before the interpreter set SIGPIPE to be ignored
    if in_interpreter and done.code != CODES.get(sent) and (done.code < 0 or "start.py" not in done.text):
        return  # before the program was reached: the interpreter reports the signal and ends
    assert done.code == CODES.get(sent), f"exit code {done.code}: {done.text[-300:]}"
    assert "Traceback" not in done.text, done.text[-600:]


@pytest.mark.campaign(2, 330)
def test_closed_streams_change_no_file_and_only_printing_needs_stdout(trial: Trial) -> None:
    closed = [stream for stream in range(3) if trial.number % 7 + 1 & 1 << stream]
    which = (trial.number // 7) % (len(NAMES) + len(PRINTING))
    is_printing = which >= len(NAMES)
    command, folder = prepared(trial, "query" if is_printing else NAMES[which])
    arguments = PRINTING[which - len(NAMES)] if is_printing else command.arguments
    done = started(arguments, folder, closed=closed).wait()
    how = f"`{' '.join(arguments)}` with streams {closed} closed: exit code {done.code}: {done.text[-600:]}"
    assert done.code in (0, 1), how
    assert "Traceback" not in done.text, how
    if is_printing:
        assert (done.code, bool(done.out)) == ((1, False) if 1 in closed else (0, True)), how
    else:
        state = judge(command, folder, how)
        assert done.code != 0 or state == NEW, how


@pytest.mark.campaign(2, 330)
def test_a_reader_that_goes_ends_a_command_quietly(trial: Trial) -> None:
    """The reader closes the pipe of stdout after some bytes."""
    arguments = PRINTING[trial.number % len(PRINTING)]
    folder = prepared(trial, "query")[1]
    n_bytes = trial.rng.choice((0, 1, 10, 100, 1000, 5000))
    pipe = trial.folder / "pipe"
    os.mkfifo(pipe)
    process = started(arguments, folder, stdout=pipe)
    with open(pipe, "rb", buffering=0) as reader:
        left = n_bytes
        while left and (got := reader.read(left)):
            left -= len(got)
    done = process.wait()
    how = f"`{' '.join(arguments)}`, its reader gone after {n_bytes} bytes: exit code {done.code}: {done.text[-600:]}"
    assert done.code in (0, 141, -signal.SIGPIPE), how
    assert "Traceback" not in done.text, how
    assert not done.errors, how
