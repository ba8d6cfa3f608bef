"""Cuts long subjects into overlapping windows, and finds the windows that must begin earlier.

Inputs are the lengths of subjects; :class:`Windows` has the columns of each window. ``verified_windows`` explains the
method and scores the windows. The module needs no device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.engine.cuda.runtime.kernels import CHECKPOINT_STRIDE, CHECKPOINTS
from swsearch.typing import Lengths, Scores

EXTENSION: Final = (CHECKPOINTS - 1) * CHECKPOINT_STRIDE
"""Maximum extension of a window in columns. If windows cannot be extended, they overlap by this number of columns more.
"""

ONE_PER_BYTE: Final = 0x01010101
"""A word with one byte per checkpoint, each 1."""
assert CHECKPOINTS == 4, "the kernel writes one word for the checkpoints of a window"


@dataclass(frozen=True)
class Size:
    """Windows of ``overlap + stride`` columns begin every ``stride`` columns; all are multiples of 16.

    The last window of a subject takes ``slant`` additional steps, a lower bound of the columns by which the query's
    last row lags behind its first.
    """

    overlap: int
    stride: int
    slant: int = 0


@dataclass(eq=False)
class Windows:
    """Windows of some subjects, ordered by subject and then by column: int64 arrays.

    Of shape (n,): ``subject``; ``checkpoint``, the subject's column at which the previous window ends and from which
    this one is needed, 0 for the first; ``begin`` and ``end``, the window's first column and the one after its last,
    which is the next checkpoint or the subject's length. ``first``, of shape (n_subjects,), is the index of each
    subject's first window.
    """

    subject: NDArray[np.int64]
    checkpoint: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.subject)

    @property
    def warmup_columns(self) -> Lengths:
        """Columns of each window before its checkpoint; 0 if the window needs no proof."""
        return np.where(self.begin > 0, self.checkpoint - self.begin, 0).astype(np.uint32)

    def n_columns(self, slant: int) -> Lengths:
        """Columns of each window before the next window's checkpoint; the query's last row may lag behind by ``slant``.

        A subject's last window has enough columns that all rows reach the subject's end and that the extension of the
        previous window ends within it.
        """
        columns = self.end - self.begin
        to_end = np.maximum(columns + slant, self.warmup_columns + EXTENSION)
        return np.where(self._has_next, columns, to_end + -to_end % SUBJECT_ALIGNMENT).astype(np.uint32)

    def after(self, unproven: NDArray[np.bool_], reach: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The unproven windows, and later ones with a checkpoint at most ``reach`` columns after an unproven one.

        ``reach`` has one number per subject. The checkpoints of these later windows may seem proven although both
        windows lack an alignment that begins before the unproven checkpoint.
        """
        apart = int(self.end.max() + reach.max()) + 1
        position = self.subject * apart + self.checkpoint
        last = np.maximum.accumulate(np.where(unproven, position, -apart))
        return position - last <= reach[self.subject]

    def unproven(self, agreed: NDArray[np.uint32], strips: int) -> NDArray[np.bool_]:
        """The windows that no checkpoint proves, after a launch that compared and extended windows itself.

        ``agreed``, uint32 of shape (n,), has one byte per checkpoint with the next window: the number of strips with
        equal values.
        """
        different = agreed ^ np.uint32(strips * ONE_PER_BYTE)
        # A word has a byte of 0 if and only if subtracting 1 from its bytes sets the top bit of a byte that lacks it.
        proven = (different - np.uint32(ONE_PER_BYTE)) & ~different & np.uint32(ONE_PER_BYTE << 7) != 0
        unproven = np.zeros(len(self), dtype=np.bool_)
        np.greater(self._has_next[:-1], proven[:-1], out=unproven[1:])
        return unproven

    @cached_property
    def _has_next(self) -> NDArray[np.bool_]:
        """Whether a later window belongs to the same subject."""
        return np.append(self.subject[1:] == self.subject[:-1], False)

    def begin_earlier(
        self, again: NDArray[np.bool_], overlaps: NDArray[np.int64], lengths: Lengths
    ) -> NDArray[np.bool_]:
        """Move the starts of windows ``overlaps`` columns before their checkpoints, with one number per subject.

        Returns the subjects whose windows would then have more columns in total than the subject. These subjects must
        be scored without windows, so their windows need no proof.
        """
        self.begin[again] = np.maximum(self.checkpoint - overlaps[self.subject], 0)[again]
        columns = np.bincount(self.subject[again], (self.end - self.begin)[again], minlength=len(self.first))
        whole: NDArray[np.bool_] = columns > lengths
        self.begin[whole[self.subject]] = 0  # a window from the subject's first column needs no proof
        return whole


@dataclass(frozen=True, eq=False)
class BestWindows:
    """The best scores of proven windows: where the best alignments of their subjects lie.

    ``score``, int32 of shape (n,), is the best score of each window, ``of_subjects`` the largest for each subject.
    ``elsewhere`` marks subjects whose score was computed without windows and exceeds that of all windows.
    """

    windows: Windows
    score: Scores
    of_subjects: Scores
    slant: int
    elsewhere: NDArray[np.bool_]

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The columns of each subject's first window with its score: the first one, and the one after the last.

        The range is unlimited for the subjects ``elsewhere``. The begin may be negative.
        """
        windows = self.windows
        with_best = np.flatnonzero(self.score == self.of_subjects[windows.subject])
        first = with_best[np.searchsorted(with_best, windows.first)]
        begin = np.where(self.elsewhere, 0, windows.begin[first] - self.slant)
        end = np.where(self.elsewhere, np.iinfo(np.int64).max, windows.end[first])
        return begin, end


def cut_in_windows(lengths: Lengths, size: Size) -> Windows:
    """Divide subjects, none of them empty, into windows; all windows of a subject except the last have the same length.

    Columns are those of the query's first row. The last checkpoint may lie after the subject's end, because the other
    rows lag behind the first.
    """
    whole = lengths.astype(np.int64)
    of_subjects = n_windows(whole, size)
    first = np.cumsum(of_subjects) - of_subjects
    subject = np.repeat(np.arange(len(whole)), of_subjects)
    begin = (np.arange(len(subject)) - first[subject]) * size.stride
    checkpoint = np.where(begin > 0, begin + size.overlap, 0)
    end = begin + size.overlap + size.stride
    last = first + of_subjects - 1
    end[last] = whole
    return Windows(subject, checkpoint, begin, end, first)


def n_windows(lengths: NDArray[np.int64], size: Size) -> NDArray[np.int64]:
    """Numbers of windows such that the last takes no more steps than the others and begins before the subject's end."""
    behind = min(size.slant, size.overlap)
    return np.maximum(-(-(lengths + behind - size.overlap) // size.stride), 1)
