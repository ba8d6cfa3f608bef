"""Links from hits to public databases, by the identifiers in the headers of subjects.

A table has a row for each link: a name, a regular expression that the whole first word of a header must match, and an
address, in which ``{1}`` stands for the first group of the expression. Names that no row knows have no link, so those
of a laboratory's own sequences never leave it.

``SWSEARCH_LINKS`` names a file with further rows, which come before :data:`PUBLIC`: three columns separated by tabs,
``#`` before a remark. A row with ``-`` for its address ends the search: names that it matches have no link. So
``-  LAB_.*  -`` keeps the names of a laboratory private, and ``-  .*  -`` as the last row turns the public links off.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Final
from urllib.parse import quote, urlsplit

from swsearch.errors import InputError
from swsearch.sequences.record import identifier

LINKS_VARIABLE: Final = "SWSEARCH_LINKS"
"""Environment variable that names a file of links."""
_NO_ADDRESS: Final = "-"
_LONGEST: Final = 100
"""Longest identifier that is looked for, in characters; expressions of a file may take long for more."""
_UNIPROT: Final = r"[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}"
"""An accession of UniProt, as its manual defines them."""


LinkPattern = tuple[str, re.Pattern[str], str]
"""A row of the table: the words of the link, what matches the whole identifiers that have it, and the address, with
``{1}`` for the first group; ``-`` for no link, and none of a later row."""


def _public(name: str, pattern: str, address: str) -> LinkPattern:
    return name, re.compile(pattern), address


_NAMED_BY_UNIPROT: Final = rf"(?:sp|tr)\|({_UNIPROT})(?:\.[0-9]+)?\|\w+"
_REFSEQ: Final = r"(?:[ANXYW]P)_[0-9]{6,9}(?:\.[0-9]{1,3})?"
_REFSEQ_DNA: Final = r"(?:AC|NC|NG|NT|NW|NZ|NM|NR|XM|XR)_[A-Z0-9]{6,14}(?:\.[0-9]{1,3})?"
PUBLIC: Final = (
    _public("UniProt", _NAMED_BY_UNIPROT, "https://www.uniprot.org/uniprotkb/{1}"),
    _public("AlphaFold", _NAMED_BY_UNIPROT, "https://alphafold.ebi.ac.uk/entry/{1}"),
    _public("UniRef", r"(UniRef(?:100|90|50)_\w+)", "https://www.uniprot.org/uniref/{1}"),
    _public("NCBI", rf"(?:ref\|)?({_REFSEQ})\|?", "https://www.ncbi.nlm.nih.gov/protein/{1}"),
    _public("NCBI", rf"(?:ref\|)?({_REFSEQ_DNA})\|?", "https://www.ncbi.nlm.nih.gov/nuccore/{1}"),
    _public("NCBI", r"(?:gb|emb|dbj)\|([A-Z]{3}[0-9]{5,7}\.[0-9]{1,3})\|", "https://www.ncbi.nlm.nih.gov/protein/{1}"),
    _public(
        "NCBI", r"(?:gb|emb|dbj)\|([A-Z]{1,2}[0-9]{5,8}\.[0-9]{1,3})\|", "https://www.ncbi.nlm.nih.gov/nuccore/{1}"
    ),
    _public("PDB", r"pdb\|([0-9][A-Za-z0-9]{3})(?:\|\w*)?", "https://www.rcsb.org/structure/{1}"),
    _public("PDB", r"([0-9][A-Za-z0-9]{3})_[A-Za-z0-9]{1,4}", "https://www.rcsb.org/structure/{1}"),
    _public("Pfam", r"(PF[0-9]{5})(?:\.[0-9]+)?", "https://www.ebi.ac.uk/interpro/entry/pfam/{1}"),
)
"""The links of public databases: UniProt, AlphaFold, NCBI, PDB and Pfam."""


def links_of(header: str) -> list[tuple[str, str]]:
    """Names and addresses of the links of a subject, by the first word of its header; one for each name.

    >>> links_of("sp|P02232|LGB1_VICFA Leghemoglobin-1")[0]
    ('UniProt', 'https://www.uniprot.org/uniprotkb/P02232')
    >>> links_of("LAB_0001 a sequence of ours")
    []
    """
    word = identifier(header)
    if len(word) > _LONGEST:
        return []
    found: dict[str, str] = {}
    for name, pattern, address in link_table():
        matched = pattern.fullmatch(word)
        if matched is None:
            continue
        if address == _NO_ADDRESS:
            break
        first = matched[1] if pattern.groups else matched[0]
        found.setdefault(name, address.replace("{1}", quote(first or "", safe="")))
    return list(found.items())


def link_table() -> tuple[LinkPattern, ...]:
    """The rows of the file that ``SWSEARCH_LINKS`` names, if there is one, and :data:`PUBLIC`.

    Raises
    ------
    InputError
        The file cannot be read, or one of its rows cannot be used.
    """
    path = os.environ.get(LINKS_VARIABLE)
    return _table(path) if path else PUBLIC


@cache
def _table(path: str) -> tuple[LinkPattern, ...]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{LINKS_VARIABLE}={path}: the file cannot be read: {error}") from error
    rows = [
        _row(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    ]
    return (*rows, *PUBLIC)


def _row(line: str, place: str) -> LinkPattern:
    columns = line.split("\t")
    if len(columns) != 3:
        raise InputError(f"{place}: give name, regular expression and address, separated by tabs")
    name, pattern, address = (column.strip() for column in columns)
    try:
        compiled = re.compile(pattern)
        scheme = urlsplit(address).scheme
    except (re.error, ValueError) as error:
        raise InputError(f"{place}: {error}") from error
    if address != _NO_ADDRESS and scheme not in ("http", "https"):
        raise InputError(f"{place}: {address} is not an address of http or https; write - for no link")
    return name, compiled, address
