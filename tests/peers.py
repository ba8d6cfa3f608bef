"""Programs of others that tests use: how each is found and installed, and what a test does where one is missing.

A test names its peers, ``@pytest.mark.peer("blastp")``, and so belongs to ``make test-all``; the fixtures that start a
peer are in ``STARTED_BY``. Where a peer is missing, ``make test-all`` fails with a line that says how to install it,
because nobody would notice that the test is skipped; a plain ``pytest`` skips it. Only what no target of the Makefile
installs (``optional``) is skipped by both.

``python -m tests.peers`` prints the Debian packages that are missing, for ``scripts/install_peers.sh``.
"""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

REQUIRED = "SWSEARCH_PEERS"
"""Environment variable: ``required`` makes a missing peer a failure."""
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
SFTP_SERVER = Path("/usr/lib/openssh/sftp-server")
SNAKEMAKE = Path(sys.prefix) / "snakemake" / "bin" / "snakemake"


def program(name: str) -> str | None:
    """Return the path of a program; an ordinary user's PATH may lack the folders of daemons."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def chromium() -> str | None:
    """Return the browser; the headless shell takes a third of the processor time of the whole program."""
    return program("chromium-headless-shell") or program("chromium")


def oracle(name: str) -> ModuleType:
    """A package that tests of a GPU compare with; where GPUs are tested, there may be only the wheel and pytest."""
    return pytest.importorskip(name, reason="it is one of the packages for tests")


class Peer(NamedTuple):
    """What a test needs beside Python's packages.

    Attributes
    ----------
    install : str
        Debian packages, or what to do.
    is_here : callable
    debian : bool
        ``install`` names Debian packages.
    optional : bool
        No target of the Makefile installs it, so it may be missing everywhere.
    thorough : bool
        Tests that need it run in ``make test-all`` only.
    """

    install: str
    is_here: Callable[[], object]
    debian: bool = True
    optional: bool = False
    thorough: bool = True


def _programs(package: str, *names: str) -> dict[str, Peer]:
    return {name: Peer(package, lambda name=name: program(name)) for name in names}  # type: ignore[misc]


def _has_perl_module() -> bool:
    found = program("perl") and subprocess.run(
        ["perl", "-MBio::Tools::Run::RemoteBlast", "-e", "1"], capture_output=True, check=False
    )
    return bool(found) and found.returncode == 0


def _optional(install: str, *names: str, thorough: bool = True) -> Peer:
    return Peer(install, lambda: all(map(program, names)), debian=False, optional=True, thorough=thorough)


def _client(module: str) -> Peer:
    install = "run: sh scripts/install_clients.sh .venv/bin/pip"
    return Peer(install, lambda: importlib.util.find_spec(module), debian=False)


def _nvrtc() -> object:
    from swsearch.engine.cuda.runtime.compiler import installed_nvrtc

    return installed_nvrtc()


def _nvcc() -> object:
    from scripts.build_kernels import find_nvcc

    return find_nvcc()


PEERS: dict[str, Peer] = {
    **_programs(
        "ncbi-blast+", "blastdbcmd", "blastn", "blastp", "blastx", "dustmasker", "makeblastdb", "psiblast", "segmasker",
        "tblastn", "tblastx",
    ),
    **_programs("fasta3", "lalign36", "ssearch36"),
    **_programs("hmmer", "hmmbuild"),
    **_programs("hhsuite", "hhfilter", "hhmake"),
    **_programs("mmseqs2", "mmseqs"),
    **_programs("diamond-aligner", "diamond"),
    **_programs("kraken2", "kraken2-build"),
    **_programs("samtools", "samtools"),
    **_programs("bedtools", "bedtools"),
    **_programs("nginx", "nginx"),
    **_programs("openssl", "openssl"),
    **_programs("sqlite3", "sqlite3"),
    "postgresql": Peer("postgresql", lambda: POSTGRES),
    "slurm": Peer(
        "slurmctld slurmd slurm-client munge",
        lambda: all(map(program, ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue"))),
    ),
    "sshfs": Peer("sshfs openssh-sftp-server", lambda: program("sshfs") and SFTP_SERVER.exists()),
    "BioPerl's RemoteBlast": Peer("libbio-tools-run-remoteblast-perl", _has_perl_module),
    "chromium": Peer("chromium-headless-shell fonts-dejavu-core", chromium),
    "snakemake": Peer(
        "run: sh scripts/install_snakemake.sh .venv/bin/python .venv/snakemake",
        lambda: program("snakemake") or SNAKEMAKE.exists(),
        debian=False,
    ),
    "colabfold": _client("colabfold"),
    "boltz": _client("boltz"),
    "gffutils": _client("gffutils"),
    "pafpy": _client("pafpy"),
    "g++": _optional("Debian: g++", "g++", thorough=False),
    "emulated GPU": _optional("Debian: g++", "g++"),
    "gcc": _optional("Debian: gcc", "gcc", thorough=False),
    "NVRTC": Peer("pip: cuda-bindings, nvidia-cuda-nvrtc", _nvrtc, debian=False, optional=True, thorough=False),
    "nvcc": Peer("the CUDA toolkit", _nvcc, debian=False, optional=True, thorough=False),
    "clang++": _optional("Debian: clang", "clang++"),
    "NEON": _optional("Debian: g++-aarch64-linux-gnu qemu-user", "aarch64-linux-gnu-g++", "qemu-aarch64"),
    "nextflow": _optional("https://www.nextflow.io", "nextflow"),
    "systemd-analyze": _optional("Debian: systemd", "systemd-analyze"),
}  # fmt: skip

STARTED_BY = {"postgres": "postgresql", "browser": "chromium", "network": "sshfs", "emulated": "emulated GPU"}
"""Peers of fixtures: a test that uses one, directly or not, needs its peer."""


@cache
def is_here(name: str) -> bool:
    """Return whether a peer is installed."""
    return bool(PEERS[name].is_here())


def need(*names: str) -> None:
    """End the test if one of these peers is missing: it fails where peers are required, and is skipped elsewhere."""
    for name in names:
        if not is_here(name):
            peer = PEERS[name]
            line = f"{name} is not installed ({'apt-get install ' if peer.debian else ''}{peer.install})"
            if os.environ.get(REQUIRED) == "required" and not peer.optional:
                pytest.fail(line, pytrace=False)
            pytest.skip(line)


def module(name: str) -> ModuleType | None:
    """Return a peer's module for tests that have its mark; None where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def peers_of(item: pytest.Item) -> list[str]:
    """Return the peers that a test names and those of its fixtures."""
    named = [name for mark in item.iter_markers("peer") for name in mark.args]
    return named + [STARTED_BY[name] for name in getattr(item, "fixturenames", ()) if name in STARTED_BY]


def main() -> None:
    """Print the Debian packages that are missing."""
    missing = {peer.install: None for name, peer in PEERS.items() if peer.debian and not is_here(name)}
    print(*missing)


if __name__ == "__main__":
    main()
