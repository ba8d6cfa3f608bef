"""Rows that are paired by organism. The expected rows are written by hand."""

import io
from dataclasses import replace

import pytest

from swsearch.hits.hit import Alignment
from swsearch.report.pairing import organism_of, write_pairs
from tests.report.conftest import PROTEIN_QUERIES, SELF


def chain(name: str, letters: str, *hits: tuple[str, str]):
    """Return a query whose hits have these headers and letters, in the order of their ranks."""
    made = []
    for rank, (header, found) in enumerate(hits, 1):
        n = len(found)
        alignment = Alignment(0, n, 0, n, f"{n}=", n, n, n, 0, 0, found)
        made.append(replace(SELF, rank=rank, subject_header=header, subject_length=n, alignment=alignment))
    return replace(PROTEIN_QUERIES[0], header=name, letters=letters, hits=tuple(made))


A = chain(
    "101", "MKW",
    ("a1 no organism", "MKW"), ("a2 x OS=Homo sapiens OX=9606 GN=y", "MKW"), ("a3 OX=9606", "MK"),
    ("a4 Tax=Mus musculus TaxID=10090 RepID=z", "MK"), ("a5 OS=Vicia faba", "MK"), ("a6 OX=7", "M"),
)  # fmt: skip
B = chain("102", "WCWC", ("b1 OX=10090", "WCWC"), ("b2 OS=Vicia faba PE=1", "WCW"), ("b3 OX=9606", "WC"))
C = chain("103", "HH", ("c1 OX=9606", "HH"))
ROW = "\t280\t1.000\t2.580E-103\t0\t"


def paired(*chains, complete: bool) -> list[list[str]]:
    stream = io.StringIO()
    write_pairs(chains, stream, complete=complete)
    return [[line.split("\t")[0] for line in block.splitlines()] for block in stream.getvalue().split("\0")]


def test_organisms_of_two_chains_have_rows_and_the_best_hit_of_each():
    """9606 has hits in three chains; then 10090 (ranks 4 + 1), then Vicia (5 + 2); 7 and a1 are in no pair."""
    assert paired(A, B, C, complete=False) == [
        [">101", "MKW", ">a2", "MKW", ">a4", "MK-", ">a5", "MK-"],
        [">102", "WCWC", ">b3", "WC--", ">b1", "WCWC", ">b2", "WCW-"],
        [">103", "HH", ">c1", "HH", ">DUMMY", "--", ">DUMMY", "--"],
    ]


def test_complete_pairs_need_all_chains():
    assert paired(A, B, C, complete=True) == [
        [">101", "MKW", ">a2", "MKW"], [">102", "WCWC", ">b3", "WC--"], [">103", "HH", ">c1", "HH"],
    ]  # fmt: skip


def test_one_chain_has_no_pairs_unless_one_is_complete():
    assert paired(C, complete=False) == [[">103", "HH"]]
    assert paired(C, complete=True) == [[">103", "HH", ">c1", "HH"]]


@pytest.mark.parametrize(
    ("header", "organism"),
    [
        ("P1 x OS=Homo sapiens OX=9606 TaxID=1", "9606"), ("UniRef90_P1 Tax=Mus TaxID=10090 RepID=P", "10090"),
        ("P1 OS=Vicia faba GN=x", "Vicia faba"), ("P1 Tax=Vicia faba", None), ("", None), ("P1 OX=9606x", None),
    ],
)  # fmt: skip
def test_organisms_are_those_that_headers_name(header, organism):
    assert organism_of(header) == organism
