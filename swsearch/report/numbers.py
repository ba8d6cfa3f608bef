"""Numbers as text, the same on every machine.

The functions ``blast_*`` use the number formats of NCBI BLAST+ 2.12, checked against its output: fewer digits for less
significant values, an E-value below 1e-180 as ``0.0``, and a bit score above 99.9 without decimals, truncated rather
than rounded.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "N/A"
"""BLAST's text for an unknown value, also in the BLAST formats here."""

_ZERO_BELOW = 1e-180


def blast_evalue(evalue: float | None, *, digits: int = 0) -> str:
    """An E-value as BLAST prints it, with ``digits`` decimals if it is in scientific notation.

    BLAST uses 0 decimals in its pairwise reports and 2 in its tabular reports.

    >>> [blast_evalue(value) for value in (1e-200, 2.58e-103, 1.2e-5, 0.0123, 0.5, 3.14, 138.4)]
    ['0.0', '3e-103', '1e-05', '0.012', '0.50', '3.1', '138']
    """
    if evalue is None:
        return UNKNOWN
    if evalue < _ZERO_BELOW:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.{digits}e}"
    if evalue < 0.1:
        return f"{evalue:.3f}"
    if evalue < 1.0:
        return f"{evalue:.2f}"
    if evalue < 10.0:
        return f"{evalue:.1f}"
    return f"{evalue:.0f}"


def blast_bits(bits: float | None) -> str:
    """A bit score as BLAST prints it; a score below 100 has at least four characters.

    >>> [blast_bits(value) for value in (8.81, 99.9, 175.9, 123456.0)]
    [' 8.8', '99.9', '175', '1.235e+05']
    """
    if bits is None:
        return UNKNOWN
    if bits > 99_999:
        return f"{bits:.3e}"
    if bits > 99.9:
        return str(int(bits))
    return f"{bits:4.1f}"


def percent(part: int, whole: int) -> float:
    """``part`` of ``whole`` in percent; 0 if ``whole`` is 0.

    >>> percent(1, 3)
    33.333333333333336
    """
    return 100 * part / whole if whole else 0.0


def whole_percent(part: int, whole: int) -> int:
    """``part`` of ``whole`` in percent, rounded to an integer as by BLAST: half up, and 100 only if they are equal.

    >>> whole_percent(299, 300), whole_percent(300, 300), whole_percent(1, 8)
    (99, 100, 13)
    """
    if part >= whole:
        return 100
    return min(99, (200 * part + whole) // (2 * whole))
