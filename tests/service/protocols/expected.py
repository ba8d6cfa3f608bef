"""What clients must find: the hits that `swsearch query` prints for the same search, and the queries."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from Bio import SeqIO

from tests.service.servers import local_report
from tests.support import DATA


class Found(NamedTuple):
    """A hit as BLAST's clients see it: positions from 1, those of a reversed subject from high to low."""

    subject: str
    score: int
    evalue: float
    query: tuple[int, int]
    target: tuple[int, int]


def matches(found: Sequence[Found], expected: Sequence[Found]) -> bool:
    """Whether two lists of hits are equal; E-values are printed with six digits."""
    assert len(expected) > 1, "a comparison of nothing"
    return [hit._replace(evalue=0.0) for hit in found] == [hit._replace(evalue=0.0) for hit in expected] and [
        hit.evalue for hit in found
    ] == [pytest.approx(hit.evalue, rel=1e-5) for hit in expected]


def local_hits(query: str, database: Path, folder: Path, *options: str) -> list[Found]:
    """The hits of `swsearch query` with these options."""
    report = json.loads(local_report(database, folder, "--format", "json", *options, queries=query))
    return [_found(hit) for queried in report["queries"] for hit in queried["hits"]]


def _found(hit: dict[str, Any]) -> Found:
    target = (hit["subject_start"] + 1, hit["subject_end"])
    return Found(
        hit["subject_id"],
        hit["score"],
        hit["evalue"],
        (hit["query_start"] + 1, hit["query_end"]),
        target[::-1] if hit["strand"] == "minus" else target,
    )


def protein() -> str:
    return f">{(DATA / 'queries.fasta').read_text().split('>')[1]}"


def reads() -> str:
    """Reads of a genome in FASTA; the third is of the minus strand."""
    with open(DATA / "lambda_reads.fastq") as file:
        return "".join(f">{record.id}\n{record.seq}\n" for record in islice(SeqIO.parse(file, "fastq"), 4))
