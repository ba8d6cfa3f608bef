"""The CPU time of one core that a traceback saves if the engine reports the ends of the alignments.

    python benchmarks/benchmark_ends.py DATABASE QUERIES [--top 100] [--repeats 5] [--out FILE]

The script searches on the CPU, then aligns the hits of each query again, without ends and with them, and compares all
alignments. The ends are computed beforehand by the CPU's forward pass, instead of by a device (``end_positions``).
Therefore only the remaining work of the CPU is measured, not the time of the device. A time is the smallest of several
repeats and includes neither reading nor searching.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from provenance import header, write_result

from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.hits.hit import Hit
from swsearch.hits.score_block import Ends
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import sequence_profile
from swsearch.search.frames import Frame
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher, open_searcher
from swsearch.sequences.alphabet import reverse_complement
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes


def least_seconds(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """CPU time of the fastest repeat, and the result of the work."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        found = work()
        seconds.append(time.process_time() - began)
    return min(seconds), found


def timed(searcher: Searcher, query: Codes, hits: list[Hit], strand: str, repeats: int) -> tuple[float, float]:
    """Times in seconds to align the hits of one strand, without ends and with them."""
    along = reverse_complement(query) if strand == "minus" else query
    profile = sequence_profile(along, searcher.scheme)
    index = np.array([hit.subject_index for hit in hits], dtype=np.uint32)
    without = within = 0.0
    for places, residues, starts, lengths in searcher.database.stored_ranges(index):
        scores = np.array([hits[place].score for place in places], dtype=np.int32)
        align = partial(
            LocalAligner(searcher.database.alphabet).paths, Frame(strand, 0, along, profile),
            Partition(residues, starts, lengths, index[places]), scores=scores,
        )  # fmt: skip
        plain, wanted = least_seconds(align, repeats)
        rows, columns = np.array([(best.query_end, best.subject_end) for best, *_ in wanted], dtype=np.int64).T
        ended, found = least_seconds(partial(align, ends=Ends(rows, columns)), repeats)
        assert found == wanted
        without += plain
        within += ended
    return without, within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("queries")
    parser.add_argument("--top", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table = []
    print(f"{'query':>8} {'hits':>5} {'residues a hit':>14} {'without, ms':>12} {'with, ms':>9}")
    with open_searcher(given.database, SearchOptions(top=given.top, max_hsps=1), engine="cpu") as searcher:
        queries = list(read_sequences(given.queries, searcher.query_alphabet))
        for query, result in zip(queries, searcher.search(queries), strict=True):
            seconds = np.zeros(2)
            for strand in sorted({hit.strand for hit in result.hits}):
                of_strand = [hit for hit in result.hits if hit.strand == strand]
                seconds += timed(searcher, query.codes, of_strand, strand, given.repeats)
            length = np.mean([hit.subject_length for hit in result.hits]) if result.hits else 0
            row = (len(query), len(result.hits), round(float(length)), *(round(s * 1e3, 3) for s in seconds.tolist()))
            table.append(dict(zip(("query", "hits", "subject_length", "without_ms", "with_ms"), row, strict=True)))
            print("{:>8} {:>5} {:>14,} {:>12.2f} {:>9.2f}".format(*row))
        instruction_set = usable_instruction_sets()[0]
    n_hits, without, within = (sum(row[key] for row in table) for key in ("hits", "without_ms", "with_ms"))
    print(f"{n_hits} hits: {without:.1f} ms without ends, {within:.1f} ms with them, {instruction_set}, one core")
    report = {
        **header("ends"),
        "instruction_set": instruction_set,
        "database": Path(given.database).name,
        "top": given.top,
        "queries": table,
    }
    write_result(report, given.out)


if __name__ == "__main__":
    main()
