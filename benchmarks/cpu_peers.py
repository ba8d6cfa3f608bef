"""Other programs that compute the same scores, measured on the workloads of :mod:`swsearch.bench.workloads`.

``pyopal`` is the Opal library as a Python package (``pip install pyopal``); its cost of a gap of k residues is
open + (k - 1) * extend, so its open parameter is set to open + extend. ``swipe`` is the program of Rognes (2011); it
requires ``makeblastdb`` to format its database. Each is measured with one thread, for proteins. A search uses neither.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from swsearch.bench.workloads import Measurement, Workload, timed
from swsearch.errors import EngineUnavailable
from swsearch.sequences.alphabet import PROTEIN
from swsearch.typing import Closeable, Codes

PEERS: Final = ("pyopal", "swipe")
_OPAL_LETTERS: Final = "ARNDCQEGHILKMFPSTWYVBZX*"


def peer_missing(name: str) -> str:
    """The reason why a peer, one of :data:`PEERS`, cannot be run on this machine; empty if it can."""
    if name == "pyopal":
        return "" if importlib.util.find_spec("pyopal") else "pyopal is not installed; pip install pyopal"
    missing = [program for program in ("swipe", "makeblastdb") if shutil.which(program) is None]
    return f"no {' and no '.join(missing)} on the path" if missing else ""


class Peer(Closeable):
    """A peer with the subjects of a workload loaded; a context manager.

    Raises :class:`EngineUnavailable` if the peer is not installed.
    """

    def __init__(self, name: str, workload: Workload) -> None:
        missing = peer_missing(name)
        if missing:
            raise EngineUnavailable(name, missing)
        self.name = name
        self.workload = workload
        partition = workload.partition
        self._subjects = [_letters(partition.codes(place)) for place in range(len(partition))]
        self._folder = tempfile.TemporaryDirectory()
        if name == "pyopal":
            import pyopal

            gap = workload.scheme.gap
            self._aligner = pyopal.Aligner(workload.scheme.matrix.name, gap_open=gap.first, gap_extend=gap.extend)
            self._database = pyopal.Database(self._subjects, self._aligner.alphabet)
        else:
            self._format_database()

    def scores(self, query: Codes) -> list[int]:
        """Scores of all subjects in stored order; only for pyopal."""
        results = self._aligner.align(_letters(query), self._database, mode="score", overflow="simple")
        return [result.score for result in results]

    def measure(self, query: Codes) -> Measurement:
        """Score one query with one thread."""
        if self.name == "pyopal":
            wall, cpu = timed(lambda: self.scores(query))
        else:
            wall, cpu = timed(lambda: self._run_swipe(query))
        cells = len(query) * self.workload.partition.n_residues
        return Measurement(self.workload.name, self.name, "", 1, len(query), cells, False, wall, cpu)

    def close(self) -> None:
        """Remove the files that were created for the peer."""
        self._folder.cleanup()

    def _format_database(self) -> None:
        fasta = Path(self._folder.name, "subjects.fasta")
        with fasta.open("w") as file:
            for place, letters in enumerate(self._subjects):
                file.write(f">s{place}\n{letters}\n")
        subprocess.run(
            ["makeblastdb", "-dbtype", "prot", "-in", fasta, "-blastdb_version", "4"], check=True, capture_output=True
        )

    def _run_swipe(self, query: Codes) -> None:
        folder, scheme = Path(self._folder.name), self.workload.scheme
        (folder / "query.fasta").write_text(f">query\n{_letters(query)}\n")
        options = {"-G": scheme.gap.open, "-E": scheme.gap.extend, "-M": scheme.matrix.name, "-a": 1, "-v": 0, "-b": 0}
        words = [str(word) for option in options.items() for word in option]
        subprocess.run(
            ["swipe", "-d", folder / "subjects.fasta", "-i", folder / "query.fasta", *words],
            check=True,
            capture_output=True,
        )


def _letters(codes: Codes) -> str:
    """Upper-case letters; U, O and J, which have the scores of X, are replaced by X."""
    return PROTEIN.decode(codes).upper().translate(str.maketrans("UOJ", "X" * 3))
