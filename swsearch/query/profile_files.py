"""Readers of files of query profiles: the detection of the format, and NCBI's PSSMs in text format.

The readers of the other formats are :mod:`swsearch.query.asn1`, :mod:`swsearch.query.hmm` and
:mod:`swsearch.query.multiple_alignment`.

``psiblast -out_ascii_pssm`` writes PSSMs in text format. The file has a title, a line of column letters, and one line
per position with its number, its letter, and a score for each of the first twenty column letters. The rest of each
line, such as weighted percentages, and the lines of statistics at the end are ignored.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from swsearch.errors import AlphabetMismatch, InputError, ScoringError
from swsearch.query.profile import PositionSpecificQuery, with_other_letters
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import AMINO_ACIDS, N_AMINO_ACIDS, PROTEIN
from swsearch.sequences.source import shown_name, source_name, text_lines, text_stream, whole_number
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.query.contexts import Contexts
    from swsearch.query.multiple_alignment import MultipleAlignment


CHECKPOINT_TYPE: Final = "PssmWithParameters"
"""The type of PSI-BLAST's checkpoints in text ASN.1, with which such a file begins."""
_SAMPLE_BYTES: Final = 4096
"""Number of bytes at the start of a file from which its format is detected."""
_BINARY_SEQUENCE: Final = (b"\x30\x80", b"\x30\x82", b"\x30\x83", b"\x30\x84")
"""The first bytes of a record in binary ASN.1."""
_BINARY_HMM: Final = b"\xed\xed\xe8"
"""The second to fourth byte of HMMER3's binary files."""


def detect_query_format(path: str | os.PathLike[str]) -> str:
    """The format of a file: ``pssm``, ``asn1``, ``hmm`` or ``stockholm`` by its first line, otherwise ``fasta``.

    The file must be readable repeatedly (:func:`swsearch.sequences.source.seekable`).

    Raises
    ------
    InputError
        The file is binary ASN.1, or a binary file of HMMER.
    """
    begin = b""
    with suppress(InputError), text_stream(path, "") as stream:  # the reader of the complete file reports the error
        begin = stream.read(_SAMPLE_BYTES)
    if begin.startswith(_BINARY_SEQUENCE):
        advice = "psiblast -out_pssm writes text, and NCBI's datatool and asntool convert binary files to it"
        raise InputError(f"{shown_name(path)} looks like binary ASN.1, which is not read; {advice}")
    if begin[1:4] == _BINARY_HMM:
        raise InputError(f"{shown_name(path)} is a binary file of HMMER; convert it to text: hmmconvert FILE > TEXT")
    start = begin.decode("utf-8", "replace")
    first = next((line.strip() for line in start.splitlines() if line.strip()), "")
    if first.startswith("# STOCKHOLM"):
        return "stockholm"
    if first.startswith(CHECKPOINT_TYPE):
        return "asn1"
    if first.startswith("HMMER"):
        return "hmm"
    return "pssm" if "position-specific scoring matrix" in first.lower() else "fasta"


def read_profiles(
    path: str | os.PathLike[str], query_format: str, matrix: SubstitutionMatrix, *, contexts: Contexts | None = None
) -> list[PositionSpecificQuery]:
    """The queries of a file of profiles.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    query_format : str
        One of those of the option ``query_format``, except ``auto`` and ``fasta``.
    matrix : SubstitutionMatrix
        A matrix for proteins. It determines the scale, the pseudocounts, and the scores of letters other than amino
        acids.
    contexts : Contexts, optional
        Those that decide about the pseudocounts of alignments too, as in a sensitive search.

    Raises
    ------
    InputError
        The file cannot be read in this format, or the matrix is not for proteins.
    """
    if matrix.alphabet is not PROTEIN:
        advice = "profiles are queries for databases of proteins"
        raise AlphabetMismatch(matrix.alphabet.name, PROTEIN.name, f"the profile {shown_name(path)}", advice)
    stem = source_name(path).strip("<>").split(".")[0] or "query"
    # The readers are imported where a file needs them, since nearly all query files are sequences.
    if query_format == "pssm":
        return [read_pssm(path, matrix, f"{stem} PSSM")]
    if query_format == "asn1":
        from swsearch.query.asn1 import read_checkpoints

        return list(read_checkpoints(path, matrix, stem))
    if query_format == "hmm":
        from swsearch.query.hmm import read_families

        return [family.query for family in read_families(path, matrix)]
    from swsearch.query.estimation import position_specific_query
    from swsearch.query.multiple_alignment import read_aligned_fasta, read_stockholm

    if query_format == "stockholm":
        alignments = list(read_stockholm(path))
    else:
        alignments = list(read_aligned_fasta(path, insertions=query_format == "a3m"))
    try:
        return [
            position_specific_query(
                alignment, matrix, _header(alignment, stem, number, len(alignments)), contexts=contexts
            )
            for number, alignment in enumerate(alignments, 1)
        ]
    except ScoringError:
        raise
    except InputError as error:
        raise InputError(f"{shown_name(path)}, {error}") from error


def _header(alignment: MultipleAlignment, stem: str, number: int, n_alignments: int) -> str:
    """The header of a profile: the name of the alignment, or else that of the file, and a description."""
    name = (alignment.name.split(None, 1) or [stem if n_alignments == 1 else f"{stem}_{number}"])[0]
    return f"{name} profile of {counted(len(alignment.codes), 'aligned sequence')}"


_AMINO_ACIDS: Final = frozenset(AMINO_ACIDS)


def read_pssm(path: str | os.PathLike[str], matrix: SubstitutionMatrix, header: str) -> PositionSpecificQuery:
    """The query of a PSSM file.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    matrix : SubstitutionMatrix
        Matrix for the scores of letters without a column in the PSSM.
    header : str
        Header of the query, because the file has none.

    Raises
    ------
    InputError
        The file is not a PSSM in this format; the message names the line.
    """
    name = shown_name(path)
    columns: list[int] = []
    letters: list[str] = []
    rows: list[list[int]] = []
    for number, line in enumerate(text_lines(path, name), 1):
        fields = line.split()
        if not columns:
            if len(fields) >= N_AMINO_ACIDS and set(fields[:N_AMINO_ACIDS]) == _AMINO_ACIDS:
                columns = [PROTEIN.code(letter) for letter in fields[:N_AMINO_ACIDS]]
            continue
        if not fields or not (fields[0].isascii() and fields[0].isdecimal()):
            break
        if fields[0].lstrip("0") != str(len(rows) + 1):
            problem = f"position {fields[0][:20]} where {len(rows) + 1} is due"
            raise InputError(f"{name}, line {number}: {problem}; correct the PSSM")
        try:
            scores = [whole_number(field) for field in fields[2 : 2 + N_AMINO_ACIDS]]
        except ValueError as error:
            raise InputError(f"{name}, line {number}: a score is wrong ({error}); correct the PSSM") from error
        if len(scores) < N_AMINO_ACIDS:
            problem = f"{counted(len(scores), 'score')}, {N_AMINO_ACIDS} are needed"
            raise InputError(f"{name}, line {number}: {problem}; the file may be cut short")
        letters.append(fields[1])
        rows.append(scores)
    if not rows:
        raise InputError(
            f"{name} is not a PSSM as `psiblast -out_ascii_pssm` writes it: no column letters, or no positions"
        )
    try:
        consensus = PROTEIN.encode("".join(letters))
    except InputError as error:
        raise InputError(f"{name}: the second column is not the query: {error}") from error
    if len(consensus) != len(rows):
        raise InputError(
            f"{name}: the second column holds {counted(len(consensus), 'letter')} for {counted(len(rows), 'position')}"
        )
    scores_by_code = np.empty((len(rows), N_AMINO_ACIDS), dtype=np.int64)
    scores_by_code[:, columns] = rows
    try:
        scores_table = with_other_letters(scores_by_code, consensus, matrix)
    except ScoringError as error:
        raise ScoringError(f"{name}: {error}") from error
    return PositionSpecificQuery(header, consensus, PROTEIN, scores_table)
