"""Functions that fit text to one line, one column, or a maximum width."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\0-\x1f\x7f\x85\u2028\u2029]")


def one_line(text: str) -> str:
    r"""Text with a space for each tab, line end and other control character, so that it cannot break a table.

    >>> one_line("a\tb\r\n")
    'a b  '
    """
    return _CONTROL.sub(" ", text)


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` characters; ``…`` replaces the omitted end.

    >>> cut("Leghemoglobin", 8)
    'Leghemo…'
    """
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
