"""Searches during database changes: each search sees exactly one complete generation, current during the search.

A writer adds, removes and compacts in its own process, one change after another. Readers search at the same time, also
in processes of their own. The output of a search must equal, byte for byte, the output for one generation that was
current between the reader's start and its end; the expected outputs come from the same changes made beforehand without
readers.
"""

import time
from functools import cache
from pathlib import Path

import pytest

from swsearch.database.opening import load_catalogue
from tests.campaign.commands import SEARCH, Template, content
from tests.campaign.program import Process, forked, run
from tests.campaign.trials import Trial, told

CHANGES = (
    ("db", "add", "some.db", "more1.fa"),
    ("db", "remove", "some.db", "S3", "N4"),
    ("db", "compact", "some.db"),
    ("db", "add", "some.db", "more2.fa"),
    ("db", "remove", "some.db", "M0", "M1", "S20"),
    ("db", "add", "some.db", "more1.fa"),
    ("db", "compact", "some.db"),
    ("db", "remove", "some.db", "M2"),
)
READS = (
    ("query", "q.fa", "some.db", "--store", "none", "--format", "tsv", *SEARCH),
    ("db", "export", "some.db"),
    ("db", "verify", "some.db"),
)
READERS = 3


@cache
def known(state_dir: Path) -> tuple[Template, dict[int, list[bytes]]]:
    """Return the output of each reading command in each generation."""
    template = Template.make(state_dir)
    folder = state_dir / "known"
    _prepare(template, folder)
    printed = {_generation(folder): _all_reads(folder)}
    for change in CHANGES:
        done = run(change, folder)
        assert done.code == 0, done.text
        printed[_generation(folder)] = _all_reads(folder)
    return template, printed


def _prepare(template: Template, folder: Path) -> None:
    folder.mkdir()
    template.copy(("some.db", "q.fa", "more1.fa", "more2.fa"), folder)


def _all_reads(folder: Path) -> list[bytes]:
    outputs = []
    for read in READS:
        done = run(read, folder)
        assert done.code == 0, done.text
        outputs.append(done.out)
    return outputs


def _generation(folder: Path) -> int:
    return load_catalogue(folder / "some.db").generation


@pytest.mark.thorough
@pytest.mark.peer("gcc")
@pytest.mark.campaign(1, 60)
def test_a_search_sees_one_generation_whatever_is_changed_meanwhile(trial: Trial) -> None:
    """All changes are made one after another, with readers running concurrently."""
    template, printed = known(trial.state_dir)
    folder = trial.folder / "work"
    _prepare(template, folder)
    changes = list(CHANGES)
    reading: list[tuple[Process, int, int]] = []
    writer: Process | None = None
    while changes or writer is not None or reading:
        if writer is None and changes:
            time.sleep(trial.rng.random() * 0.05)
            writer = forked(changes.pop(0), folder)
        if writer is not None and writer.has_ended():
            done = writer.wait()
            writer = None
            assert done.code == 0, f"a change beside readers: {done.text}"
        while len(reading) < READERS and (changes or writer is not None):
            which = trial.rng.randrange(len(READS))
            reading.append((forked(READS[which], folder), which, _generation(folder)))
        for entry in list(reading):
            process, which, first = entry
            if process.has_ended():
                reading.remove(entry)
                done = process.wait()
                generations = range(first, _generation(folder) + 1)
                with told(f"`{' '.join(READS[which][:3])}` in {generations}"):
                    assert done.code == 0, done.text[-400:]
                    assert any(printed[generation][which] == done.out for generation in generations)
        time.sleep(0.001)
    problems, _ = content(folder / "some.db")
    assert not problems, f"verify afterwards: {problems}"
