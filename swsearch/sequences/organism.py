"""The organisms in a header: NCBI taxonomy ids and a scientific name, as UniProt and UniRef state them.

UniProt has ``OS=`` for the name and ``OX=`` for the id, UniRef has ``Tax=`` before ``TaxID=``. Filters and reports use
these functions. For headers without these fields, no organism is inferred from other words.
"""

from __future__ import annotations

import re
from typing import Final

_TAXID: Final = re.compile(r"(?:^|\s)(?:OX|TaxID)=([0-9]{1,18})(?=\s|$)")
_ORGANISM: Final = re.compile(r"(?:^|\s)OS=")
_FIELD: Final = re.compile(r"\s[A-Z]{2}=")
_UNIREF_NAME: Final = " Tax="
_UNIREF_TAXID: Final = " TaxID="


def header_taxid(header: str) -> int | None:
    """The first taxonomy id in a header; None if it has none.

    >>> header_taxid("sp|P69905|HBA_HUMAN Hemoglobin OS=Homo sapiens OX=9606 GN=HBA1 PE=1 SV=2")
    9606
    >>> header_taxid("UniRef90_A0A5A9P0L4 isomerase n=1 Tax=Triplophysa TaxID=1572043 RepID=A0A5A9P0L4_9TELE")
    1572043
    """
    found = _TAXID.search(header)
    return None if found is None else int(found[1])


def header_taxids(header: str) -> tuple[int, ...]:
    r"""All different taxonomy ids in a header, ascending; several if headers of equal sequences were joined.

    >>> header_taxids("P1 one OS=Homo sapiens OX=9606 SV=1\x01P2 other OX=9598 OX=9606")
    (9598, 9606)
    """
    return tuple(sorted({int(found) for found in _TAXID.findall(header)}))


def header_organism(header: str) -> str | None:
    """The scientific name of the organism in a header; None if it has none.

    >>> header_organism("sp|P69905|HBA_HUMAN Hemoglobin OS=Homo sapiens OX=9606 GN=HBA1 PE=1 SV=2")
    'Homo sapiens'
    >>> header_organism("UniRef90_A0A5A9P0L4 n=1 Tax=Triplophysa tibetana TaxID=1572043 RepID=A0A5A9P0L4_9TELE")
    'Triplophysa tibetana'
    """
    found = _ORGANISM.search(header)
    if found is None:
        before, taxid, _ = header.partition(_UNIREF_TAXID)
        return before.partition(_UNIREF_NAME)[2].strip() or None if taxid else None
    after = _FIELD.search(header, found.end())
    return header[found.end() : None if after is None else after.start()].strip() or None
