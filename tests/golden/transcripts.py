"""Transcripts: commands with everything that they printed and wrote when they were accepted.

A transcript is a text file of this folder. It runs in a folder of its own, which has the inputs of :func:`inputs`.

``# TEXT``
    A remark.
``$ COMMAND``
    A command of swsearch, run in this process; ``< FILE`` at its end is its standard input. ``$ show FILE`` prints a
    file that a command has written: text as it is, a table of Parquet as one JSON object a row, a store as the rows of
    its tables.
``| ``, ``! ``
    What the command printed on stdout and on stderr. Of more than :data:`MOST_LINES` lines the first are shown, and the
    digest of all of them.
``? CODE``
    Its exit code, unless that is 0.
``+ FILE: N bytes, DIGEST``
    A file that it created or changed.

Times, dates, the folder and what is a property of the machine are replaced by words (:data:`REPLACED`).
``python -m tests.golden [NAME…]`` writes the transcripts anew; ``git diff`` then shows what has changed.
"""

import contextlib
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swsearch.cli import output
from swsearch.cli.app import main

FOLDER: Final = Path(__file__).parent
DATA: Final = FOLDER.parents[1] / "data"
MOST_LINES: Final = 60
SHOWN_LINES: Final = 12
REPLACED: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z| UTC)?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|minutes?|seconds?)\b"), "N s"),
    (re.compile(r"\b\d[\d,.]* (GCUPS|MB/s)"), "N \\1"),
    (re.compile(r"cpu engine \([^\n]*\)(; not cuda: [^\n]*)?"), "cpu engine (…)"),
    (re.compile(r"\b\d+ threads?\b"), "N threads"),
    (re.compile(r"\b\d[\d,.]* (kB|MB|GB)\b"), "N \\1"),
)
"""What differs between runs or machines, and what stands for it in a transcript."""
_UNSTABLE_COLUMNS: Final = {"started_at", "finished_at", "host", "process", "process_began", "score_seconds",
                            "total_seconds", "threads", "engine", "heartbeat"}  # fmt: skip


def names() -> list[str]:
    """The names of all transcripts, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def accepted(name: str) -> str:
    """The text of a transcript."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def inputs(folder: Path) -> None:
    """Write the inputs of every transcript into a folder.

    ``few.fasta`` has 60 real proteins, ``two.fasta`` and ``one.fasta`` two queries and one of them; ``genome.fasta``
    has 8,000 bases of phage lambda, ``reads.fastq`` three reads of it. ``taxids.tsv`` and ``taxonomy`` have the
    organisms of the proteins, ``obg.sto`` is an alignment, and ``families.hmm.gz`` has two models.
    """
    with gzip.open(DATA / "proteins.fasta.gz", "rt", encoding="utf-8") as file:
        proteins = _records(file.read())
    queries = _records((DATA / "queries.fasta").read_text(encoding="utf-8"))
    header, *lines = (DATA / "lambda_phage.fasta").read_text(encoding="utf-8").splitlines()
    bases = "".join(lines)[:8000]
    reads = (DATA / "lambda_reads.fastq").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, text in (
        ("few.fasta", "".join(proteins[:60])),
        ("more.fasta", "".join(proteins[60:90])),
        ("two.fasta", queries[0] + queries[6]),
        ("one.fasta", queries[0]),
        ("genome.fasta", f"{header}\n{bases}\n"),
        ("reads.fastq", "".join(reads[:12])),
        ("gene.fasta", f">gene\n{bases[5000:5300]}\n"),
        ("wrong.fasta", ">good\nMKVLAAGIVG\n>bad\nMKV1AAG\n"),
        ("empty.fasta", ""),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("taxids.tsv", "obg.sto", "families.hmm.gz"):
        shutil.copyfile(DATA / name, folder / name)
    shutil.copytree(DATA / "taxonomy", folder / "taxonomy")


def _records(text: str) -> list[str]:
    return [f">{record}" for record in text.split(">")[1:]]


def run(text: str, folder: Path) -> str:
    """Run the commands of a transcript in a folder; returns the transcript of what they do now."""
    inputs(folder)
    output.PLAIN_INTERVAL_SECONDS = output.LONGEST_INTERVAL_SECONDS  # type: ignore[misc]  # no line on a slow machine
    lines = [line for line in text.splitlines() if line.startswith(("#", "$")) or not line]
    with _surroundings(folder):
        return "\n".join(line if not line.startswith("$") else _ran(line, folder) for line in lines).rstrip() + "\n"


@contextlib.contextmanager
def _surroundings(folder: Path) -> Iterator[None]:
    """An environment that is the same everywhere, and the folder as the current one."""
    before, place = dict(os.environ), Path.cwd()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for name in [name for name in os.environ if name.startswith("SWSEARCH_")]:
        del os.environ[name]
    home = folder.parent / f"{folder.name}-home"
    os.environ |= {"COLUMNS": "80", "TERM": "dumb", "TZ": "UTC", "SWSEARCH_CONFIG": ""}
    os.environ |= {"XDG_DATA_HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _ran(line: str, folder: Path) -> str:
    words = shlex.split(line[1:])
    stdin = words.pop() if words[-2:-1] == ["<"] else os.devnull
    words = [word for word in words if word != "<"]
    before = _files(folder)
    if words[0] == "show":
        code, out, err = 0, _shown(Path(words[1])), ""
    else:
        code, out, err = _outcome(words[1:], stdin)
    parts = [line, *_marked("| ", out, folder), *_marked("! ", err, folder)]
    parts += [f"? {code}"] if code else []
    after = _files(folder)
    for path in sorted(after.keys() - before.keys() | {path for path in before if after.get(path) != before[path]}):
        if path not in after:
            parts.append(f"- {path}")
        elif not _is_store(folder / path) and Path(path).name != "writer.lock":
            content = _replaced(_content(folder / path), folder).encode()
            parts.append(f"+ {path}: {len(content):,} bytes, {hashlib.sha256(content).hexdigest()[:16]}")
    return "\n".join(parts)


def _outcome(arguments: list[str], stdin: str) -> tuple[int, str, str]:
    """Run a command with streams of its own; returns its exit code and what it printed on stdout and stderr."""
    streams = sys.stdin, sys.stdout, sys.stderr
    copies = [os.dup(number) for number in range(3)]
    place = Path(f"{Path.cwd()}-streams")
    place.mkdir(exist_ok=True)
    try:
        with contextlib.ExitStack() as opened:
            for number, name, mode in ((0, stdin, "r"), (1, place / "out", "w"), (2, place / "err", "w")):
                stream = opened.enter_context(open(name, mode, encoding="utf-8"))
                os.dup2(stream.fileno(), number)
                setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
            try:
                code = main(arguments)
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else 1
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
            os.close(copy)
    out, err = ((place / name).read_text(encoding="utf-8", errors="backslashreplace") for name in ("out", "err"))
    return code, out, err


def _marked(mark: str, text: str, folder: Path) -> list[str]:
    """The lines of a text behind a mark; the first lines and a digest if there are many."""
    text = _replaced(text, folder)
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        lines = [*lines[:SHOWN_LINES], f"[{len(lines):,} lines, {digest}]"]
    return [f"{mark}{line}".rstrip() for line in lines]


def _replaced(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER").replace(str(folder.resolve()), "FOLDER")
    for pattern, word in REPLACED:
        text = pattern.sub(word, text)
    return text


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of each file below the folder, by relative path."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            state = path.stat()
            found[str(path.relative_to(folder))] = (state.st_size, state.st_mtime_ns)
    return found


def _is_store(path: Path) -> bool:
    """Whether a file is an SQLite database or one of its side files, whose bytes are not the same twice."""
    return path.name.endswith(("-wal", "-shm", "-journal")) or path.open("rb").read(16).startswith(b"SQLite format 3")


def _content(path: Path) -> str:
    """A file as text, decompressed; other bytes as Latin-1."""
    if path.suffix == ".parquet":
        return _shown(path)
    if path.suffix == ".svg":  # its identifiers are random
        return re.sub(r"\b[mp][0-9a-f]{10}\b", "", path.read_text(encoding="utf-8"))
    if path.name == "catalogue.json":  # its checksum covers the date
        return re.sub(r'"(checksum|created)": "[^"]*"', "", path.read_text(encoding="utf-8"))
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("latin-1")


def _shown(path: Path) -> str:
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table

        return "".join(f"{json.dumps(row, default=str)}\n" for row in read_table(path).to_pylist())
    if not _is_store(path):
        return _content(path)
    with contextlib.closing(sqlite3.connect(path)) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        lines = []
        for table in tables:
            cursor = store.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
            columns = [column for column, *_ in cursor.description]
            for row in cursor:
                values = {c: v for c, v in zip(columns, row, strict=True) if c not in _UNSTABLE_COLUMNS}
                lines.append(f"{table} {json.dumps(values, default=bytes.hex)}\n")
        return "".join(lines)
