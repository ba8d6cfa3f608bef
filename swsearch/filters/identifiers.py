"""Files of identifiers, by which a user chooses subjects; :mod:`swsearch.sequences.identifiers` has their rules."""

from __future__ import annotations

from swsearch.errors import InputError
from swsearch.sequences.identifiers import names_of
from swsearch.sequences.lines import text_lines
from swsearch.words import counted


class IdentifierList:
    """The identifiers of a file: the first word of each line, without empty lines and lines that begin with ``#``.

    The file may be compressed.

    Parameters
    ----------
    option : str
        The option by which the file was specified, for messages.
    path : str

    Raises
    ------
    InputError
        The file cannot be read or contains no identifier.
    """

    def __init__(self, option: str, path: str) -> None:
        self.option = option
        self.path = path
        words = (line.split(None, 1) for line in text_lines(path, f"{option} {path}"))
        self.wanted = frozenset(word[0] for word in words if word and not word[0].startswith("#"))
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
            f"{self.option} {self.path}: {len(missing):,} of {counted(len(self.wanted), 'identifier')} "
            f"{'is' if len(missing) == 1 else 'are'} not in the database, {missing[0]!r} for one"
        )
