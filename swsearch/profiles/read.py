"""Queries that are profiles, by their file format."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path
from typing import Final

from swsearch.errors import AlphabetMismatch, InputError
from swsearch.profiles.alignment_files import MultipleAlignment, read_aligned_fasta, read_stockholm
from swsearch.profiles.estimation import position_specific_query
from swsearch.profiles.pssm import read_pssm
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.lines import text_lines

QUERY_FORMATS: Final = ("auto", "fasta", "pssm", "aligned", "a3m", "stockholm")
_LOOKED_AT: Final = 5


def detect_query_format(path: str | os.PathLike[str]) -> str:
    """``pssm`` or ``stockholm`` where the first lines say so, else ``fasta``; nothing is taken from standard input.

    Raises
    ------
    InputError
        The file is a PSSM in NCBI's ASN.1.
    """
    if os.fspath(path) == "-":
        peek = getattr(sys.stdin.buffer, "peek", None)
        lines = [] if peek is None else peek(1).decode("utf-8", "replace").splitlines()[:_LOOKED_AT]
    elif Path(path).is_file():
        with Path(path).open("rb") as file:
            is_text = b"\0" not in file.read(64)
        lines = [line.strip() for line in islice(text_lines(path, os.fspath(path)), _LOOKED_AT)] if is_text else []
    else:
        return "fasta"
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("# STOCKHOLM"):
        return "stockholm"
    if first.startswith("PssmWithParameters"):
        advice = "write it as text: psiblast -in_pssm FILE -out_ascii_pssm TEXT -db DB"
        raise InputError(f"{os.fspath(path)} is a PSSM in NCBI's ASN.1, which is not read; {advice}")
    return "pssm" if "position-specific scoring matrix" in first.lower() else "fasta"


def read_profiles(
    path: str | os.PathLike[str], query_format: str, matrix: SubstitutionMatrix
) -> list[PositionSpecificQuery]:
    """The queries of a file of profiles.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    query_format : str
        One of :data:`QUERY_FORMATS`, but for ``auto`` and ``fasta``.
    matrix : SubstitutionMatrix
        Of proteins; gives the scale, the pseudocounts, and the scores of letters that are no amino acid.

    Raises
    ------
    InputError
        The file cannot be read in this format, or the matrix is not for proteins.
    """
    if matrix.alphabet is not PROTEIN:
        advice = "profiles are queries for databases of proteins"
        raise AlphabetMismatch(matrix.alphabet.name, PROTEIN.name, f"the profile {os.fspath(path)}", advice)
    stem = "stdin" if os.fspath(path) == "-" else Path(path).name.split(".")[0] or "query"
    if query_format == "pssm":
        return [read_pssm(path, matrix, f"{stem} PSSM")]
    if query_format == "stockholm":
        alignments = list(read_stockholm(path))
    else:
        alignments = [read_aligned_fasta(path, insertions=query_format == "a3m")]
    return [
        position_specific_query(alignment, matrix, _header(alignment, stem, number, len(alignments)))
        for number, alignment in enumerate(alignments, 1)
    ]


def _header(alignment: MultipleAlignment, stem: str, number: int, n_alignments: int) -> str:
    """Name and description of a profile; the file's name where the alignment has none."""
    name = (alignment.name.split(None, 1) or [stem if n_alignments == 1 else f"{stem}_{number}"])[0]
    return f"{name} profile of {len(alignment.codes):,} aligned sequences"
