"""The program loaded as far as possible: what a fork has at its start, and what a new interpreter would still load."""

import contextlib
import gc
import importlib
import os
import pkgutil
import signal
import tempfile
from functools import cache
from pathlib import Path


@cache
def load_program() -> None:
    """Import all modules that a command imports, so that a fork does not have to."""
    # Loaded for the forks, not used here.
    import alembic.command  # noqa: F401
    import sqlalchemy.dialects.sqlite  # noqa: F401

    import swsearch

    for module in pkgutil.walk_packages(swsearch.__path__, "swsearch."):
        if ".cuda" not in module.name and module.name != "swsearch.__main__":
            with contextlib.suppress(ImportError):  # a module of an extra that is not installed; a fork meets it itself
                importlib.import_module(module.name)
    _run_here_once()
    gc.collect()
    gc.freeze()  # existing objects are not collected again, in any fork


def _run_here_once() -> None:
    """Run commands in this process, in a folder of their own, so that modules imported on use are loaded."""
    from swsearch.cli.app import main

    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    here = Path.cwd()
    commands = [
        "index a.fa -o a.db",
        "db add a.db b.fa --quiet",
        "db remove a.db S1 --quiet",
        "db compact a.db --quiet",
        "query a.fa a.db --store hits.sqlite --format tsv --out hits.tsv --threads 1 --evalue 1000 --quiet",
        "batch a.fa a.db --store batch.sqlite --threads 1 --quiet",
        "runs merge batch.sqlite --store merged.sqlite",
        "report latest --store hits.sqlite --format pairwise",
        "align a.fa a.fa --mode global --quiet",
        "db export a.db --out out.fa",
        "db verify no.db",
    ]
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.chdir(folder)
        try:
            Path("a.fa").write_text(">S0\nMKVLLAWYRKND\n>S1\nMKVLLAWYRKNDCQ\n")
            Path("b.fa").write_text(">N0\nMKVLLAWYRKND\n")
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                for command in commands:
                    main(command.split())
        finally:
            os.chdir(here)
            for number, handler in handlers:
                signal.signal(number, handler)
