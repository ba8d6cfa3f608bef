"""Damaged and crafted databases under every command that opens one.

A trial copies a small valid database, damages it in one or several ways, and runs the commands on it, each in a child
process. Whatever the damage: no command dies by a signal, hangs, exhausts its memory or shows a traceback; an error is
one line that names the database; nothing outside the database changes; and if a command's output differs from its
output for the valid database, ``db verify`` reports damage. The last property is not tested where the damage was signed
again with matching digests: such a trial represents a faulty writer, not a faulty disk.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from swsearch.database.builder import build_database
from swsearch.database.catalogue import read_catalogue
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.format import ARRAY_DTYPES, CATALOGUE, content_digest
from swsearch.database.staging import LOCK
from tests.campaign.fuzz.checks import checksum
from tests.campaign.program import Done, run
from tests.campaign.trials import Trial, told

PROTEIN_LETTERS: Final = "ARNDCQEGHILKMFPSTWYV"


# --- valid databases and the commands ---


def _fasta(path: Path, rng: random.Random, letters: str, names: list[str], longest: int) -> Path:
    lines = []
    for name in names:
        sequence = "".join(rng.choices(letters, k=rng.randint(1, longest)))
        lines += [f">{name} made up", sequence.lower() if rng.random() < 0.2 else sequence]
    path.write_text("\n".join(lines) + "\n")
    return path


@cache
def make_sound(folder: Path) -> list[Path]:
    """Make valid databases, each in a folder with its queries and additions: ``db``, ``query.fa``, ``more.fa``."""
    made = []
    for kind, letters, longest in (
        ("protein", PROTEIN_LETTERS, 60),
        ("dna", "ACGTN", 90),
        ("segments", "ARNDWYBZX*", 40),
    ):
        rng = random.Random(kind)
        work = folder / kind
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        first = _fasta(work / "first.fa", rng, letters, [f"P{n}" for n in range(40)], longest)
        more = _fasta(work / "more.fa", rng, letters, [f"Q{n}" for n in range(9)], longest)
        lines = first.read_text().splitlines()
        longest_lines = sorted((line for line in lines if line[0] != ">"), key=len)[-2:]
        queries = [f">query{n}\n{line}" for n, line in enumerate(longest_lines)]
        (work / "query.fa").write_text("\n".join(queries) + "\n")
        build_database(first, work / "db")
        if kind == "dna":
            remove_from_database(work / "db", ["P3"])
            compact_database(work / "db")
        else:
            add_to_database(work / "db", more, force_alphabet=True)
            remove_from_database(work / "db", ["P1", "P7", "Q2"])
        if kind == "segments":
            remove_from_database(work / "db", [f"Q{n}" for n in range(9) if n != 2])
            add_to_database(work / "db", more, force_alphabet=True)
        made.append(work)
    return made


def _commands(work: Path, rng: random.Random) -> list[list[str]]:
    """Return commands that read, and one or two that change the database."""
    database, query = str(work / "db"), str(work / "query.fa")
    kind = work.name.split("-")[0]
    search = ["query", query, database, "--store", "none", "--format", "tsv", "--evalue", "1e9", "--threads", "1"]
    search += ["--engine", rng.choice(["cpu", "cpu", "reference"])]
    search += rng.choice([[], ["--max-hsps", "3"], ["--min-length", "5"], ["--id-pattern", "P1"]])
    if kind == "dna" and rng.random() < 0.3:
        search += ["--translate", "both"]
    changes = [
        ["db", "add", database, str(work / "more.fa"), "--alphabet", "dna" if kind == "dna" else "protein"],
        ["db", "remove", database, "P5"],
        ["db", "compact", database],
        ["index", str(work / "first.fa"), "-o", database, "--force"],
    ]
    return [["db", "info", database], search, ["db", "export", database], rng.choice(changes[:3]), rng.choice(changes)]


# --- damage ---

_VALUES: Final[tuple[Any, ...]] = (
    0, 1, -1, 2, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, -(2**63), 10**400, 0.5, 3.0, -0.0, 1e308, float("nan"),
    float("inf"), None, True, False, "", "x", "../..", "/etc", "segment-000001", "segment-000001/../../..",
    "segment-999999",
    "removed-000001.bin", "a\0b", "\ud800", "é" * 5000, "0" * 64, "f" * 64, [], {}, [[]], [1], {"a": 1}, [None], "dna",
    "protein", "runes", "a\nb",
)  # fmt: skip
_NUMBERS: Final = (0, 1, 15, 16, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


def _files(work: Path) -> list[Path]:
    return sorted(path for path in (work / "db").rglob("*") if path.is_file() and not path.is_symlink())


def _flip(rng: random.Random, work: Path) -> bool:
    path = rng.choice([file for file in _files(work) if file.stat().st_size] or [work / "query.fa"])
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 20])):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    return False


def _overwrite(rng: random.Random, work: Path) -> bool:
    path = rng.choice(_files(work))
    raw = bytearray(path.read_bytes())
    size = rng.choice([1, 4, 8, 16, 64])
    at = rng.randrange(max(1, len(raw))) // size * size
    number = rng.choice(_NUMBERS).to_bytes(16, "little")
    new = rng.choice([b"\0" * size, b"\xff" * size, rng.randbytes(size), (number * 4)[:size]])
    raw[at : at + len(new)] = new[: len(raw) - at]
    path.write_bytes(raw)
    return False


def _resize(rng: random.Random, work: Path) -> bool:
    path = rng.choice(_files(work))
    size = path.stat().st_size
    os.truncate(path, rng.choice([0, size // 2, max(0, size - 1), size + 1, size + 16, size * 2, 1 << 33]))
    return False


def _swap(rng: random.Random, work: Path) -> bool:
    one, other = rng.sample(_files(work), 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    if rng.random() < 0.7:
        other.write_bytes(first)
    return False


def _replace(rng: random.Random, work: Path) -> bool:
    """Replace a file or folder by an object of another kind."""
    database = work / "db"
    paths = sorted(database.rglob("*"))
    path = rng.choice([*paths, database / LOCK, database / f".{CATALOGUE}", database / CATALOGUE, database])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    kind = rng.randrange(8)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        if path != database:  # a pipe is a source of sequences, and is waited for until somebody writes them
            os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(rng.choice(["/dev/null", "/dev/zero", "/dev/full", "/nonexistent", path.name, "..", "/"]))
    elif kind == 3:
        path.symlink_to(work / "victim" / "file")
    elif kind == 4:
        path.symlink_to(work / "victim")
    elif kind == 5:
        with socket.socket(socket.AF_UNIX) as ear:
            folder = os.open(path.parent, os.O_RDONLY)  # the name of a socket must be short
            ear.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
    elif kind == 6:
        path.write_bytes(b"")
    return False


def _litter(rng: random.Random, work: Path) -> bool:
    """Add objects with the names of files that a change would remove, but of other kinds."""
    segment = rng.choice(sorted((work / "db").glob("segment-*")) or [work / "db"])
    removal = segment / f"removed-{rng.choice(['000001', '999999'])}.bin"
    path = rng.choice([work / "db" / "segment-999999", work / "db" / f".{CATALOGUE}", removal])
    if os.path.lexists(path):
        return False
    rng.choice([path.mkdir, lambda: path.symlink_to(work / "victim"), lambda: path.write_bytes(b"x")])()
    return False


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to everything in a JSON value."""
    found = [at] if at else []
    if isinstance(value, dict):
        for key in sorted(value):
            found += _places(value[key], (*at, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += _places(item, (*at, number))
    return found


def _change_catalogue(rng: random.Random, work: Path) -> bool:
    """Change a field of the catalogue, with or without a matching checksum."""
    path = work / "db" / CATALOGUE
    fields = json.loads(path.read_text())
    before = fields.pop("checksum")
    for _ in range(rng.choice([1, 1, 2, 3])):
        *way, last = rng.choice(_places(fields))
        inner = fields
        for step in way:
            inner = inner[step]
        action = rng.randrange(6)
        if action == 0:
            del inner[last]
        elif action == 1 and isinstance(inner, list):
            inner.append(inner[last])
        elif action == 2 and isinstance(inner[last], int):
            inner[last] += rng.choice([-1, 1, 16, 2**32])
        elif action == 3 and isinstance(inner, dict):
            inner[rng.choice(["extra", "removed", "name", "former_digests"])] = rng.choice(_VALUES)
        else:
            inner[last] = rng.choice(_VALUES)
    signed = rng.random() < 0.8
    fields["checksum"] = checksum(fields) if signed else before
    path.write_text(json.dumps(fields, indent=1))
    return signed


def _rewrite_catalogue(rng: random.Random, work: Path) -> bool:
    """Replace the complete text of the catalogue."""
    path = work / "db" / CATALOGUE
    text = path.read_bytes()
    path.write_bytes(
        rng.choice(
            [
                b"[" * 100_000, b'{"format":' * 60_000, b'{"version": ' + b"9" * 100_000 + b"}", b"\xff\xfe" + text,
                b"\xef\xbb\xbf" + text, text + b"\0", text[:-2], text + text, b"null", b"[]", b"1e999", b"NaN",
                b'"\\ud800"',
                text.replace(b"1", "\u0661".encode()), text.replace(b'"version": ', b'"version": 1.0, "x": '),
                text.replace(b"\n", b"\r\n"), text.decode().encode("utf-16"),
            ]
        )
    )  # fmt: skip
    if rng.random() < 0.1:
        os.truncate(path, 1 << 33)
    return False


def _sign(work: Path) -> None:
    """Write the current sizes and digests of the files into the catalogue, as a faulty writer would."""
    path = work / "db" / CATALOGUE
    fields = json.loads(path.read_text())
    del fields["checksum"]
    for segment in fields["segments"]:
        entries = {f"{name}.bin": segment["files"][name] for name in ARRAY_DTYPES}
        if segment.get("removed"):
            entries[segment["removed"]["name"]] = segment["removed"]["file"]
        for name, entry in entries.items():
            raw = (work / "db" / segment["name"] / name).read_bytes()
            entry.update(size=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    catalogue = read_catalogue(json.dumps({**fields, "checksum": checksum(fields)}))
    fields["digest"] = content_digest(catalogue.alphabet, catalogue.segments)
    path.write_text(json.dumps({**fields, "checksum": checksum(fields)}))


def _faulty_writer(rng: random.Random, work: Path) -> bool:
    """Write arrays that violate the format, with matching digests."""
    for _ in range(rng.choice([1, 1, 2])):
        rng.choice([_flip, _overwrite, _overwrite, _swap])(rng, work)
    try:
        _sign(work)
    except (ValueError, OSError, KeyError, TypeError, AttributeError):
        return False  # the damage hit the catalogue itself
    return True


_DAMAGE: Final[tuple[Callable[[random.Random, Path], bool], ...]] = (
    _flip, _flip, _overwrite, _overwrite, _resize, _swap, _replace, _replace, _litter, _change_catalogue,
    _change_catalogue, _rewrite_catalogue, _faulty_writer, _faulty_writer,
)  # fmt: skip


# --- a trial ---


@cache
def _sound_answer(work: Path, arguments: tuple[str, ...]) -> bytes:
    ended = run(arguments, work)
    assert ended.code == 0, ended.text
    return ended.out


@pytest.mark.thorough
@pytest.mark.peer("gcc")
@pytest.mark.campaign(10, 300)
def test_damaged_databases_are_named_and_never_crash_a_command(trial: Trial) -> None:
    rng = trial.rng
    original = rng.choice(make_sound(trial.state_dir / "sound"))
    work = trial.folder / f"{original.name}-damaged"
    shutil.copytree(original, work)
    victim = work / "victim"
    victim.mkdir()
    outside = {victim / "file": b"not to be touched", victim / "removed-999999.bin": b"not to be touched"}
    for path, data in outside.items():
        path.write_bytes(data)
    signed = rng.choice(_DAMAGE)(rng, work)
    if rng.random() < 0.1:
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            signed |= rng.choice(_DAMAGE)(rng, work)  # which may find nothing to damage
    verify = ["db", "verify", str(work / "db")]
    was_whole = _checked(verify, work).code == 0
    for number, arguments in enumerate(_commands(work, rng)):
        ended = _checked(arguments, work)
        if number < 3 and was_whole and not signed:
            as_sound = tuple(word.replace(str(work), str(original)) for word in arguments)
            said = ended.out.replace(bytes(work), bytes(original))
            how = f"{' '.join(arguments[:2])}: another answer from a database that `db verify` calls whole"
            assert (ended.code, said) == (0, _sound_answer(original, as_sound)), how
        is_replaced = arguments[0] == "index" and ended.code == 0
    is_whole = _checked(verify, work).code == 0
    assert was_whole or is_replaced or not is_whole, "a change made a damaged database pass for whole"
    assert {path: path.read_bytes() for path in victim.iterdir()} == outside


def _checked(arguments: list[str], work: Path) -> Done:
    """Run a command, which may fail in one line that says where."""
    ended = run(arguments, work)
    with told(f"`{' '.join(arguments)}`: exit code {ended.code}: {ended.text[-600:]!r}"):
        assert ended.fault is None
        assert ended.code in (0, 1)
        if ended.code == 1:
            last = ended.text.splitlines()[-1]
            assert last.startswith("swsearch: error: ")
            assert str(work) in last
            assert ended.text.count("swsearch: error: ") == 1
    return ended
