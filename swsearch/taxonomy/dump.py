r"""NCBI's taxdump as it is published: a folder, ``taxdump.tar.gz``, ``taxdmp.zip``, or ``nodes.dmp`` by itself.

Four of its files are read: ``nodes.dmp`` (parents and ranks), ``names.dmp``, ``merged.dmp`` and ``delnodes.dmp``. All
but the first may be missing. Those of ``new_taxdump`` have the same columns at their beginning. Beside a ``nodes.dmp``
that is given by itself, the others are read from its folder. Ranks may be any text.

Lines are read column by column with array operations. A line is ``column\t|\tcolumn\t|\n``. Where no bar of a block
follows a tab, every bar separates columns. Blanks around the value of a column are not part of it.

A whole taxdump takes some seconds to read, and a hundredth of that from the cache of :func:`load_taxonomy`. It is the
folder ``swsearch/taxonomy`` under ``$XDG_CACHE_HOME`` or ``~/.cache`` and has the arrays of the trees that were used
last, each under the checksum of the files it was read from. It may be deleted at any time. Where it cannot be written,
nothing is cached.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError
from swsearch.file_registry import registry
from swsearch.folders import user_cache
from swsearch.sequences.archives import MAGIC_BYTES, Readable, archive_format, decompressed
from swsearch.sequences.source import seekable
from swsearch.taxonomy.tree import (
    ARRAY_DTYPES,
    Numbers,
    Taxonomy,
    Texts,
    TreeError,
    build_tree,
    packed_arrays,
    ranges,
    unpacked,
)
from swsearch.words import option

NODES: Final = "nodes.dmp"
FILES: Final = (NODES, "names.dmp", "merged.dmp", "delnodes.dmp")
ADVICE: Final = "give NCBI's taxdump: its folder, taxdump.tar.gz, taxdmp.zip, or nodes.dmp"
_NAME_COLUMNS: Final = ((b"scientific name",), (b"genbank common name", b"common name"), (b"blast name",))
"""The classes of names that are read, those of each column of the tree in order of preference."""
_FORMS: Final = {
    NODES: "a node's line is `id | parent | …`; give nodes.dmp of NCBI's taxdump",
    "names.dmp": "a name's line is `id | name | unique name | class |`; give names.dmp of NCBI's taxdump",
    "merged.dmp": "a line is `former id | id |`; give merged.dmp of NCBI's taxdump",
    "delnodes.dmp": "a line is `id |`; give delnodes.dmp of NCBI's taxdump",
}
_TAR_MAGIC: Final = (257, b"ustar")


class _Contents:
    """What has been read of the files, block by block."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Numbers, Numbers, NDArray[np.uint16]]] = []
        self.ranks: dict[bytes, int] = {}
        self.names: dict[bytes, list[tuple[Numbers, Texts]]] = {kind: [] for kinds in _NAME_COLUMNS for kind in kinds}
        self.merged: list[Numbers] = []
        self.deleted: list[Numbers] = []

    def add(self, name: str, lines: DumpLines) -> None:
        """Add a block of one of the files."""
        if name == NODES:
            self.nodes.append((lines.numbers(0), lines.numbers(1), lines.codes(2, self.ranks)))
        elif name == "names.dmp":
            ids = lines.numbers(0)
            for kind, found in self.names.items():
                chosen = lines.lines_with(3, kind)
                found.append((ids[chosen], lines.texts(1, chosen)))
        elif name == "merged.dmp":
            self.merged.append(np.stack((lines.numbers(0), lines.numbers(1)), axis=1))
        else:
            self.deleted.append(lines.numbers(0))

    def tree(self) -> Taxonomy:
        """The tree of all blocks."""
        empty = np.empty(0, np.uint32)
        ids, parents, ranks = (np.concatenate(parts) for parts in zip(*self.nodes, strict=True))
        self.nodes.clear()
        rank_names = [name.decode("utf-8", "surrogateescape") for name in self.ranks]
        names = []
        for kinds in _NAME_COLUMNS:
            found = [block for kind in kinds for block in self.names.pop(kind)]
            names.append((np.concatenate([empty, *(of for of, _ in found)]), Texts.joined(texts for _, texts in found)))
            del found
        merged = np.concatenate([empty.reshape(0, 2), *self.merged])
        deleted = np.concatenate([empty, *self.deleted])
        return build_tree(ids, parents, ranks, rank_names, names, merged, deleted)


def read_dump(path: str | os.PathLike[str], option: str = option("taxonomy")) -> Taxonomy:
    """The tree of a taxdump.

    Parameters
    ----------
    path : path
        A folder, an archive (tar, compressed or not, or zip), or ``nodes.dmp``, compressed or not; ``-`` is stdin.
    option : str
        The option by which it was given, for messages.

    Raises
    ------
    InputError
        It cannot be read, has no ``nodes.dmp``, a line has another form, or the parents make no tree.
    """
    contents = _Contents()
    shown = f"{option} {os.fspath(path)}"
    for name, where, file in _members(path, shown):
        n_lines = 0
        try:
            for lines in line_blocks(file):
                contents.add(name, lines)
                n_lines += len(lines)
        except MalformedLine as error:
            raise InputError(f"{where}, line {n_lines + error.line + 1}: {_FORMS[name]}") from error
        except Exception as error:  # each decompressor has its own exceptions
            raise _unreadable(where, error) from error
    if not contents.nodes:
        raise InputError(f"{shown}: there is no {NODES} in it, or an empty one; {ADVICE}")
    try:
        return contents.tree()
    except TreeError as error:
        raise InputError(f"{shown}: {error}; fetch the taxdump again") from error


def dump_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files on the disk whose content determines the tree; those that exist."""
    given = Path(path)
    if given.is_dir():
        return [file for name in FILES if (file := given / name).is_file()]
    if given.name == NODES:
        return [given, *(file for name in FILES[1:] if (file := given.with_name(name)).is_file())]
    return [given]


_Member = tuple[str, str, Readable]
"""The name of a file in :data:`FILES`, its name in messages, and its content."""


def _members(path: str | os.PathLike[str], shown: str) -> Iterator[_Member]:
    """The files of the taxdump, one after another."""
    if os.path.isdir(path):
        files = dump_files(path)
        if not files or files[0].name != NODES:
            raise InputError(f"{shown}: the folder has no {NODES}; {ADVICE}")
        yield from _plain_files(files, shown)
        return
    with ExitStack() as stack:
        source = seekable(path)  # the copy of a pipe exists as long as this object
        try:
            file = stack.enter_context(open(source, "rb"))
            start = file.read(MAGIC_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"{shown}: {getattr(error, 'strerror', None) or error}; {ADVICE}") from error
        file.seek(0)
        try:
            if start.startswith(b"PK"):
                yield from _zip_members(file, shown)
                return
            form = archive_format(start)
            first = decompressed(file, form).read(512)
            file.seek(0)
            if first[_TAR_MAGIC[0] :].startswith(_TAR_MAGIC[1]):
                yield from _tar_members(decompressed(file, form), shown)
            else:
                yield NODES, shown, decompressed(file, form)
        except InputError:
            raise
        except Exception as error:
            raise _unreadable(shown, error) from error
    yield from _plain_files(dump_files(path)[1:], os.path.dirname(shown))


def _plain_files(files: list[Path], folder: str) -> Iterator[_Member]:
    for path in files:
        registry().read(path)
        with path.open("rb") as file:
            yield path.name, os.path.join(folder, path.name), cast(Readable, file)


def _tar_members(stream: Readable, shown: str) -> Iterator[_Member]:
    with tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|") as archive:
        for member in archive:
            name = os.path.basename(member.name)
            if member.isfile() and name in FILES and (file := archive.extractfile(member)) is not None:
                yield name, f"{shown}: {name}", cast(Readable, file)


def _zip_members(file: BinaryIO, shown: str) -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = os.path.basename(info.filename)
            if name in FILES:
                with archive.open(info) as member:
                    yield name, f"{shown}: {name}", cast(Readable, member)


def _unreadable(where: str, error: Exception) -> InputError:
    if isinstance(error, OSError) and error.strerror:
        return InputError(f"{where}: {error.strerror}; {ADVICE}")
    return InputError(f"{where}: the archive is damaged or cut short ({error}); fetch it again")


_BLOCK_BYTES: Final = 1 << 22
_TAB, _LINE_FEED, _BLANK, _BAR, _ZERO = b"\t\n |0"
_MAX_LINE_BYTES: Final = 1 << 24
_MAX_DIGITS: Final = 10
_LARGEST: Final = 2**32 - 1

Places = NDArray[np.int64]


class MalformedLine(ValueError):
    """A line that is not of the file's form; ``line`` is its number in the block, from 0."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(f"line {line}")


class DumpLines:
    """The lines of a block of text.

    Parameters
    ----------
    text : uint8 array
        Whole lines; the last byte is a line feed.
    """

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self._text = text
        self._line_ends = np.flatnonzero(text == _LINE_FEED)
        self._line_starts = np.concatenate((np.zeros(1, np.int64), self._line_ends[:-1] + 1))
        bars = np.flatnonzero(text == _BAR)
        after_tab = text[bars - 1] == _TAB
        self._bars = bars[after_tab] if after_tab.any() else bars
        self._first_bar = np.searchsorted(self._bars, self._line_starts)
        self._n_bars = np.searchsorted(self._bars, self._line_ends) - self._first_bar

    def __len__(self) -> int:
        return len(self._line_ends)

    def numbers(self, column: int) -> Numbers:
        """The numbers in a column, counted from 0; uint32, shape (n_lines,).

        Raises
        ------
        MalformedLine
            A line has no such column, or the value is no number from 0 to 2^32 - 1.
        """
        starts, ends = self._places(column)
        is_number = (self._n_bars > column) & (ends > starts) & (ends - starts <= _MAX_DIGITS)
        values = np.zeros(len(self), np.int64)
        for place in range(int((ends - starts)[is_number].max(initial=0))):
            at = starts + place
            inside = (at < ends) & is_number
            digits = self._text[np.minimum(at, ends)].astype(np.int64) - _ZERO
            is_number &= ~inside | ((digits >= 0) & (digits <= 9))
            values = np.where(inside, 10 * values + digits, values)
        is_number &= values <= _LARGEST
        if not is_number.all():
            raise MalformedLine(int(np.argmin(is_number)))
        return values.astype(np.uint32)

    def codes(self, column: int, known: dict[bytes, int]) -> NDArray[np.uint16]:
        """The values of a column with few different values, as numbers; uint16, shape (n_lines,).

        Parameters
        ----------
        column : int
            A line without this column has an empty value.
        known : dict
            The number of each value; values that it lacks are added, and numbered as they come.

        Raises
        ------
        MalformedLine
            The line has the 65,536th different value.
        """
        starts, ends = self._places(column)
        sizes = ends - starts
        codes = np.zeros(len(self), np.uint16)
        left = np.arange(len(self))
        while left.size:
            first = left[0]
            value = self._text[starts[first] : ends[first]]
            code = known.setdefault(value.tobytes(), len(known))
            if code > np.iinfo(np.uint16).max:
                raise MalformedLine(int(first))
            equal = self._equal(left, value, starts, sizes)
            codes[left[equal]] = code
            left = left[~equal]
        return codes

    def lines_with(self, column: int, value: bytes) -> Places:
        """The lines, from 0, that have this value in a column, ascending."""
        starts, ends = self._places(column)
        every = np.arange(len(self))
        return every[self._equal(every, np.frombuffer(value, np.uint8), starts, ends - starts)]

    def texts(self, column: int, lines: Places) -> Texts:
        """The texts of a column in some lines, which ascend."""
        starts, ends = self._places(column)
        starts, ends = starts[lines], ends[lines]
        sizes = ends - starts
        return Texts(self._text[ranges(starts, sizes)], np.cumsum(sizes).astype(np.uint32))

    def _equal(self, lines: Places, value: NDArray[np.uint8], starts: Places, sizes: Places) -> NDArray[np.bool_]:
        """For each of these lines, whether its text from ``starts`` on, of ``sizes`` bytes, is ``value``."""
        equal: NDArray[np.bool_] = sizes[lines] == len(value)
        candidates = np.flatnonzero(equal)
        places = starts[lines[candidates], np.newaxis] + np.arange(len(value))
        equal[candidates] = (self._text[places] == value).all(axis=1)
        return equal

    def _places(self, column: int) -> tuple[Places, Places]:
        """Start and end of a column's value in each line; empty where the line has no such column."""
        is_there = self._n_bars > column
        last = np.maximum(len(self._bars) - 1, 0)
        ends = self._line_starts.copy()
        starts = self._line_starts.copy()
        if is_there.any():
            ends[is_there] = self._bars[np.minimum(self._first_bar + column, last)][is_there]
            if column:
                starts = self._bars[np.minimum(self._first_bar + column - 1, last)] + 1
                starts[~is_there] = ends[~is_there]
        while (blank := (starts < ends) & self._is_blank(starts)).any():
            starts[blank] += 1
        while (blank := (starts < ends) & self._is_blank(ends - 1)).any():
            ends[blank] -= 1
        return starts, ends

    def _is_blank(self, places: Places) -> NDArray[np.bool_]:
        found = self._text[places]
        blank: NDArray[np.bool_] = (found == _TAB) | (found == _BLANK)
        return blank


def line_blocks(file: Readable) -> Iterator[DumpLines]:
    """The lines of a file in blocks of some megabytes; a line feed that is missing at the end is added.

    Raises
    ------
    MalformedLine
        A line has more than 16 MB; it is the first of the block that would follow.
    """
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        whole = block.rfind(b"\n") + 1
        if whole:
            yield DumpLines(np.frombuffer(rest + block[:whole], np.uint8))
            rest = block[whole:]
        else:
            rest += block
            if len(rest) > _MAX_LINE_BYTES:
                raise MalformedLine(0)
    if rest:
        yield DumpLines(np.frombuffer(rest + b"\n", np.uint8))


# --- taxdumps that were read, in the cache of this user ---

SMALLEST_BYTES: Final = 1 << 22
"""Taxdumps of fewer bytes are read about as fast as the cache, and are not cached."""
MOST_TREES: Final = 3
"""Number of trees that are kept; one of NCBI's whole taxonomy has 150 MB."""
_VERSION: Final = b"swsearch taxonomy 1\n"


def load_taxonomy(path: str | os.PathLike[str], option: str = option("taxonomy")) -> Taxonomy:
    """The tree of a taxdump (:func:`swsearch.taxonomy.dump.read_dump`), from the cache if it was read before.

    Raises
    ------
    InputError
        As :func:`read_dump` raises it.
    """
    files = dump_files(path)
    try:
        if not all(file.is_file() for file in files) or sum(file.stat().st_size for file in files) < SMALLEST_BYTES:
            return read_dump(path, option)
        folder = user_cache("taxonomy") / _checksum(files)
    except OSError as error:
        raise InputError(f"{option} {os.fspath(path)}: {error.strerror or error}; {ADVICE}") from error
    if (known := _read(folder)) is not None:
        return known
    tree = read_dump(path, option)
    with suppress(OSError):
        _write(folder, tree)
    return tree


def _checksum(files: list[Path]) -> str:
    digest = hashlib.sha256(_VERSION)
    for path in files:
        registry().read(path)
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _read(folder: Path) -> Taxonomy | None:
    """The tree in a folder; None if it has none that can be used."""
    registry().read_folder(folder, "the cache of taxonomies")
    try:
        arrays = {name: _mapped(folder / f"{name}.bin", dtype) for name, dtype in ARRAY_DTYPES.items()}
        tree = unpacked(arrays)
        os.utime(folder)
    except (OSError, ValueError):
        return None
    return tree


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def _write(folder: Path, tree: Taxonomy) -> None:
    """Write a tree; it appears by one rename. Trees that were not used for the longest time are removed."""
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}-{os.urandom(4).hex()}")
    unfinished.mkdir(parents=True)
    try:
        for name, array in packed_arrays(tree).items():
            with (unfinished / f"{name}.bin").open("xb") as file:
                file.write(array.data)
        shutil.rmtree(folder, ignore_errors=True)  # of a tree that could not be used
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    known = [path for path in folder.parent.iterdir() if not path.name.startswith(".")]
    for path in sorted(known, key=lambda one: one.stat().st_mtime, reverse=True)[MOST_TREES:]:
        shutil.rmtree(path, ignore_errors=True)
