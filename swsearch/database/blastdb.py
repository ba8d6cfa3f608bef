"""Sequences of BLAST databases: NCBI's ``blastdbcmd`` exports them, and they are indexed like a FASTA file.

:func:`exported` copies all sequences to a temporary file, as of a pipe (:mod:`swsearch.sequences.source`). Nothing is
indexed unless the program ends without an error and all sequences are there. Headers are those that BLAST shows: the
identifier is its ``sseqid``. The taxonomy id of a sequence is added as ``OX=``, where filters and reports look for it.

:func:`blast_name` recognizes a BLAST database by its files.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import IO, BinaryIO, Final

from swsearch.errors import DatabaseError, writing_to
from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet
from swsearch.sequences.source import HeldFile

_PROGRAM: Final = "blastdbcmd"
_INDICES: Final = (".pin", ".pal", ".nin", ".nal")
"""Suffixes of the indices of volumes, and of the files that list volumes."""
_SUFFIX: Final = re.compile(r"(?:\.\d\d+)?\.[pn](?:in|al|hr|sq|db|og|os|ot|tf|to|js|sd|si|nd|ni)$")
_KINDS: Final[dict[str, Alphabet]] = {"residues": PROTEIN, "bases": DNA}
_OPTIONS: Final = {PROTEIN.name: "prot", DNA.name: "nucl"}
_LINE_LETTERS: Final = "100000"
# BLAST puts these before identifiers of no registered kind, and never shows them.
_LOCAL: Final = re.compile(rb"^>(?:lcl\||gnl\|BL_ORD_ID\|\d+ ?)")


def blast_name(path: str | os.PathLike[str]) -> str | None:
    """The name of the BLAST database at a path, which is its name or one of its files; None if there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open(f"{folder}/swissprot.00.pin", "w").close()
    ...     open(f"{folder}/swissprot.pal", "w").close()
    ...     found = [blast_name(f"{folder}/{name}") for name in ("swissprot", "swissprot.00.pin", "nr")]
    >>> [name and os.path.basename(name) for name in found]
    ['swissprot', 'swissprot', None]
    """
    name = os.fspath(path)
    for stem in (name, _SUFFIX.sub("", name)):
        if any(os.path.isfile(stem + suffix) for suffix in _INDICES):
            return stem
    return None


def exported(
    name: str, alphabet: Alphabet | None = None, *, begin: Callable[[Alphabet, int], None] = lambda *_: None
) -> tuple[HeldFile, Alphabet]:
    """All sequences of a BLAST database as FASTA.

    Parameters
    ----------
    name : str
        As for BLAST's ``-db``: a path without suffix, or a name that BLAST finds in the folders of ``BLASTDB``.
    alphabet : Alphabet, optional
        Needed if there are a protein and a nucleotide database of this name.
    begin : callable
        Called before the export, with the alphabet and the number of sequences.

    Returns
    -------
    source : HeldFile
        A temporary file, for the functions that read sequence files.
    alphabet : Alphabet

    Raises
    ------
    DatabaseError
        ``blastdbcmd`` is not installed, or fails, or gives another number of sequences than the database has.
    """
    kind = "guess" if alphabet is None else _OPTIONS[alphabet.name]
    database = ["-db", name, "-dbtype", kind]
    holds, n_sequences = _content(name, database)
    begin(holds, n_sequences)
    every = [*database, "-entry", "all"]
    with tempfile.TemporaryFile(prefix="swsearch-blastdb-") as spool:
        fasta = [*every, "-outfmt", "%f", "-long_seqids", "-line_length", _LINE_LETTERS]
        with _started(name, [*every, "-outfmt", "%o %T"]) as lines:
            taxids = _taxids(lines)
            with _started(name, fasta) as sequences, writing_to(tempfile.gettempdir()):
                n_copied = _copy(sequences, taxids, spool)
                spool.flush()
            deque(taxids, maxlen=0)  # the program fails if nobody reads its last lines
        if n_copied != n_sequences:
            raise DatabaseError(
                f"{name}: {_PROGRAM} gave {n_copied:,} of {n_sequences:,} sequences; "
                "check the database with `blastdbcheck`"
            )
        return HeldFile(name, os.dup(spool.fileno())), holds


def _content(name: str, database: Sequence[str]) -> tuple[Alphabet, int]:
    """The alphabet and the number of sequences, as ``blastdbcmd -info`` tells them."""
    with _started(name, [*database, "-info"]) as output:
        text = output.read().decode("utf-8", "replace")
    found = re.search(r"([\d,]+) sequences?; [\d,]+ total (residues|bases)", text)
    if found is None:
        raise DatabaseError(f"{name}: {_PROGRAM} -info tells no number of sequences; update ncbi-blast+")
    return _KINDS[found[2]], int(found[1].replace(",", ""))


def _copy(lines: Iterable[bytes], taxids: Iterator[bytes], spool: BinaryIO | IO[bytes]) -> int:
    """Copy FASTA with headers as BLAST shows them and taxonomy ids; returns the number of records."""
    n_records = 0
    for line in lines:
        if line.startswith(b">"):
            n_records += 1
            taxid = next(taxids, b"")
            header = _LOCAL.sub(b">", line)
            has_taxid = not taxid or b" OX=" in header
            spool.write(header if has_taxid else b"%b OX=%b\n" % (header.rstrip(), taxid))
        else:
            spool.write(line)
    return n_records


def _taxids(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The first taxonomy id of each sequence, empty if it has none; a sequence of several names has several lines."""
    for _, several in groupby(map(bytes.split, lines), key=lambda words: words[0]):
        found = [words[1] for words in several if len(words) > 1 and words[1].isdigit() and words[1] != b"0"]
        yield found[0] if found else b""


@contextmanager
def _started(name: str, arguments: Sequence[str]) -> Iterator[IO[bytes]]:
    """The output of ``blastdbcmd``, which is killed if the block raises; its failure is an error after the block."""
    with tempfile.TemporaryFile(prefix="swsearch-blastdb-") as errors:
        try:
            process = subprocess.Popen(
                [_PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except OSError as error:
            raise DatabaseError(
                f"{name}: a BLAST database is read with {_PROGRAM}, which cannot be started ({error.strerror}); "
                "install BLAST+ (Debian: ncbi-blast+)"
            ) from error
        with process:
            try:
                assert process.stdout is not None
                yield process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            told = errors.read(10_000).decode("utf-8", "replace").split("\n")
            how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
            reason = next((line.strip() for line in told if line.strip()), "it printed no reason")
            raise DatabaseError(f"{name}: {_PROGRAM} failed ({how}): {reason}")
