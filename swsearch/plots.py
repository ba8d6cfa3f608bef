"""Files that plots are written to. Drawing needs matplotlib, the extra ``plot``."""

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
    """Refuse a plot that could not be drawn, before anything is computed.

    Raises
    ------
    InputError
        The name does not end in a known suffix, there is no such folder or nothing can be written to it, or matplotlib
        is not installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"--plot {path}: choose a name that ends in {', '.join(SUFFIXES)}")
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
    """Write a figure into a file that appears whole or not at all.

    Raises
    ------
    InputError
        The file cannot be created.
    OSError
        It cannot take what is written, say because the disk is full.
    """
    with binary_file(path, "--plot") as stream:
        figure.savefig(stream, format=path.suffix.lower().removeprefix("."), dpi=150)
