r"""The lines of a file of NCBI's taxdump, read column by column with array operations.

A line is ``column\t|\tcolumn\t|\n``. Where no bar of a block follows a tab, every bar separates columns. Blanks around
the value of a column are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.sequences.archives import Readable
from swsearch.taxonomy.texts import Numbers, Texts, ranges

_BLOCK_BYTES: Final = 1 << 22
_TAB, _LINE_FEED, _BLANK, _BAR, _ZERO = b"\t\n |0"
_MAX_LINE_BYTES: Final = 1 << 24
_MAX_DIGITS: Final = 10
_LARGEST: Final = 2**32 - 1

Places = NDArray[np.int64]


class MalformedLine(ValueError):
    """A line that is not of the file's form.

    Attributes
    ----------
    line : int
        Number of the line in the block, from 0.
    """

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(f"line {line}")


class DumpLines:
    """The lines of a block of text.

    Parameters
    ----------
    text : uint8 array
        Whole lines; the last byte is a line feed.
    """

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self._text = text
        self._line_ends = np.flatnonzero(text == _LINE_FEED)
        self._line_starts = np.concatenate((np.zeros(1, np.int64), self._line_ends[:-1] + 1))
        bars = np.flatnonzero(text == _BAR)
        after_tab = text[bars - 1] == _TAB
        self._bars = bars[after_tab] if after_tab.any() else bars
        self._first_bar = np.searchsorted(self._bars, self._line_starts)
        self._n_bars = np.searchsorted(self._bars, self._line_ends) - self._first_bar

    def __len__(self) -> int:
        return len(self._line_ends)

    def numbers(self, column: int) -> Numbers:
        """The numbers in a column, counted from 0; uint32, shape (n_lines,).

        Raises
        ------
        MalformedLine
            A line has no such column, or the value is no number from 0 to 2^32 - 1.
        """
        starts, ends = self._places(column)
        is_number = (self._n_bars > column) & (ends > starts) & (ends - starts <= _MAX_DIGITS)
        values = np.zeros(len(self), np.int64)
        for place in range(int((ends - starts)[is_number].max(initial=0))):
            at = starts + place
            inside = (at < ends) & is_number
            digits = self._text[np.minimum(at, ends)].astype(np.int64) - _ZERO
            is_number &= ~inside | ((digits >= 0) & (digits <= 9))
            values = np.where(inside, 10 * values + digits, values)
        is_number &= values <= _LARGEST
        if not is_number.all():
            raise MalformedLine(int(np.argmin(is_number)))
        return values.astype(np.uint32)

    def codes(self, column: int, known: dict[bytes, int]) -> NDArray[np.uint16]:
        """The values of a column with few different values, as numbers; uint16, shape (n_lines,).

        Parameters
        ----------
        column : int
            A line without this column has an empty value.
        known : dict
            The number of each value; values that it lacks are added, and numbered as they come.

        Raises
        ------
        MalformedLine
            The line has the 65,536th different value.
        """
        starts, ends = self._places(column)
        sizes = ends - starts
        codes = np.zeros(len(self), np.uint16)
        left = np.arange(len(self))
        while left.size:
            first = left[0]
            value = self._text[starts[first] : ends[first]]
            code = known.setdefault(value.tobytes(), len(known))
            if code > np.iinfo(np.uint16).max:
                raise MalformedLine(int(first))
            equal = self._equal(left, value, starts, sizes)
            codes[left[equal]] = code
            left = left[~equal]
        return codes

    def lines_with(self, column: int, value: bytes) -> Places:
        """The lines, from 0, that have this value in a column, ascending."""
        starts, ends = self._places(column)
        every = np.arange(len(self))
        return every[self._equal(every, np.frombuffer(value, np.uint8), starts, ends - starts)]

    def texts(self, column: int, lines: Places) -> Texts:
        """The texts of a column in some lines, which ascend."""
        starts, ends = self._places(column)
        starts, ends = starts[lines], ends[lines]
        sizes = ends - starts
        return Texts(self._text[ranges(starts, sizes)], np.cumsum(sizes).astype(np.uint32))

    def _equal(self, lines: Places, value: NDArray[np.uint8], starts: Places, sizes: Places) -> NDArray[np.bool_]:
        """For each of these lines, whether its text from ``starts`` on, of ``sizes`` bytes, is ``value``."""
        equal: NDArray[np.bool_] = sizes[lines] == len(value)
        candidates = np.flatnonzero(equal)
        places = starts[lines[candidates], np.newaxis] + np.arange(len(value))
        equal[candidates] = (self._text[places] == value).all(axis=1)
        return equal

    def _places(self, column: int) -> tuple[Places, Places]:
        """Start and end of a column's value in each line; empty where the line has no such column."""
        is_there = self._n_bars > column
        last = np.maximum(len(self._bars) - 1, 0)
        ends = self._line_starts.copy()
        starts = self._line_starts.copy()
        if is_there.any():
            ends[is_there] = self._bars[np.minimum(self._first_bar + column, last)][is_there]
            if column:
                starts = self._bars[np.minimum(self._first_bar + column - 1, last)] + 1
                starts[~is_there] = ends[~is_there]
        while (blank := (starts < ends) & self._is_blank(starts)).any():
            starts[blank] += 1
        while (blank := (starts < ends) & self._is_blank(ends - 1)).any():
            ends[blank] -= 1
        return starts, ends

    def _is_blank(self, places: Places) -> NDArray[np.bool_]:
        found = self._text[places]
        blank: NDArray[np.bool_] = (found == _TAB) | (found == _BLANK)
        return blank


def line_blocks(file: Readable) -> Iterator[DumpLines]:
    """The lines of a file in blocks of some megabytes; a line feed that is missing at the end is added.

    Raises
    ------
    MalformedLine
        A line has more than 16 MB; it is the first of the block that would follow.
    """
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        whole = block.rfind(b"\n") + 1
        if whole:
            yield DumpLines(np.frombuffer(rest + block[:whole], np.uint8))
            rest = block[whole:]
        else:
            rest += block
            if len(rest) > _MAX_LINE_BYTES:
                raise MalformedLine(0)
    if rest:
        yield DumpLines(np.frombuffer(rest + b"\n", np.uint8))
