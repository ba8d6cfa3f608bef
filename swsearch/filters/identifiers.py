"""Files of identifiers, and the rules by which an identifier denotes a subject.

The names of a subject are the first word of its header and the parts of this word between bars, without database tags:
``sp|P02232|LGB1_VICFA`` also has the names ``P02232`` and ``LGB1_VICFA``. An accession with a version (capital letters
and digits followed by ``.1``, for example) also has the accession without version as a name: ``NP_000537`` in a list
denotes the subject ``NP_000537.3``. The reverse does not hold: an identifier with a version denotes only that version.
Case is significant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from swsearch.errors import InputError
from swsearch.sequences.lines import text_lines
from swsearch.words import counted

_TAG: Final = re.compile("bbm|bbs|dbj|emb|gb|gi|gim|gnl|gp|lcl|oth|pat|pdb|pgp|pir|prf|ref|sp|tpd|tpe|tpg|tr")
"""Database tags in headers of UniProt and NCBI."""
_VERSIONED: Final = re.compile(r"((?=[A-Z_]*+[0-9])[A-Z]++_?+[A-Z0-9]*+)\.[0-9]{1,3}")
"""An accession with a version. The quantifiers are possessive, so the time is linear in the length of the word."""


def names_of(identifier: str) -> Iterator[str]:
    """All names of a subject, derived from the first word of its header; a name may occur twice.

    >>> list(names_of("sp|P02232.2|LGB1_VICFA"))
    ['sp|P02232.2|LGB1_VICFA', 'P02232.2', 'P02232', 'LGB1_VICFA']
    """
    parts = [identifier]
    if "|" in identifier:
        parts += [part for part in identifier.split("|") if part and not _TAG.fullmatch(part)]
    for part in parts:
        yield part
        versioned = _VERSIONED.fullmatch(part)
        if versioned is not None:
            yield versioned[1]


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
