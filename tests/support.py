"""Inputs for several tests: the real sequences of data/, random sequences and profiles, and databases of them."""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.database.builder import build_database
from swsearch.query.profile import QueryProfile
from swsearch.scoring.scheme import GapPenalty
from swsearch.scoring.ungapped import background
from swsearch.sequences.alphabet import N_CODES, PAD_CODE, PROTEIN, Alphabet
from swsearch.typing import Codes

DATA = Path(__file__).parents[1] / "data"
ROBINSON_FREQUENCIES = np.rint(background(PROTEIN) * 1000)
"""Residues per thousand of natural proteins, in the order ARNDCQEGHILKMFPSTWYV."""

Records = list[tuple[str, str]]
"""Headers and letters."""


def write_fasta(path: Path, records: Iterable[tuple[str, str]]) -> Path:
    path.write_text("".join(f">{header}\n{letters}\n" for header, letters in records))
    return path


def indexed(path: Path, records: Iterable[tuple[str, str]], alphabet: Alphabet | None = None, **options: Any) -> Path:
    """A database of these records, with their FASTA file beside it."""
    build_database(write_fasta(path.with_suffix(".fasta"), records), path, alphabet, **options)
    return path


def protein_records() -> list[str]:
    """The 1,500 real proteins of data/, each as FASTA text."""
    text = gzip.decompress((DATA / "proteins.fasta.gz").read_bytes()).decode()
    return [f">{record}" for record in text.split(">")[1:]]


def random_codes(rng: np.random.Generator, length: int, letters: int = 20) -> Codes:
    """Residue codes of equal frequency."""
    return rng.integers(0, letters, length).astype(np.uint8)


def random_protein(rng: np.random.Generator, length: int) -> Codes:
    """Return a protein of natural composition."""
    letters: Codes = rng.choice(20, size=length, p=ROBINSON_FREQUENCIES / ROBINSON_FREQUENCIES.sum()).astype(np.uint8)
    return letters


def random_dna(rng: np.random.Generator, length: int) -> Codes:
    """Return DNA of equal composition."""
    return rng.integers(0, 4, size=length, dtype=np.uint8)


def random_profile(
    rng: np.random.Generator, length: int, n_rows: int, gap: GapPenalty, low: int, high: int
) -> QueryProfile:
    """Return a profile whose scores are uniform on ``low`` … ``high``."""
    table = rng.integers(low, high + 1, size=(n_rows, N_CODES)).astype(np.int8)
    table[:, PAD_CODE] = -128
    return QueryProfile(rng.integers(0, n_rows, size=length).astype(np.int32), table, gap)


def by_position(profile: QueryProfile) -> QueryProfile:
    """Return the profile with a table row for each position: beyond 32, CPU kernels look up scores in their loop."""
    return QueryProfile(np.arange(profile.length, dtype=np.int32), profile.table[profile.rows], profile.gap)


def coded(parts: Iterable[str]) -> list[Codes]:
    """The residue codes of each of several parts of proteins."""
    return [PROTEIN.encode(part) for part in parts]
