r"""NCBI's taxdump as it is published: a folder, ``taxdump.tar.gz``, ``taxdmp.zip``, or ``nodes.dmp`` by itself.

Four of its files are read: ``nodes.dmp`` (parents and ranks), ``names.dmp``, ``merged.dmp`` and ``delnodes.dmp``. All
but the first may be missing. Those of ``new_taxdump`` have the same columns at their beginning. Beside a ``nodes.dmp``
that is given by itself, the others are read from its folder. Ranks may be any text.

A line is ``column\t|\tcolumn\t|\n``. Where no bar of a line follows a tab, every bar separates columns. Blanks around
the value of a column are not part of it.

A whole taxdump takes ten seconds to read, and some hundredths of one from the cache of :func:`load_taxonomy`. It is the
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
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import Texts
from swsearch.errors import InputError
from swsearch.file_registry import registry
from swsearch.folders import remove_folder, user_cache
from swsearch.sequences.archives import MAGIC_BYTES, Readable, archive_format, decompressed
from swsearch.sequences.source import seekable
from swsearch.taxonomy.tree import ARRAY_DTYPES, Numbers, Taxonomy, build_tree, packed_arrays, unpacked
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
_BLANKS: Final = b"\t "
_BLOCK_BYTES: Final = 1 << 20
_MAX_LINE_BYTES: Final = 1 << 24
_MAX_DIGITS: Final = 10
_TAR_MAGIC: Final = (257, b"ustar")


class _Contents:
    """What has been read of the files, line by line."""

    def __init__(self) -> None:
        self.ids, self.parents, self.ranks = array("I"), array("I"), array("H")
        self.rank_names: dict[bytes, int] = {}
        # Of each class of names, as they come: ids, the bytes of all names, and the end of each.
        self.names = {kind: (array("I"), bytearray(), array("I")) for kinds in _NAME_COLUMNS for kind in kinds}
        self.merged, self.deleted = array("I"), array("I")

    def add_lines(self, name: str, file: Iterable[bytes], where: str) -> None:
        """Add the lines of one of the files, of which ``where`` is the name in messages."""
        add = {
            NODES: self._add_node,
            "names.dmp": self._add_name,
            "merged.dmp": self._add_merged,
            "delnodes.dmp": self._add_deleted,
        }[name]
        for number, line in enumerate(file, 1):
            try:
                add(line)
            except (ValueError, IndexError, OverflowError) as error:
                raise InputError(f"{where}, line {number}: {_FORMS[name]}") from error

    def _add_node(self, line: bytes) -> None:
        taxid, parent, *rest = _columns(line, 3)
        self.ids.append(_number(taxid))
        self.parents.append(_number(parent))
        rank = rest[0].strip(_BLANKS) if rest else b""
        self.ranks.append(self.rank_names.setdefault(rank, len(self.rank_names)))

    def _add_name(self, line: bytes) -> None:
        columns = _columns(line, 4)
        taxid = _number(columns[0])
        if len(columns) == 4 and (names := self.names.get(columns[3].strip(_BLANKS))) is not None:
            ids, text, ends = names
            ids.append(taxid)
            text += columns[1].strip(_BLANKS)
            ends.append(len(text))

    def _add_merged(self, line: bytes) -> None:
        former, current = _columns(line, 2)
        self.merged.extend((_number(former), _number(current)))

    def _add_deleted(self, line: bytes) -> None:
        self.deleted.append(_number(_columns(line, 1)[0]))

    def tree(self) -> Taxonomy:
        """The tree of all lines."""
        names = []
        for kinds in _NAME_COLUMNS:
            found = [self.names.pop(kind) for kind in kinds]
            columns = (Texts(np.frombuffer(text, np.uint8), _numbers(ends)) for _, text, ends in found)
            names.append((np.concatenate([_numbers(ids) for ids, *_ in found]), Texts.joined(columns)))
        return build_tree(
            _numbers(self.ids),
            _numbers(self.parents),
            np.frombuffer(self.ranks, np.uint16),
            Texts.of(self.rank_names),
            names,
            _numbers(self.merged).reshape(-1, 2),
            _numbers(self.deleted),
        )


def _columns(line: bytes, n: int) -> list[bytes]:
    """The first columns of a line, at most ``n``, of which each has a bar at its end."""
    return line.split(b"\t|" if b"\t|" in line else b"|", n)[:-1]


def _number(column: bytes) -> int:
    """The number from 0 to 2^32 - 1 in a column; ValueError if there is none."""
    digits = column.strip(_BLANKS)
    if not digits.isdigit() or len(digits) > _MAX_DIGITS:
        raise ValueError(digits)
    return int(digits)


def _numbers(values: array[int]) -> Numbers:
    return np.frombuffer(values, np.uint32)


def _lines(file: Readable) -> Iterator[bytes]:
    """The lines of a file; an empty one, which no file may have, in place of a line of more than 16 MB."""
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > _MAX_LINE_BYTES:
            yield b""
    if rest:
        yield rest


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
        try:
            contents.add_lines(name, _lines(file), where)
        except InputError:
            raise
        except Exception as error:  # each decompressor has its own exceptions
            raise _unreadable(where, error) from error
    if not contents.ids:
        raise InputError(f"{shown}: there is no {NODES} in it, or an empty one; {ADVICE}")
    try:
        return contents.tree()
    except ValueError as error:
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
        remove_folder(unfinished)
    known = [path for path in folder.parent.iterdir() if not path.name.startswith(".")]
    for path in sorted(known, key=lambda one: one.stat().st_mtime, reverse=True)[MOST_TREES:]:
        shutil.rmtree(path, ignore_errors=True)
