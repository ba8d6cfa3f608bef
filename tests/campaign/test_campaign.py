"""The campaign itself: trials can be repeated, and judges detect damage.

The expected values are those of each part's judge, or follow from the damage that a test makes by hand.
"""

import re
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.campaign.commands import NEW, OLD, Command, OutCommand, learned, prepared
from tests.campaign.faults import FAIL, KILL_BEFORE, KILLS, SHORT, Fault
from tests.campaign.parts import PARTS
from tests.campaign.processes import started
from tests.campaign.trials import LeftOut, Outcome, Trial, run_trials

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def campaign_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("campaign")


def ready(campaign_dir: Path, name: str) -> tuple[Command, Trial, Path]:
    """Return a command with its judge, and a trial whose folder is in the state after the undisturbed command."""
    trial = Trial("test", 1, 0, campaign_dir / f"{name}-{len(list(campaign_dir.iterdir()))}", campaign_dir)
    command, folder = prepared(trial, name)
    assert command.state(trial, folder) == OLD
    command.must(trial, folder, command.arguments)
    assert command.state(trial, folder) == NEW
    assert command.leftovers(folder) == set()
    assert trial.problems == []
    return command, trial, folder


def test_a_trial_is_decided_by_part_seed_and_number(tmp_path: Path) -> None:
    drawn: list[tuple[int, float, int]] = []

    def trial(trial: Trial) -> None:
        drawn.append((trial.number, trial.rng.random(), int(trial.array_rng().integers(1 << 30))))

    for seed, numbers in ((5, range(4)), (5, [2]), (6, [2])):
        run_trials("p", trial, numbers, seed, tmp_path, 60)
    assert drawn[4] == drawn[2]
    assert drawn[5] != drawn[2]


def test_a_failure_is_told_by_its_number_and_keeps_its_folder(tmp_path: Path) -> None:
    def trial(trial: Trial) -> None:
        (trial.folder / "file").write_text("kept")
        trial.counts["things"] += 2
        trial.check(trial.number != 1, "it is the second")
        if trial.number == 2:
            raise OSError("a fault of the campaign's own")

    outcome = run_trials("p", trial, range(3), 7, tmp_path, 60)
    assert (outcome.trials, outcome.counts, list(outcome.failures)) == ([0, 1, 2], {"things": 6}, [1, 2])
    assert outcome.failures[1] == "it is the second"
    assert "a fault of the campaign's own" in outcome.failures[2]
    assert (tmp_path / "trial-7-1" / "file").read_text() == "kept"
    assert not (tmp_path / "trial-7-0").exists()


def test_a_part_without_time_or_that_cannot_be_run_here_runs_nothing(tmp_path: Path) -> None:
    def trial(trial: Trial) -> None:
        raise LeftOut("a program is missing")

    assert run_trials("p", trial, range(3), 1, tmp_path, 0).left_out == ""
    assert run_trials("p", trial, range(3), 1, tmp_path, 60) == Outcome(left_out="a program is missing")


def test_the_judges_see_a_changed_database(campaign_dir: Path) -> None:
    """A flipped bit and a leftover file; expected values: the words of the problems."""
    command, trial, folder = ready(campaign_dir, "db_add")
    residues = min((folder / "some.db").glob("*/residues.bin"))
    leftover = residues.with_name("residues.spool")
    leftover.touch()
    assert command.leftovers(folder) == {f"{residues.parent.name}/residues.spool"}
    data = bytearray(residues.read_bytes())
    data[0] ^= 1
    residues.write_bytes(data)
    command.state(trial, folder)
    assert "has changed since it was written" in trial.problems[0]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM hits WHERE rowid = (SELECT max(rowid) FROM hits)", "has not the results of an undisturbed one"),
        ("DELETE FROM hits WHERE rowid = (SELECT min(rowid) FROM hits)", "run 1, there before, has changed"),
        ("DELETE FROM runs WHERE id = 1", "run 1, there before, has changed"),
        ("DELETE FROM queries WHERE id = (SELECT max(id) FROM queries)", "has not the results of an undisturbed one"),
    ],
)
def test_the_judges_see_a_changed_store(campaign_dir: Path, statement: str, problem: str) -> None:
    """A missing row; expected values: the words of the problems."""
    command, trial, folder = ready(campaign_dir, "query")
    connection = sqlite3.connect(folder / "hits.sqlite", isolation_level=None)
    connection.execute(statement)
    connection.close()
    command.state(trial, folder)
    assert problem in "; ".join(trial.problems)


def test_the_judges_see_a_file_that_is_half_written(campaign_dir: Path) -> None:
    """A file that lacks one byte; expected values: the words of the problems."""
    for name, out in (("report", "out.txt"), ("query", "hits.tsv")):
        command, trial, folder = ready(campaign_dir, name)
        (folder / out).write_bytes((folder / out).read_bytes()[:-1])
        command.state(trial, folder)
        assert trial.problems == [f"{out} is half written"]


@pytest.mark.parametrize("way", KILLS)
def test_a_kill_comes_at_its_call(campaign_dir: Path, way: str) -> None:
    """An export is killed at its one write: the unfinished file holds nothing, half of the data or all of it."""
    template, command = learned("db_export", campaign_dir)
    assert isinstance(command, OutCommand)
    folder = campaign_dir / f"kill-{KILLS[way]}"
    command.prepare(template, folder)
    done = started(command.arguments, folder, Fault(2, KILLS[way])).wait()
    assert done.code == -signal.SIGKILL
    assert done.what.startswith("write ")
    (unfinished,) = folder.glob(".out.txt.*")
    whole = command.learned[NEW]
    wanted = {"before": b"", "after": whole, "in the middle of": whole[: len(whole) // 2]}[way]
    assert unfinished.read_bytes() == wanted
    assert (folder / "out.txt").read_bytes() == command.learned[OLD]


def test_calls_fail_and_are_cut_short_as_asked(campaign_dir: Path) -> None:
    """Source: the system's message for ENOSPC; a short write must be completed."""
    template, command = learned("db_export", campaign_dir)
    for fault, code, words in (
        (Fault(2, FAIL, 28), 1, "No space left on device"),
        (Fault(2, SHORT), 0, ""),
        (Fault(999, KILL_BEFORE), 0, ""),
    ):
        folder = campaign_dir / f"fail-{fault.at}-{fault.action}"
        command.prepare(template, folder)
        done = started(command.arguments, folder, fault).wait()
        assert (done.code, words in done.text) == (code, True)
        trial = Trial("test", 1, 0, folder, campaign_dir)
        assert command.state(trial, folder) == (NEW if code == 0 else OLD)
        assert trial.problems == []


def test_every_test_and_part_that_the_page_names_is_there() -> None:
    """Source: docs/design/reliability.md, and the files that it names."""
    page = (ROOT / "docs" / "design" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 25
    for path, function in named:
        found = re.search(rf"^ *def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        assert found, f"{path}::{function} is not there"
    before = page.partition("## How the campaign works")[0]
    promises = [line for line in before.splitlines() if line.startswith("| ") and line.count("|") == 4]
    parts = {name for promise in promises for name in re.findall(r"`(\w+)`", promise.split("|")[3])}
    assert {part.name for part in PARTS} == parts
    for promise in promises:
        assert "`" in promise or promise.startswith(("| Promise", "| ---")), f"nothing tests this: {promise}"
