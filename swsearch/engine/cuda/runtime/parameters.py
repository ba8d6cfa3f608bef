"""The parameters of the kernels: one structure for each entry of ``cuda/``, as a structured NumPy type.

A type has the members of a C++ structure, in the same order, so both lie in memory in the same way: ``SUBJECT_LIST``
those of ``SubjectList``, ``INTER_TASK`` those of ``InterTaskParameters``. :func:`packed` fills one. Addresses are those
of device memory, 0 for null; a nested structure is given as a tuple of its members.
"""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

ADDRESS: Final = np.dtype(np.uint64)
INT: Final = np.dtype(np.int32)
U32: Final = np.dtype(np.uint32)
FLOAT: Final = np.dtype(np.float32)


def _structure(**members: np.dtype[Any]) -> np.dtype[np.void]:
    return np.dtype(list(members.items()), align=True)


# --- cuda/search ---

GAP_COSTS: Final = _structure(open=INT, extend=INT)
STRIP_OF_QUERY: Final = _structure(
    first_unit=INT, has_strip_above=INT, has_strip_below=INT, above=ADDRESS, below=ADDRESS
)
SUBJECT_RANGE: Final = _structure(
    residues=ADDRESS, starts=ADDRESS, lengths=ADDRESS, n_subjects=U32, listed=ADDRESS, n_listed=ADDRESS
)
INTER_TASK: Final = _structure(
    profile=ADDRESS, query=STRIP_OF_QUERY, subjects=SUBJECT_RANGE, gap=GAP_COSTS, scores_low=ADDRESS,
    scores_high=ADDRESS, work_counter=ADDRESS,
)  # fmt: skip
SUBJECT_LIST: Final = _structure(
    residues=ADDRESS, starts=ADDRESS, lengths=ADDRESS, listed=ADDRESS, n_listed=ADDRESS, least=U32, most=U32
)
INTRA_TASK: Final = _structure(
    profile=ADDRESS, n_strips=INT, subjects=SUBJECT_LIST, gap=GAP_COSTS, boundary=ADDRESS, boundary_stride=U32,
    counters=ADDRESS, team_size=INT, scores=ADDRESS, work_counter=ADDRESS,
)  # fmt: skip
ENDS: Final = _structure(list=INTRA_TASK, wanted=_structure(scores=ADDRESS, ends=ADDRESS))
COLLECT: Final = _structure(
    scores=ADDRESS, first=U32, n_candidates=U32, limit=INT, listed=ADDRESS, listed_scores=ADDRESS, n_listed=ADDRESS
)
COUNT: Final = _structure(scores=ADDRESS, n_subjects=U32, n_bins=U32, counts=ADDRESS)
OPEN_COUNTERS: Final = _structure(number=ADDRESS, least=U32, most=U32, counters=ADDRESS, n_counters=U32)
COLUMN_NETWORK: Final = _structure(
    first=ADDRESS, first_bias=ADDRESS, second=ADDRESS, second_bias=ADDRESS, third=ADDRESS, third_bias=ADDRESS,
    powers=ADDRESS, width=INT, n_first=INT, n_second=INT,
)  # fmt: skip
COLUMN_ODDS: Final = _structure(
    network=COLUMN_NETWORK, inverse_background=ADDRESS, admixture=FLOAT, rest=FLOAT, codes=ADDRESS, n_positions=U32,
    odds=ADDRESS,
)  # fmt: skip
FORWARD: Final = _structure(
    rows=ADDRESS, strip=U32, n_strips=U32, n_blocks=U32, odds=ADDRESS, starts=ADDRESS, lengths=ADDRESS, n_subjects=U32,
    boundary=ADDRESS, totals=ADDRESS, exponents=ADDRESS,
)  # fmt: skip

# --- cuda/pairs ---

QUERY_LETTERS: Final = _structure(
    classes=ADDRESS, lines=ADDRESS, letters=ADDRESS, n_columns=INT, match=INT, mismatch=INT
)
SWEEP: Final = _structure(
    pairs=ADDRESS, n_pairs=U32, n_strips=U32, query=QUERY_LETTERS, subjects=ADDRESS,
    costs=_structure(open=INT, extend=INT, free_ends=INT), reach=INT, horizon=ADDRESS, best_known=ADDRESS,
    states=ADDRESS, found=ADDRESS, border_scores=ADDRESS, saved_row_index=ADDRESS, saved_rows=ADDRESS,
    saved_row_columns=U32, words_per_warp=U32, work_counter=ADDRESS, checkpoints=ADDRESS, checkpoint_words=U32,
)  # fmt: skip
LOCATE: Final = _structure(sweep=SWEEP, strips=ADDRESS, n_strips=U32, positions=ADDRESS)
SHORT_PAIRS: Final = _structure(
    pairs=_structure(
        query=ADDRESS, subject=ADDRESS, jobs=ADDRESS, decisions_start=ADDRESS, runs_start=ADDRESS, n_pairs=U32
    ),
    order=ADDRESS,
    scoring=_structure(table=ADDRESS, match=INT, mismatch=INT, gap_open=INT, gap_extend=INT),
    free_ends=INT, decisions=ADDRESS, walked=ADDRESS, boundary=ADDRESS, boundary_stride=U32, results=ADDRESS,
    all_runs=ADDRESS, n_all_runs=ADDRESS, counter=ADDRESS,
)  # fmt: skip

# --- cuda/history ---

SUBJECT_QUEUE: Final = _structure(residues=ADDRESS, starts=ADDRESS, lengths=ADDRESS, listed=ADDRESS, n_subjects=U32)
# SimtParameters, whose turns are blocks of rows, and StripedParameters, whose turns are vectors
CLASSIC: Final = _structure(
    texture=ADDRESS, turns=INT, subjects=SUBJECT_QUEUE, cells=ADDRESS, scores=ADDRESS, counter=ADDRESS
)
PARTITIONED: Final = _structure(
    texture=ADDRESS, turns=INT, subjects=SUBJECT_QUEUE, boundary=ADDRESS, boundary_stride=U32, scores=ADDRESS,
    counter=ADDRESS,
)  # fmt: skip
WAVEFRONT: Final = _structure(
    pair=_structure(query=ADDRESS, subject=ADDRESS, rows=INT, columns=INT),
    costs=_structure(match=INT, mismatch=INT, indel=INT),
    wave=INT, first=INT, n_tiles=INT, bottom=ADDRESS, right=ADDRESS, corners=ADDRESS, result=ADDRESS,
)  # fmt: skip


def packed(structure: np.dtype[np.void], **members: Any) -> np.void:
    """The parameters of a launch: all members of a structure by name, each a number, or a tuple or void of its members.

    Raises KeyError or TypeError if a member is missing or unknown, and OverflowError if a number does not fit it.
    """
    names = structure.names
    assert names is not None
    if len(members) != len(names):
        raise TypeError(f"the members are {', '.join(names)}")
    filled = np.empty((), structure)
    filled[()] = tuple(members[name] for name in names)
    return cast("np.void", filled[()])
