"""The organism in a header in UniProt's format: ``OS=``, its scientific name, and ``OX=``, its NCBI taxonomy id.

Filters and reports use these functions. For headers without these fields, no organism is inferred from other words.
"""

from __future__ import annotations

import re
from typing import Final

_TAXID: Final = re.compile(r"(?:^|\s)OX=([0-9]{1,18})(?=\s|$)")
_ORGANISM: Final = re.compile(r"(?:^|\s)OS=")
_FIELD: Final = re.compile(r"\s[A-Z]{2}=")


def header_taxid(header: str) -> int | None:
    """The taxonomy id in a header; None if it has none.

    >>> header_taxid("sp|P69905|HBA_HUMAN Hemoglobin OS=Homo sapiens OX=9606 GN=HBA1 PE=1 SV=2")
    9606
    """
    found = _TAXID.search(header)
    return None if found is None else int(found[1])


def header_organism(header: str) -> str | None:
    """The scientific name of the organism in a header; None if it has none.

    >>> header_organism("sp|P69905|HBA_HUMAN Hemoglobin OS=Homo sapiens OX=9606 GN=HBA1 PE=1 SV=2")
    'Homo sapiens'
    """
    found = _ORGANISM.search(header)
    if found is None:
        return None
    after = _FIELD.search(header, found.end())
    return header[found.end() : None if after is None else after.start()].strip() or None
