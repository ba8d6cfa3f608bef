"""What headers of FASTA say: the names of a sequence, and its organisms.

The *names* are the identifiers by which lists and maps denote a sequence: the first word of its header and the parts of
this word between bars, without database tags: ``sp|P02232|LGB1_VICFA`` also has the names ``P02232`` and
``LGB1_VICFA``. An accession with a version (capital letters and digits followed by ``.1``, for example) also has the
accession without version as a name: ``NP_000537`` in a list denotes the subject ``NP_000537.3``. The reverse does not
hold: an identifier with a version denotes only that version. Case is significant.

The *organisms* are NCBI taxonomy ids and a scientific name, as UniProt and UniRef state them. UniProt has ``OS=`` for
the name and ``OX=`` for the id, UniRef has ``Tax=`` before ``TaxID=``. For headers without these fields, no organism is
inferred from other words.
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
