"""The names of a sequence: the identifiers by which lists and maps denote it.

They are the first word of its header and the parts of this word between bars, without database tags:
``sp|P02232|LGB1_VICFA`` also has the names ``P02232`` and ``LGB1_VICFA``. An accession with a version (capital letters
and digits followed by ``.1``, for example) also has the accession without version as a name: ``NP_000537`` in a list
denotes the subject ``NP_000537.3``. The reverse does not hold: an identifier with a version denotes only that version.
Case is significant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

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
