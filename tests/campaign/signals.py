"""Signals at any moment of any command, and standard streams that are closed at the start or during the command.

SIGINT ends a command with 130 and SIGTERM with 143, with nothing half-written, no leftover files and no traceback.
SIGHUP ends it by the system's default action and leaves the same state as a kill. SIGPIPE alone has no effect, because
the command handles a reader that has ended as a write error.
"""

import os
import signal
import time

from tests.campaign import faults
from tests.campaign.commands import NEW, OLD, SEARCH, DatabaseCommand, prepared
from tests.campaign.disks import NAMES
from tests.campaign.faults import Fault
from tests.campaign.kills import judge as judge_kill
from tests.campaign.processes import Done, forked, started
from tests.campaign.trials import Trial

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


def signals(trial: Trial) -> None:
    """Send one signal to one command, at a system call or at a random time."""
    name = NAMES[trial.number % len(NAMES)]
    sent = SENT[(trial.number // len(NAMES)) % len(SENT)]
    command, folder = prepared(trial, name)
    way = trial.rng.randrange(3)
    if way == 0:
        call = trial.rng.randint(1, command.calls)
        done = forked(command.arguments, folder, Fault(call, faults.SIGNAL, sent)).wait()
        how = f"{name}, {sent.name} at call {call} of {command.calls}, {done.what}"
    elif way == 1:
        process = forked(command.arguments, folder)
        time.sleep(trial.rng.random() * command.seconds)
        process.signal(sent)
        done = process.wait()
        how = f"{name}, {sent.name} at a random time"
    else:
        process = started(command.arguments, folder)
        time.sleep(trial.rng.random() * (command.seconds + 1.5))
        process.signal(sent)
        done = process.wait()
        how = f"the installed {name}, {sent.name} at a random time"
    if not done.began:
        trial.counts["ended before the program was reached"] += 1
        trial.check(judge_kill(trial, command, folder, how) == OLD, f"{how}: the program had not begun")
        return
    check_end(trial, done, sent, how, began=way != 1)
    trial.counts[f"ended by {sent.name}"] += done.code not in (0, 1)
    if done.code in (130, 143) and isinstance(command, DatabaseCommand):
        left = command.leftovers(folder)
        trial.check(not left, f"{how}: left behind: {sorted(left)}")
    state = judge_kill(trial, command, folder, how)
    if done.code == 0:
        trial.check(state == NEW, f"{how}: exit code 0, but the state is {state}")


def in_start_up(done: Done) -> bool:
    """Return whether the signal came before the program was reached: the interpreter then reports it and ends."""
    return done.code < 0 or "start.py" not in done.text


def check_end(trial: Trial, done: Done, sent: signal.Signals, how: str, *, began: bool) -> None:
    """Check the exit code and the messages."""
    if done.code == 0:
        trial.counts["ended before the signal, or did not care"] += 1
        return
    if sent is signal.SIGPIPE:
        if began and done.code == -signal.SIGPIPE:  # before the interpreter set SIGPIPE to be ignored
            trial.counts["ended while the interpreter started"] += 1
            return
        trial.check(False, f"{how}: exit code {done.code}: {done.text[-300:]}")
        return
    if began and done.code != CODES[sent] and in_start_up(done):
        trial.counts["ended while the interpreter started"] += 1
        return
    trial.check(done.code == CODES[sent], f"{how}: exit code {done.code}: {done.text[-300:]}")
    trial.check("Traceback" not in done.text, f"{how}: a traceback: {done.text[-600:]}")


def streams(trial: Trial) -> None:
    """Run with any of the three streams closed from the start, or with stdout closed by its reader after some bytes."""
    if trial.number % 2:
        _closed_by_reader(trial)
        return
    closed = [stream for stream in range(3) if (trial.number // 2) % 7 + 1 & 1 << stream]
    which = (trial.number // 14) % (len(NAMES) + len(PRINTING))
    if which < len(NAMES):
        name = NAMES[which]
        command, folder = prepared(trial, name)
        done = started(command.arguments, folder, closed=closed).wait()
        how = f"{name} with streams {closed} closed"
        state = judge_kill(trial, command, folder, how)
        trial.check(done.code in (0, 1), f"{how}: exit code {done.code}: {done.text[-300:]}")
        trial.check(done.code or state == NEW, f"{how}: exit code 0, but the state is {state}")
    else:
        arguments = PRINTING[which - len(NAMES)]
        folder = prepared(trial, "query")[1]
        done = started(arguments, folder, closed=closed).wait()
        how = f"{' '.join(arguments)} with streams {closed} closed"
        trial.check(done.code in (0, 1), f"{how}: exit code {done.code}: {done.text[-300:]}")
        if 1 not in closed:
            trial.check(done.code == 0 and done.out, f"{how}: exit code {done.code}, {len(done.out)} bytes printed")
    trial.check("Traceback" not in done.text, f"{how}: a traceback: {done.text[-600:]}")
    trial.counts["streams closed from the beginning"] += 1


def _closed_by_reader(trial: Trial) -> None:
    arguments = PRINTING[(trial.number // 2) % len(PRINTING)]
    folder = prepared(trial, "query")[1]
    n_bytes = trial.rng.choice((0, 1, 10, 100, 1000, 5000))
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    process = started(arguments, folder, stdout=writer)
    os.close(writer)
    left = n_bytes
    while left and (got := os.read(reader, left)):
        left -= len(got)
    os.close(reader)
    done = process.wait()
    how = f"{' '.join(arguments)}, its reader gone after {n_bytes} bytes"
    trial.check(done.code in (0, 141, -signal.SIGPIPE), f"{how}: exit code {done.code}: {done.text[-300:]}")
    trial.check("Traceback" not in done.text and not done.errors, f"{how}: {done.text[-600:]}")
    trial.counts["readers that went"] += 1
