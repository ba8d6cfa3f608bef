"""Consecutive records of an input as arrays: what the readers of sequence files hand to the database builder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from swsearch.sequences.alphabet import Alphabet
from swsearch.typing import Codes, Lengths, Offsets


@dataclass(frozen=True, eq=False)
class SequenceChunk:
    """Consecutive records of an input.

    Attributes
    ----------
    alphabet : Alphabet
    codes : uint8 array, shape (n_residues,)
        Residue codes of all records, concatenated.
    lengths : uint32 array, shape (n_records,)
        Number of residues of each record, at least 1.
    header_bytes : uint8 array
        Headers of all records as they were read, without ``>`` or ``@`` and without trailing white space, concatenated.
    header_ends : uint64 array, shape (n_records,)
        Offset in ``header_bytes`` of the end of each header, exclusive.
    """

    alphabet: Alphabet
    codes: Codes
    lengths: Lengths
    header_bytes: Codes
    header_ends: Offsets

    @classmethod
    def of_headers(cls, alphabet: Alphabet, codes: Codes, lengths: Lengths, headers: Sequence[bytes]) -> SequenceChunk:
        """A chunk whose headers are single objects."""
        sizes = np.fromiter(map(len, headers), dtype=np.uint64, count=len(headers))
        header_bytes = np.frombuffer(b"".join(headers), dtype=np.uint8)
        return cls(alphabet, codes, lengths, header_bytes, np.cumsum(sizes, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def headers(self) -> list[bytes]:
        """The headers as single objects."""
        raw = self.header_bytes.tobytes()
        return [raw[start:end] for start, end in pairwise([0, *self.header_ends.tolist()])]
