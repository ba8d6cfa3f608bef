"""The types of the functions of the native module, in which NumPy arrays are inputs and outputs.

The bindings in ``simd/`` document each function.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import Codes, Floats, Lengths, Offsets, ScoreTable, SubjectIndex

# simd/pack
def pack_strips(
    low_rows: NDArray[np.int32],
    low_table: ScoreTable,
    high_rows: NDArray[np.int32],
    high_table: ScoreTable,
    group: int,
    words: int,
    columns: int,
    pairing: str,
    arithmetic: str,
    first_row: int,
    n_strips: int,
    out: NDArray[np.uint32],
) -> None: ...

# simd/index
Pieces = tuple[Lengths, NDArray[np.uint32], NDArray[np.uint32], Offsets, Offsets]

InvalidArrays = tuple[
    NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint64]
]

def read_records(
    text: Codes, encode: Codes, is_fastq: bool, skips: bool
) -> tuple[int, Lengths, Codes, Offsets, InvalidArrays] | None: ...
def whole_records(text: Codes, is_fastq: bool) -> int: ...
def write_run(
    codes: Codes, lengths: Lengths, first: int, residues_fd: int, offset: int, order_fd: int
) -> tuple[Lengths, NDArray[np.uint32]]: ...
def run_positions(
    lengths: Lengths,
    counts: NDArray[np.uint32],
    order: SubjectIndex,
    first: int,
    distinct: Lengths,
    next: NDArray[np.uint64],
) -> SubjectIndex: ...
def take_pieces(
    lengths: Lengths,
    counts: NDArray[np.uint32],
    next: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    residues: Offsets,
    subjects: Offsets,
    distinct: Lengths,
    next_to: NDArray[np.uint32],
    most: int,
) -> Pieces: ...
def gather_residues(fds: Sequence[int], pieces: Pieces, base: int, fill: int) -> tuple[Codes, Offsets, Lengths]: ...
def gather_values(fd: int, pieces: Pieces) -> NDArray[np.uint32]: ...
def write_fasta(headers: Codes, ends: Offsets, codes: Codes, lengths: Lengths, decode: Codes, width: int) -> Codes: ...
def residues_hold(
    residues: Codes, starts: Offsets, lengths: Lengths, is_letter: NDArray[np.uint8], fill: int
) -> bool: ...
def equal_subjects(
    residues: Codes, starts: Offsets, lengths: Lengths, part: int, n_parts: int
) -> NDArray[np.uint32]: ...
def contained_subjects(
    residues: Codes,
    starts: Offsets,
    lengths: Lengths,
    chosen: NDArray[np.uint8],
    shortest: int,
    part: int,
    n_parts: int,
    threads: int,
) -> NDArray[np.uint32]: ...
def copy_subjects(sources: Sequence[Codes], which: NDArray[np.uint16], starts: Offsets, lengths: Lengths) -> Codes: ...
def write_identifiers(
    headers: Codes, ends: Offsets, kept: NDArray[np.uint8], first: int, fd: int, offset: int
) -> NDArray[np.uint32]: ...
def find_repeats(
    fd: int,
    offsets: Offsets,
    counts: NDArray[np.uint32],
    n_before: int,
    files: Sequence[tuple[int, int, int]],
) -> tuple[int, int | None]: ...

# simd/align
def align_local(
    query_codes: Codes,
    rows: NDArray[np.int32],
    table: ScoreTable,
    gap_open: int,
    gap_extend: int,
    identity: Codes,
    residues: Codes,
    starts: Offsets,
    lengths: Lengths,
    n_threads: int = 1,
    memory_bytes: int = 67108864,
    progress: Callable[[int], None] | None = None,
    instruction_set: str = "auto",
    most: int = 1,
    floor: int = 1,
    ends: NDArray[np.int64] | None = None,
    floors: NDArray[np.int32] | None = None,
    earlier: Sequence[Sequence[tuple[int, int, str]]] = (),
) -> list[list[tuple[int, int, int, int, int, str, int, int, int, int, int]]]: ...

# simd/pair
class PairWalk:
    def __init__(
        self,
        query: NDArray[np.uint16],
        subject: NDArray[np.uint16],
        table: ScoreTable | None,
        match: int,
        mismatch: int,
        gap_open: int,
        gap_extend: int,
        local: bool,
        free_ends: int,
        query_end: int,
        subject_end: int,
    ) -> None: ...
    @property
    def row(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def done(self) -> bool: ...
    def through(
        self,
        above: int,
        column: int,
        group_rows: int,
        top_h: NDArray[np.int32],
        top_f: NDArray[np.int32],
        left_h: NDArray[np.int32],
        next_e: NDArray[np.int32],
        corner: NDArray[np.int32],
        next_f: NDArray[np.int32],
    ) -> None: ...
    def finish(self) -> tuple[int, int, list[tuple[str, int]]]: ...

def align_pairs(
    query: NDArray[np.uint16],
    query_ends: NDArray[np.int64],
    subject: NDArray[np.uint16],
    subject_ends: NDArray[np.int64],
    table: ScoreTable | None,
    match: int,
    mismatch: int,
    gap_open: int,
    gap_extend: int,
    local: bool,
    free_ends: int,
    path: bool,
    n_threads: int = 1,
    memory_bytes: int = 268435456,
    progress: Callable[[int], None] | None = None,
    instruction_set: str = "auto",
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]: ...
def write_cigars(
    query: NDArray[np.uint16],
    query_ends: NDArray[np.int64],
    subject: NDArray[np.uint16],
    subject_ends: NDArray[np.int64],
    query_starts: NDArray[np.int64],
    subject_starts: NDArray[np.int64],
    run_ends: NDArray[np.int64],
    runs: NDArray[np.uint32],
    n_threads: int = 1,
) -> list[str]: ...

# simd/score
def score_partition(
    profiles: list[tuple[NDArray[np.int32], NDArray[np.int8], int, int]],
    residues: NDArray[np.uint8],
    starts: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    scores: NDArray[np.int32],
    floors: Sequence[tuple[int, list[int]]],
    instruction_set: str,
    n_threads: int,
    progress: Callable[[int], None] | None = None,
    band_rows: int = -1,
) -> list[tuple[int, int]]:
    """Write the local score of every subject against every profile to ``scores[profile, subject]``.

    Parameters
    ----------
    profiles : list of (rows, table, gap_open, gap_extend)
        int32 shape (query_length,) and int8 shape (n_rows, 32); a query has at most 2**24 residues. Gap costs are 0 to
        16,383, not both 0; a gap of k residues costs ``open + k * extend``.
    residues, starts, lengths
        uint8; uint64 and uint32 shape (n_subjects,). Each subject must lie inside ``residues``. Any order is allowed,
        but ascending lengths avoid a sort.
    scores : int32 array, shape (n_profiles, n_subjects), C order
        Exact if the score is at least the floor of the profile and subject; otherwise any number below that floor.
    floors : sequence of (int, list of int)
        A number of residues, ascending from 0 on, and the floor of each profile for the subjects with at least so many;
        0 if every score is needed.
    instruction_set : str
        One of :func:`instruction_sets` that is usable on this machine.
    n_threads : int
        At least 1. If the system starts fewer threads, those do all of the work.
    progress : callable, optional
        Called on the calling thread about every 100 ms and at the end with the number of cells scored since the last
        call. An exception that it raises stops the workers and is raised from this function, as is an interrupt.
    band_rows : int
        Query rows per band of the upper bound: 1, 4 or 6, or 0 for exact scores of all subjects, or -1 for a choice by
        query and floor. No score that reaches its floor depends on it.

    Returns
    -------
    list of (int, int)
        For each profile, the number of subjects whose score exceeds the narrowest lanes that represent its gap cost,
        and the number of subjects that a bound proved to score below the floor, without those divided into windows.

    Raises
    ------
    ValueError
        An argument is out of its range; the message names it.
    TypeError
        An array has another dtype, shape or order.
    """

def bound_partition(
    profile: tuple[NDArray[np.int32], NDArray[np.int8], int, int],
    residues: NDArray[np.uint8],
    starts: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    bounds: NDArray[np.int32],
    band_rows: int,
    instruction_set: str,
) -> int:
    """Write the upper bound of every subject's local score to ``bounds``.

    The arguments are those of :func:`score_partition`; the cost of a gap of one residue is at most 127.

    Returns
    -------
    int
        The smallest bound that the kernel cannot distinguish from a higher one; -1 is written for these.
    """

def instruction_sets() -> list[tuple[str, bool]]:
    """Name of each instruction set that is built, with whether this processor can run it, best first.

    The functions of this module accept these names, and "auto" for the best usable one.
    """

# simd/pssm
def write_rows(
    letters: NDArray[np.uint8],
    letter_ends: NDArray[np.int64],
    cigars: NDArray[np.uint8],
    cigar_ends: NDArray[np.int64],
    query_starts: NDArray[np.int64],
    rows: NDArray[np.uint8],
) -> int: ...
def keep_distinct(rows: NDArray[np.uint8], percent: int, keep: NDArray[np.uint8]) -> None: ...
def column_frequencies(
    rows: NDArray[np.uint8],
    min_width: int,
    background: Floats,
    n_threads: int,
    frequencies: Floats,
    diversity: Floats,
    n_present: NDArray[np.int64],
) -> None: ...
def scaled_scores(
    values: Floats,
    present: NDArray[np.uint8],
    low: float,
    high: float,
    n_bisections: int,
    odds: Floats,
    composition: Floats,
    scores: NDArray[np.int64],
) -> None: ...

# simd/context
def context_sums(
    costs: NDArray[np.int16],
    priors: NDArray[np.int32],
    weights: Floats,
    central: Floats,
    counts: NDArray[np.int32],
    sums: Floats,
    n_threads: int = 1,
    instruction_set: str = "auto",
) -> None: ...
def context_odds(
    first: NDArray[np.int16],
    first_bias: NDArray[np.int16],
    second: NDArray[np.int16],
    second_bias: NDArray[np.int32],
    third: NDArray[np.int16],
    third_bias: NDArray[np.int32],
    powers: NDArray[np.float32],
    inverse_background: NDArray[np.float32],
    admixture: float,
    residues: NDArray[np.uint8],
    starts: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    odds: NDArray[np.int16],
    n_threads: int = 1,
    instruction_set: str = "auto",
) -> None: ...
def forward_totals(
    query: NDArray[np.float32],
    gaps: NDArray[np.float32],
    odds: NDArray[np.int16],
    starts: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    totals: NDArray[np.float32],
    exponents: NDArray[np.int32],
    n_threads: int = 1,
    instruction_set: str = "auto",
) -> None: ...

# simd/domains
def decode_domains(
    odds: Floats,
    transitions: Floats,
    entry: Floats,
    residues: NDArray[np.uint8],
    starts: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    least: NDArray[np.int64],
    n_threads: int = 1,
) -> list[tuple[float, int, list[tuple[int, int, float, int, float, NDArray[np.float64], NDArray[np.uint32]]]]]: ...
def leading_numbers(
    text: bytes, first: int, step: int, n_columns: int, word: int, star: float
) -> tuple[Floats, bytes]: ...

# simd/statistics
def exp(x: Floats, values: Floats) -> None: ...
def log(x: Floats, values: Floats) -> None: ...
def normal(z: Floats, cdf: Floats, excess: Floats) -> None: ...
def evalues(scores: NDArray[np.int64], lengths: Floats, model: Floats, score_step: int, values: Floats) -> bool: ...
def composition_scales(
    kinds_of_one: NDArray[np.uint8],
    ends_of_one: NDArray[np.int64],
    kinds_of_other: NDArray[np.uint8],
    ends_of_other: NDArray[np.int64],
    scores: NDArray[np.int32],
    background: Floats,
    pseudocounts: float,
    usual: float,
    lowest: float,
    scales: Floats,
) -> None: ...

# simd/msa
def select_rows(
    codes: NDArray[np.uint8],
    order: NDArray[np.uint32],
    n_kinds: int,
    max_identity: int,
    min_identity: int,
    at_least: int,
    taken: NDArray[np.uint8],
) -> None: ...
def effective_number(codes: NDArray[np.uint8], n_kinds: int, n_threads: int) -> float: ...
