"""The commands that the campaign disturbs, each with a judge, which states what the disk may hold after the disturbance
and what the next command must do.

A judge knows two states, recorded from an undisturbed run: `old`, before the command, and `new`, after it. A search
that stores its hits may also leave the state `between`: some of its queries are committed, each completely.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.database.export import export
from swsearch.database.opening import open_database
from swsearch.database.verify import verify
from swsearch.errors import StoreError
from swsearch.hits.result import SearchStats
from swsearch.sequences.alphabet import PROTEIN
from swsearch.store.store import Store
from tests.campaign.program import Done, run
from tests.campaign.trials import Trial, told
from tests.database.conftest import leftovers
from tests.support import random_protein

OLD, NEW, BETWEEN = "old", "new", "between"
SEARCH = ("--evalue", "1000", "--top", "8", "--threads", "1", "--quiet")


def fasta(prefix: str, n_records: int, seed: int, lengths: tuple[int, int] = (20, 140)) -> str:
    """Return random proteins in FASTA format."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(n_records):
        letters = PROTEIN.decode(random_protein(rng, int(rng.integers(*lengths))))
        lines.append(f">{prefix}{number} record {number}\n{letters}\n")
    return "".join(lines)


@dataclass(frozen=True)
class Template:
    """A folder with all files that the commands need; it is made once and copied for each trial."""

    folder: Path

    @staticmethod
    @cache
    def make(state_dir: Path) -> Template:
        """Return the template of a part."""
        folder = state_dir / "template"
        folder.mkdir()
        (folder / "a.fa").write_text(fasta("S", 30, 1))
        (folder / "more.fa").write_text(fasta("N", 12, 2))
        (folder / "more1.fa").write_text(fasta("N", 12, 7))
        (folder / "more2.fa").write_text(fasta("M", 9, 8))
        (folder / "q.fa").write_text(fasta("Q", 5, 3, (30, 80)))
        (folder / "many.fa").write_text(fasta("Q", 40, 9, (30, 80)))
        (folder / "obsolete.txt").write_text("S3\nS17\nN5\n")
        commands = [
            ["index", "a.fa", "-o", "base.db"],
            ["index", "a.fa", "-o", "some.db"],
            ["db", "add", "some.db", "more.fa"],
            ["db", "remove", "some.db", "S1", "N2"],
            ["query", "q.fa", "base.db", "--store", "hits.sqlite", *SEARCH],
            ["batch", "q.fa", "base.db", "--store", "one.sqlite", "--shard", "1/2", *SEARCH],
            ["batch", "q.fa", "base.db", "--store", "two.sqlite", "--shard", "2/2", *SEARCH],
        ]
        for command in commands:
            done = run(command, folder)
            assert done.code == 0, (command, done.text)
        return Template(folder)

    def copy(self, names: Sequence[str], folder: Path) -> None:
        """Copy some of the template's files and folders."""
        for name in names:
            source = self.folder / name
            if source.is_dir():
                shutil.copytree(source, folder / name)
            else:
                shutil.copy2(source, folder / name)


def content(path: Path) -> tuple[list[str], str]:
    """Return the problems of a database, and a digest of its letters and headers."""
    with open_database(path) as database:
        problems = verify(database)
        text = io.StringIO()
        export(database, text)
        return problems, hashlib.sha256(text.getvalue().encode("utf-8", "surrogateescape")).hexdigest()


@dataclass
class Command(ABC):
    """A command with its judge.

    Attributes
    ----------
    name : str
    arguments : tuple of str
    needs : tuple of str
        The files and folders to copy from the template.
    calls : int
        System calls by which an undisturbed run changes files.
    seconds : float
        Wall time of an undisturbed run, forked.
    """

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...]
    calls: int = 0
    seconds: float = 0.0
    learned: dict[str, Any] = field(default_factory=dict)

    def prepare(self, template: Template, folder: Path) -> None:
        """Prepare a folder in its state before the command."""
        folder.mkdir(parents=True, exist_ok=True)
        template.copy(self.needs, folder)

    def learn(self, template: Template) -> Command:
        """Run the command undisturbed and record its effects."""
        folder = template.folder.with_name(f"undisturbed-{self.name}")
        self.prepare(template, folder)
        self.remember(OLD, folder)
        done = run(self.arguments, folder)
        assert done.code == 0, (self.arguments, done.text)
        self.calls, self.seconds = done.calls, done.seconds
        self.remember(NEW, folder)
        shutil.rmtree(folder)
        return self

    @abstractmethod
    def remember(self, state: str, folder: Path) -> None:
        """Record the content of the disk in a state."""

    @abstractmethod
    def state(self, folder: Path) -> str:
        """Return the state that a disturbed run left, in which nothing may be half-written."""

    @abstractmethod
    def go_on(self, folder: Path, state: str) -> None:
        """Check that the next command succeeds and leaves the result of an undisturbed run."""

    @abstractmethod
    def leftovers(self, folder: Path) -> set[str]:
        """Return the names of files that belong to no state."""

    def must(self, folder: Path, arguments: Sequence[str]) -> Done:
        """Run a command that must succeed."""
        done = run(arguments, folder)
        assert done.code == 0, f"`swsearch {' '.join(arguments)}` after it ends with {done.code}: {done.text}"
        assert "Traceback" not in done.text, f"`swsearch {' '.join(arguments)}` after it: {done.text}"
        return done


@dataclass
class DatabaseCommand(Command):
    """A command that creates or changes a database."""

    database: str = "some.db"
    next: tuple[str, ...] = ("db", "remove", "some.db", "S9")

    def remember(self, state: str, folder: Path) -> None:
        path = folder / self.database
        self.learned[state] = content(path)[1] if path.exists() else None

    def state(self, folder: Path) -> str:
        path = folder / self.database
        if not path.exists():
            assert self.learned[OLD] is None, f"{self.database} is gone"
            return OLD
        problems, found = content(path)
        assert not problems, f"verify: {problems}"
        for state in (OLD, NEW):
            if found == self.learned[state]:
                # A compaction changes no letter; the segments tell whether it was done.
                return NEW if state == OLD and self.learned[NEW] == found and self._is_compact(path) else state
        raise AssertionError("the database has neither the old nor the new content")

    @staticmethod
    def _is_compact(path: Path) -> bool:
        with open_database(path) as database:
            return len(database.segments) == 1 and not database.catalogue.n_removed

    def go_on(self, folder: Path, state: str) -> None:
        if state == NEW:
            self.must(folder, self.next)
        else:
            self.must(folder, self.arguments)
            assert self.state(folder) == NEW, "the same command again does not give the new content"
        assert not content(folder / self.database)[0], "verify finds problems after the next command"
        left = self.leftovers(folder)
        assert not left, f"left behind after the next command: {sorted(left)}"

    def leftovers(self, folder: Path) -> set[str]:
        found = {path.name for path in folder.iterdir()} - {"tmp", self.database, *self.needs}
        path = folder / self.database
        if not path.exists():
            return found
        return found | leftovers(path)


def unstamped(result: Any) -> Any:
    """Return a query's result without its times."""
    return replace(result, stats=SearchStats(result.stats.cells, 0.0, 0.0, 0))


@dataclass
class StoreCommand(Command):
    """A command that adds a run to a store."""

    store: str = "hits.sqlite"
    out: str | None = None
    again: tuple[str, ...] = ()
    in_order: bool = True
    """Whether queries are committed in input order, so that a killed run holds the first ones."""
    one_transaction: bool = False
    """Whether the run is stored completely or not at all."""

    def remember(self, state: str, folder: Path) -> None:
        self.learned[state] = self._runs(folder)
        self.learned[f"{state} text"] = self._report(folder) if self.learned[state] else b""
        if self.out is not None:
            path = folder / self.out
            self.learned[f"{state} out"] = path.read_bytes() if path.exists() else None

    def _report(self, folder: Path) -> bytes:
        done = run(["report", "latest", "--format", "tsv", "--store", self.store], folder)
        assert done.code == 0, done.text
        return done.out

    def _runs(self, folder: Path) -> dict[int, tuple[str, list[Any]]]:
        """Return the state and results of each run."""
        if not (folder / self.store).exists():
            return {}
        with Store(folder / self.store) as store:
            return {
                found.id: (found.state, [unstamped(r) for r in store.results.queries(found.id)])
                for found in store.runs.all()
            }

    def state(self, folder: Path) -> str:
        path = folder / self.store
        if self.out is not None:
            out = (folder / self.out).read_bytes() if (folder / self.out).exists() else None
            whole = (self.learned[f"{OLD} out"], self.learned[f"{NEW} out"])
            assert out in whole, f"{self.out} is half written"
        if not path.exists():
            assert not self.learned[OLD], f"{self.store} is gone"
            return OLD
        with sqlite3.connect(path) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchall()
            assert found == [("ok",)], f"integrity_check: {found}"
            found = connection.execute("PRAGMA foreign_key_check").fetchall()
            assert not found, f"foreign_key_check: {found}"
        connection.close()
        try:
            runs = self._runs(folder)
        except StoreError as error:
            if self.learned[OLD] or "holds no runs yet" not in str(error):
                raise
            return OLD
        for number, (state, results) in self.learned[OLD].items():
            assert runs.get(number) == (state, results), f"run {number}, there before, has changed"
        added = [number for number in runs if number not in self.learned[OLD]]
        if not added:
            return OLD
        assert len(added) == 1, f"runs {added} were added by one command"
        state, results = runs[added[0]]
        if state == "finished":
            assert results == self.wanted, "the finished run has not the results of an undisturbed one"
            return NEW
        assert not self.one_transaction, "a part of the run is there"
        assert state == "interrupted", f"the run of a process that has ended is {state}"
        missing = [result.number for result in results if result not in self.wanted]
        assert not missing, f"committed queries {missing} differ from those of an undisturbed run"
        if self.in_order:
            assert results == self.wanted[: len(results)], "the committed queries are not the first ones"
        return BETWEEN

    @property
    def wanted(self) -> list[Any]:
        """The results of an undisturbed run."""
        new = self.learned[NEW]
        results: list[Any] = new[max(new)][1]
        return results

    def go_on(self, folder: Path, state: str) -> None:
        runs_before = self._runs_or_none(folder)
        self.must(folder, self.again or self.arguments)
        assert self._report(folder) == self.learned[f"{NEW} text"], "the report after the next command differs"
        if self.out is not None:
            assert (folder / self.out).read_bytes() == self.learned[f"{NEW} out"], f"{self.out} differs afterwards"
        runs = self._runs(folder)
        assert runs[max(runs)] == ("finished", self.wanted), "the run of the next command is not whole"
        if self.again and state == BETWEEN:
            assert len(runs) == len(runs_before), "the interrupted run was not gone on with"
        left = {name for name in self.leftovers(folder) if not name.endswith(".unfinished")}
        assert not left, f"left behind after the next command: {sorted(left)}"

    def _runs_or_none(self, folder: Path) -> dict[int, Any]:
        try:
            return self._runs(folder)
        except StoreError:
            return {}

    def leftovers(self, folder: Path) -> set[str]:
        return {path.name for path in folder.iterdir()} - {"tmp", self.store, self.out, *self.needs}


@dataclass
class OutCommand(Command):
    """A command that writes one file and nothing else."""

    out: str = "out.txt"

    def prepare(self, template: Template, folder: Path) -> None:
        super().prepare(template, folder)
        (folder / self.out).write_text("an older file\n")

    def remember(self, state: str, folder: Path) -> None:
        self.learned[state] = (folder / self.out).read_bytes()

    def state(self, folder: Path) -> str:
        path = folder / self.out
        assert path.exists(), f"{self.out} is gone"
        found = path.read_bytes()
        assert found in (self.learned[OLD], self.learned[NEW]), f"{self.out} is half written"
        return NEW if found == self.learned[NEW] else OLD

    def go_on(self, folder: Path, state: str) -> None:
        self.must(folder, self.arguments)
        assert self.state(folder) == NEW, f"{self.out} is not whole after the next command"

    def leftovers(self, folder: Path) -> set[str]:
        return {path.name for path in folder.iterdir()} - {"tmp", self.out, *self.needs}


def commands() -> dict[str, Command]:
    """Return all commands by name, before any has been learned."""
    every: list[Command] = [
        DatabaseCommand(
            "index", ("index", "a.fa", "-o", "new.db"), ("a.fa",), database="new.db",
            next=("index", "a.fa", "-o", "new.db", "--force"),
        ),
        DatabaseCommand(
            "index_force", ("index", "a.fa", "-o", "some.db", "--force"), ("a.fa", "some.db"),
            next=("index", "a.fa", "-o", "some.db", "--force"),
        ),
        DatabaseCommand("db_add", ("db", "add", "some.db", "more.fa"), ("more.fa", "some.db")),
        DatabaseCommand(
            "db_remove", ("db", "remove", "some.db", "--from-file", "obsolete.txt"), ("obsolete.txt", "some.db")
        ),
        DatabaseCommand("db_compact", ("db", "compact", "some.db"), ("some.db",)),
        StoreCommand(
            "query",
            ("query", "q.fa", "base.db", "--store", "hits.sqlite", "--out", "hits.tsv", "--format", "tsv", *SEARCH),
            ("q.fa", "base.db", "hits.sqlite"), out="hits.tsv", in_order=True,
        ),
        StoreCommand(
            "batch", ("batch", "q.fa", "base.db", "--store", "batch.sqlite", *SEARCH), ("q.fa", "base.db"),
            store="batch.sqlite", in_order=False,
            again=("batch", "q.fa", "base.db", "--store", "batch.sqlite", "--resume", "latest", *SEARCH),
        ),
        StoreCommand(
            "runs_merge", ("runs", "merge", "one.sqlite", "two.sqlite", "--store", "merged.sqlite"),
            ("one.sqlite", "two.sqlite"), store="merged.sqlite", in_order=False,
            one_transaction=True,
        ),
        OutCommand(
            "report", ("report", "latest", "--store", "hits.sqlite", "--format", "pairwise", "--out", "out.txt"),
            ("hits.sqlite",),
        ),
        OutCommand("db_export", ("db", "export", "some.db", "--out", "out.txt"), ("some.db",)),
        OutCommand("align", ("align", "q.fa", "q.fa", "--mode", "global", "--out", "out.txt", "--quiet"), ("q.fa",)),
    ]  # fmt: skip
    return {command.name: command for command in every}


NAMES = tuple(commands())


@cache
def learned(name: str, state_dir: Path) -> tuple[Template, Command]:
    """Return a command with its template."""
    template = Template.make(state_dir)
    return template, commands()[name].learn(template)


def prepared(trial: Trial, name: str) -> tuple[Command, Path]:
    """Return a command, and a folder of the trial in its state before the command."""
    template, command = learned(name, trial.state_dir)
    folder = trial.folder / "work"
    command.prepare(template, folder)
    return command, folder


def judge(command: Command, folder: Path, how: str) -> str:
    """Check what a disturbance left and what the next command does; return the state that was left."""
    with told(how):
        state = command.state(folder)
        command.go_on(folder, state)
    return state
