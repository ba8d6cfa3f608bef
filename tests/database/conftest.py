"""A small database of proteins for the tests of this folder."""

import io
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from swsearch.database.builder import build_database
from swsearch.database.export import export
from swsearch.database.format import CATALOGUE
from swsearch.database.opening import open_database
from swsearch.database.reader import PackedDatabase
from swsearch.database.staging import LOCK
from swsearch.database.verify import verify
from swsearch.errors import DatabaseError

LETTERS = "ARNDCQEGHILKMFPSTWYVBZX*UOJ"


def some_records(n_records: int = 200, seed: int = 5) -> list[tuple[str, str]]:
    """Return headers and letters: lengths 1 to 300, every letter, lower case, some equal lengths."""
    source = random.Random(seed)
    records = [
        (f"P{n} made-up x{'x' * source.randrange(9)}", "".join(source.choices(LETTERS, k=source.randrange(1, 300))))
        for n in range(n_records)
    ]
    return [
        (header, letters.lower() if n % 7 == 0 else letters[:3] + letters[3:9].lower() + letters[9:])
        for n, (header, letters) in enumerate(records)
    ]


def fasta_text(records: list[tuple[str, str]], width: int = 60) -> bytes:
    lines = []
    for header, letters in records:
        lines.append(f">{header}")
        lines += [letters[start : start + width] for start in range(0, len(letters), width)]
    return ("\n".join(lines) + "\n").encode()


def exported(database: PackedDatabase, width: int = 0) -> bytes:
    """Return the database as FASTA."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="\n")
    export(database, out, width)
    out.flush()
    return raw.getvalue()


def leftovers(path: Path) -> set[str]:
    """The files of a database that its catalogue does not name, but for former removals, which readers may use."""
    with open_database(path) as database:
        generation, segments = database.catalogue.generation, database.catalogue.segments
    in_use = {CATALOGUE, LOCK}
    for entry in segments:
        in_use |= {f"{entry.name}/{name}.bin" for name in entry.files}
        if entry.removed is not None:
            in_use.add(f"{entry.name}/{entry.removed.name}")
    found = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()} - in_use
    return {name for name in found if not (old := re.search(r"removed-(\d+)", name)) or int(old[1]) >= generation}


@pytest.fixture(scope="session")
def problems_of() -> Callable[[Path], list[str]]:
    """Return a function that lists what opening and verifying a database report; opening raises its first problem."""

    def problems_of(path: Path) -> list[str]:
        try:
            database = open_database(path)
        except DatabaseError as error:
            return [str(error)]
        with database:
            return verify(database)

    return problems_of


@pytest.fixture
def records() -> list[tuple[str, str]]:
    return some_records()


@pytest.fixture
def fasta(tmp_path: Path, records: list[tuple[str, str]]) -> Path:
    path = tmp_path / "some.fa"
    path.write_bytes(fasta_text(records))
    return path


@pytest.fixture
def database_path(tmp_path: Path, fasta: Path) -> Path:
    path = tmp_path / "some.swdb"
    build_database(fasta, path)
    return path
