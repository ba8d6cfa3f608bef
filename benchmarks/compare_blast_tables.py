"""Compares the hits of swsearch, ssearch36 and blastp for the same queries and proteins.

    python benchmarks/compare_blast_tables.py QUERIES.fasta PROTEINS.fasta[.gz] [--queries N] [--examples N]

Input: two files of protein sequences. ssearch36, makeblastdb and blastp must be on PATH. All programs search with
BLOSUM62, a cost of 11 + k for a gap of k residues and an E-value limit of 10, without masking or composition-based
statistics.

Each pair of a query and a subject that swsearch and the other program both report is assigned to one class
(:func:`classify`; docs/reference/differences.md explains the classes). If a program reports several alignments of a
pair, the one with the highest score counts. If blastp's score differs from ours, its alignment is scored again with
our matrix. ssearch36's table has no letters, so its own score is used.

Output: for each other program one line of JSON with the number of pairs in each class and of pairs that only one
program reports; with ``--examples N``, also up to N pairs of each class in which the tables differ. The exit status is
1 if another program has an alignment with a higher score than ours, otherwise 0.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import swsearch
from swsearch.report.base import ReportContext
from swsearch.report.formats import new_report
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.scheme import GapPenalty
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord

EVALUE = 10.0
FIELDS = ["qseqid", "sseqid", "score", "qstart", "qend", "sstart", "send", "length", "nident", "gaps", "pident"]
PIDENT_ROUNDING = 0.0051
"""Largest difference due to rounding in ``pident``, of which ssearch36 prints two decimals."""

BETTER = "better than the optimum"
ROWS = ["qseq", "sseq"]


@dataclass(frozen=True)
class Row:
    """An alignment in a table: ``pairs`` is its number of columns without gaps, ``rows`` its letters if available."""

    score: int
    places: tuple[int, int, int, int]
    pairs: int
    gaps: int
    identities: int
    pident: float
    rows: tuple[str, str] | None = None


Table = dict[tuple[str, str], Row]


def read_table(path: Path) -> Table:
    """The best alignment of each query and subject in a table with the columns of :data:`FIELDS` and :data:`ROWS`."""
    table: Table = {}
    for line in path.read_text().splitlines():
        query, subject, *values = line.split("\t")
        score, qstart, qend, sstart, send, length, nident, gaps = map(int, values[:8])
        row = Row(
            score, (qstart, qend, sstart, send), length - gaps, gaps, nident, float(values[8]), (values[9], values[10])
        )
        if (query, subject) not in table or table[query, subject].score < score:
            table[query, subject] = row
    return table


def search(queries: Path, proteins: Path, folder: Path) -> Table:
    """The table of this program."""
    swsearch.build_database([proteins], folder / "db")
    options = swsearch.SearchOptions(top=1_000_000, evalue=EVALUE, composition="none")
    with swsearch.open_searcher(folder / "db", options) as searcher, (folder / "ours").open("w") as stream:
        records = list(read_sequences(queries, searcher.database.alphabet))
        context = ReportContext(searcher.run_info("compare"))
        new_report("blast6", [*FIELDS, *ROWS]).write_all(context, searcher.search(records), stream)
    return read_table(folder / "ours")


def blastp(queries: Path, proteins: Path, folder: Path) -> Table:
    subprocess.run(["makeblastdb", "-in", proteins, "-dbtype", "prot", "-out", folder / "blast"],
                   check=True, capture_output=True)  # fmt: skip
    subprocess.run(
        ["blastp", "-query", queries, "-db", folder / "blast", "-comp_based_stats", "0", "-seg", "no", "-matrix",
         "BLOSUM62", "-gapopen", "11", "-gapextend", "1", "-evalue", str(EVALUE), "-max_target_seqs", "1000000",
         "-outfmt", "6 " + " ".join([*FIELDS, *ROWS]), "-out", folder / "theirs"],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return read_table(folder / "theirs")


def ssearch(queries: Path, proteins: Path, folder: Path) -> Table:
    """The table of ssearch36. ``-m 8`` has no raw scores; they are in the list of best scores, in the same order."""
    listing = subprocess.run(
        ["ssearch36", "-q", "-T", "2", "-s", "BL62", "-f", "-11", "-g", "-1", "-E", str(EVALUE), "-b", "1000000",
         "-d", "1000000", "-m", f"F8 {folder / 'm8'}", queries, proteins],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [line.split("\t") for line in (folder / "m8").read_text().splitlines()]
    scores = list(listed_scores(listing))
    assert len(rows) == len(scores), "the list of best scores and the table have different lengths"
    table: Table = {}
    for (query, subject, pident, length, mismatch, gaps, *places, _, _), (named, score) in zip(
        rows, scores, strict=True
    ):
        assert named in ("+-", subject), (named, subject)
        starts = tuple(map(int, places))
        row = Row(score, starts, int(length), int(gaps), int(length) - int(mismatch), float(pident))  # type: ignore[arg-type]
        if (query, subject) not in table or table[query, subject].score < score:
            table[query, subject] = row
    return table


def listed_scores(listing: str) -> Iterator[tuple[str, int]]:
    """Name (``+-``: the same subject again) and raw score of each line of ssearch36's lists of best scores."""
    listed = False
    for line in listing.splitlines():
        if line.startswith("The best scores are"):
            listed = True
        elif not line.strip() or ">>>" in line:
            listed = False
        elif listed:
            yield line.split()[0], int(line.split()[-3])


def rescored(row: Row) -> int:
    """Score of an alignment by the matrix of this program; its own score if its letters are unknown."""
    if row.rows is None:
        return row.score
    matrix, gaps = named_matrix("BLOSUM62"), GapPenalty(11, 1)
    pairs = [pair for pair in zip(*row.rows, strict=True) if "-" not in pair]
    runs = [len(run) for letters in row.rows for run in re.findall("-+", letters)]
    return sum(matrix.score(a.upper(), b.upper()) for a, b in pairs) - sum(map(gaps.cost, runs))


def classify(ours: Row, theirs: Row) -> str:
    """The class of the agreement of two tables on one subject of one query."""
    if theirs.score != ours.score:
        worth = rescored(theirs)
        if worth > ours.score:
            return BETTER
        return "lower score" if worth < ours.score else "equally good, letters score differently"
    if theirs.places != ours.places:
        return "another optimal alignment, other places"
    if (theirs.pairs, theirs.gaps, theirs.identities) != (ours.pairs, ours.gaps, ours.identities):
        return "another optimal alignment, same places"
    if abs(theirs.pident - ours.pident) > PIDENT_ROUNDING:
        return "equal alignment, identity by another rule"
    return "equal"


def write_numbered(records: list[SequenceRecord], path: Path, prefix: str) -> None:
    """A FASTA file with identifiers that every program prints unchanged."""
    path.write_text("".join(f">{prefix}{number}\n{record.letters}\n" for number, record in enumerate(records)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("proteins")
    parser.add_argument("--queries", dest="n_queries", type=int, help="the first N only")
    parser.add_argument("--examples", type=int, default=0, help="lines to print of each class that differs")
    arguments = parser.parse_args()
    queries = list(read_sequences([arguments.queries], None))[: arguments.n_queries]
    proteins = list(read_sequences([arguments.proteins], queries[0].alphabet))
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_numbered(queries, folder / "queries.fasta", "q")
        write_numbered(proteins, folder / "proteins.fasta", "s")
        files = folder / "queries.fasta", folder / "proteins.fasta", folder
        ours = search(*files)
        for peer in (ssearch, blastp):
            theirs = peer(*files)
            common = sorted(ours.keys() & theirs.keys())
            classes: Counter[str] = Counter()
            for pair in common:
                kind = classify(ours[pair], theirs[pair])
                classes[kind] += 1
                if kind != "equal" and classes[kind] <= arguments.examples:
                    print(kind, pair, ours[pair], theirs[pair], sep="\t")
            counts = {"ours alone": len(ours) - len(common), "theirs alone": len(theirs) - len(common)}
            print(json.dumps({"peer": peer.__name__, "both": len(common), **counts, **dict(classes.most_common())}))
            failed |= classes[BETTER] > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
