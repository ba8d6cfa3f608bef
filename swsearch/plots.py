"""Output files of plots: a check before the computation, and writing. Plots require matplotlib, the extra ``plot``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swsearch.errors import InputError
from swsearch.output_files import binary_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
