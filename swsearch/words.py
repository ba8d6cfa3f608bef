"""Singular and plural in messages and reports."""

from __future__ import annotations


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: ``noun`` for 1, otherwise ``plural`` or, by default, ``noun`` with an s.

    >>> counted(1, "sequence"), counted(1500, "protein sequence"), counted(0, "query", "queries")
    ('1 sequence', '1,500 protein sequences', '0 queries')
    """
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
