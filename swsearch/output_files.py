"""Output files, which appear by one rename when they are complete, and are compressed according to their names.

Those of plots (:func:`check_plot`, :func:`save_figure`) require matplotlib, the extra ``plot``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO, cast

from swsearch.errors import InputError, writing_to
from swsearch.file_registry import registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of file names that select compression."""
_LONGEST_STEM: Final = 100
"""Number of bytes of a file's name in the name of its unfinished file, whose length the file system also limits."""
_DESCRIPTOR: Final = re.compile(r"/dev/(?:std(in|out|err)|fd/(\d+))|/proc/self/fd/(\d+)")


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """The descriptor to which a path such as ``/dev/stdout`` or ``/dev/fd/63`` refers; None for any other path.

    >>> descriptor_of("/dev/stdout"), descriptor_of("/dev/fd/63"), descriptor_of("hits.txt")
    (1, 63, None)
    """
    found = _DESCRIPTOR.fullmatch(os.path.normpath(os.fspath(path)))
    if found is None:
        return None
    if found[1] is not None:
        return ("in", "out", "err").index(found[1])
    return int(found[2] or found[3])


def refuse_compressed(path: Path | None, option: str, what: str) -> None:
    """Refuse a name with a compression suffix for an output, described by ``what``, that cannot be compressed.

    Raises
    ------
    InputError
        The name ends in one of :data:`COMPRESSED`.
    """
    if path is not None and path.suffix.lower() in COMPRESSED:
        raise InputError(f"{option} {path}: {what}; choose a name without {path.suffix}")


@contextmanager
def binary_file(path: Path, option: str) -> Iterator[BinaryIO]:
    """A stream of bytes to a new file, which one rename makes visible; if the block raises, no file remains.

    Links are followed, and the permissions of a replaced file are preserved. A device, a pipe or a socket cannot be
    replaced; it is written to directly.

    Parameters
    ----------
    path : Path
    option : str
        The option by which the file was specified, such as ``--out``, for messages.

    Raises
    ------
    InputError
        The file cannot be created, or must not be replaced (:meth:`swsearch.file_registry.FileRegistry.write`).
    OSError
        The file cannot be written, for example because the disk is full; ``filename`` of the error is ``path``.
    """
    descriptor = descriptor_of(path)
    registry().write(option, path)
    with ExitStack() as unless_complete:
        try:
            if descriptor is not None or (path.exists() and not path.is_file()):
                direct = os.dup(descriptor) if descriptor is not None else os.open(path, os.O_WRONLY)
            else:
                direct = None
                target = Path(os.path.realpath(path))
                stem = os.fsdecode(os.fsencode(target.name)[:_LONGEST_STEM])
                unfinished = target.with_name(f".{stem}.{os.getpid()}-{os.urandom(4).hex()}.unfinished")
                unless_complete.callback(_remove, unfinished)  # a signal may end the program as the file is created
                stream = unfinished.open("xb")
        except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
            raise InputError(f"{option} {path}: {_reason(error)}; choose another file") from error
        if direct is not None:
            with writing_to(str(path)), os.fdopen(direct, "wb") as stream:
                yield stream
            return
        with writing_to(str(path)), stream:
            with suppress(OSError):
                os.fchmod(stream.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        registry().write(option, path)  # what was read meanwhile must not be replaced either
        with writing_to(str(path)):
            unfinished.replace(target)
        unless_complete.pop_all()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


@contextmanager
def text_file(path: Path, option: str) -> Iterator[TextIO]:
    r"""A text stream to a file of :func:`binary_file`, compressed if the name ends in one of :data:`COMPRESSED`.

    The text is UTF-8 with ``\n`` line ends; surrogate escapes are written as the bytes that they represent. Archives
    contain neither a time nor a name, so that the same text gives the same bytes.
    """
    with binary_file(path, option) as file, _compressor(file, path.suffix.lower()) as compressed:
        stream = io.TextIOWrapper(compressed, encoding="utf-8", errors="surrogateescape", newline="\n")
        try:
            yield stream
        finally:
            stream.detach()  # what was written is passed on, and the file stays open


@contextmanager
def log_file(path: Path, option: str) -> Iterator[TextIO]:
    """A text stream that appends to a file; if the block raises, a new file without lines is removed.

    Raises
    ------
    InputError
        The file cannot be opened, or must not be written (:meth:`swsearch.file_registry.FileRegistry.write`).
    OSError
        The file cannot be written.
    """
    registry().write(option, path)
    is_new = not os.path.lexists(path)
    try:
        stream = path.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{option} {path}: {_reason(error)}; choose another file") from error
    try:
        with writing_to(str(path)), stream:
            yield stream
    except BaseException:
        if is_new and path.is_file() and not path.stat().st_size:
            path.unlink()
        raise


@contextmanager
def _compressor(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """A stream that compresses into ``file``; when the block ends, all data is written and ``file`` still open."""
    stream: Any
    if suffix == ".gz":
        stream = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    elif suffix == ".bz2":
        stream = bz2.BZ2File(file, "wb")
    elif suffix == ".xz":
        stream = lzma.LZMAFile(file, "wb")  # noqa: SIM115 - closed below
    elif suffix == ".zst":
        from xopen import xopen

        stream = xopen(file, "wb", format="zst", threads=0)
    else:
        yield file
        return
    with stream:
        yield cast("BinaryIO", stream)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


SUFFIXES: Final = (".png", ".svg", ".pdf")


def check_plot(path: Path) -> None:
    """Refuse the path of a plot that could not be drawn, before anything is computed.

    Raises
    ------
    InputError
        The name does not end in a known suffix, its folder does not exist or is not writable, or matplotlib is not
        installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        what = "a plot is a file; " if str(path) == "-" else ""
        raise InputError(f"--plot {path}: {what}choose a name that ends in {', '.join(SUFFIXES)}")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"--plot {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"--plot {path}: nothing can be written to the folder {folder}; choose another one")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError("--plot needs matplotlib; install it with: pip install 'swsearch[plot]'") from error


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file, which appears only when it is complete.

    Raises
    ------
    InputError
        The file cannot be created.
    OSError
        The file cannot be written, for example because the disk is full.
    """
    with binary_file(path, "--plot") as stream:
        figure.savefig(stream, format=path.suffix.lower().removeprefix("."), dpi=150)
