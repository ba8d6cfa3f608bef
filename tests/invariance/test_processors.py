"""The same bytes on every processor: searches that imitate other processors on this machine, and use more threads.

The expected bytes are those of the same searches with all features of this processor and one thread. A processor is
imitated by settings of the libraries: NumPy omits code for features (``NPY_DISABLE_CPU_FEATURES``), OpenBLAS uses the
code of another core (``OPENBLAS_CORETYPE``), glibc omits its fused multiply-add (``GLIBC_TUNABLES``), and the score
kernels use another instruction set. On other systems a setting has no effect.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swsearch.database.builder import build_database
from swsearch.engine.cpu.engine import usable_instruction_sets
from tests.support import protein_records

pytestmark = pytest.mark.thorough

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    from numpy.core._multiarray_umath import __cpu_dispatch__, __cpu_features__
else:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

DATA = Path(__file__).parents[2] / "data"
PROGRAM = Path(__file__).with_name("searches.py")
FEATURES = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
WIDE = [name for name in FEATURES if "512" in name or name.endswith("V4")]
N_PROTEINS, N_QUERIES = 360, 3

PROCESSORS = {
    "old": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES),
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable",
    },
    "narrow": {"NPY_DISABLE_CPU_FEATURES": " ".join(WIDE), "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"},
    "unlike": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES[-1:]),
        "OPENBLAS_CORETYPE": "SkylakeX" if WIDE else "Zen",  # the code of either runs on this processor
    },
}
"""The environment of each processor; glibc has used two sets of names."""


def records(text: str, n: int) -> str:
    """Return the first ``n`` records of a FASTA text."""
    return "\n>".join(text.split("\n>")[:n]) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two databases and the queries."""
    path = tmp_path_factory.mktemp("invariance")
    (path / "proteins.fasta").write_text("".join(protein_records()[:N_PROTEINS]))
    (path / "queries.fasta").write_text(records((DATA / "queries.fasta").read_text(), N_QUERIES))
    build_database([path / "proteins.fasta"], path / "proteins.db")
    shutil.copy(DATA / "obg.sto", path)
    reads = (DATA / "lambda_reads.fastq").read_text().splitlines(keepends=True)
    (path / "reads.fastq").write_text("".join(reads[: 4 * N_QUERIES]))
    build_database([DATA / "lambda_phage.fasta"], path / "lambda.db")
    return path


def everything(folder: Path, name: str, settings: dict[str, str], threads: int, *kernels: str) -> dict[str, str]:
    """Return the contents of all files that a process with these settings writes, by name."""
    results = folder / name
    results.mkdir()
    inherited = {key: value for key, value in os.environ.items() if key not in PROCESSORS["old"]}
    environment = inherited | {key: value for key, value in settings.items() if value}
    done = subprocess.run(
        [sys.executable, PROGRAM, folder, results, str(threads), *kernels],
        env=environment | {"XDG_CACHE_HOME": str(folder / f"{name}.cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_text() for path in sorted(results.iterdir())}


@pytest.fixture(scope="module")
def here(folder):
    """The results of this machine without settings, with one thread."""
    found = everything(folder, "here", {}, 1)
    assert len(found) == 12
    hits = {name: text.count('"type": "hit"') for name, text in found.items() if name != "numbers"}
    assert min(hits.values()) >= N_QUERIES, hits
    return found


@pytest.mark.parametrize(("processor", "instruction_set"), [("old", 3), ("narrow", 2), ("unlike", 1)])
def test_another_processor_and_another_thread_change_no_byte(folder, here, processor, instruction_set):
    """Source: the same searches with all features of this processor, on one thread."""
    sets = usable_instruction_sets()
    found = everything(folder, processor, PROCESSORS[processor], 2, sets[min(instruction_set, len(sets) - 1)])
    assert found.keys() == here.keys()
    different = [
        f"{name}: {mine[:300]} | {other[:300]}"
        for name in here
        for mine, other in zip(here[name].splitlines(), found[name].splitlines(), strict=True)
        if mine != other
    ]
    assert not different
