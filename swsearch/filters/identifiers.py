"""Files of identifiers, by which a user chooses subjects; :mod:`swsearch.sequences.identifiers` has their rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from swsearch.errors import InputError
from swsearch.sequences.identifiers import names_of
from swsearch.sequences.lines import text_lines
from swsearch.words import as_options, counted


def identifier_lines(option: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file of identifiers, counted from 1, as words, of which the first is the identifier.

    Empty lines and lines that begin with ``#`` are left out. The file may be compressed; ``-`` is stdin.

    Raises
    ------
    InputError
        The file cannot be read, or is FASTA or FASTQ; the message begins with ``option``.
    """
    lines = text_lines(path, f"{option} {path}")
    first = list(islice(lines, 3))
    if [line[:1] for line in first[::2]] == ["@", "+"]:
        raise InputError(f"{option} {path}: this is FASTQ; give identifiers, one a line, and no sequences")
    for number, line in enumerate(chain(first, lines), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0].startswith(">"):
            problem = "a header of FASTA; give identifiers without '>', one a line, and no sequences"
            raise InputError(f"{option} {path}, line {number}: {problem}")
        yield number, words


class IdentifierList:
    """The identifiers of a file, by the rules of :func:`identifier_lines`.

    Parameters
    ----------
    option : str
        The option by which the file was specified, for messages.
    path : str

    Raises
    ------
    InputError
        The file cannot be read, is FASTA or FASTQ, or contains no identifier.
    """

    def __init__(self, option: str, path: str) -> None:
        self.option = option
        self.path = path
        self.wanted = frozenset(words[0] for _, words in identifier_lines(option, path))
        if not self.wanted:
            raise InputError(f"{option} {path}: the file names no identifier; give one a line")
        self._found: set[str] = set()

    def names(self, identifier: str) -> bool:
        """Whether an identifier of the list denotes the subject with this first word."""
        known = [name for name in names_of(identifier) if name in self.wanted]
        self._found.update(known)
        return bool(known)

    def note(self) -> str | None:
        """A message about the identifiers that have denoted no subject so far; None if there are none."""
        missing = sorted(self.wanted - self._found)
        if not missing:
            return None
        return (
            f"{as_options(self.option)} {self.path}: {len(missing):,} of {counted(len(self.wanted), 'identifier')} "
            f"{'is' if len(missing) == 1 else 'are'} not in the database, {missing[0]!r} for one"
        )
