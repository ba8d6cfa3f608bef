"""BLAST XML: compared element by element with BLAST's output, and read by Biopython's two parsers."""

import io
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from Bio import Blast, SearchIO

from swsearch.hits.cigar import gapped
from tests.report.conftest import (
    BASES,
    DNA_QUERIES,
    DNA_RUN,
    GAPPED,
    LEGHEMOGLOBIN,
    PROTEIN_QUERIES,
    SELF,
    SHORTENED,
    TURNED,
    make_run,
)

GOLDEN = Path(__file__).parent / "golden"
OURS_ALONE = {
    "BlastOutput_version", "BlastOutput_reference", "BlastOutput_db", "Parameters_filter",
    "Hit_id", "Hit_def", "Hit_accession", "Statistics_hsp-len", "Statistics_eff-space", "Statistics_entropy",
}  # fmt: skip
ROUNDED = {"Hsp_bit-score", "Hsp_evalue"}


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_every_element_is_blasts(written, program):
    """Source: ``-outfmt 5`` of NCBI BLAST+ 2.12 on these pairs; the records' bits and E-values have fewer digits."""
    report = written("xml", DNA_RUN, DNA_QUERIES) if program == "blastn" else written("xml")
    ours, theirs = ElementTree.fromstring(report), ElementTree.parse(GOLDEN / f"{program}.xml").getroot()
    assert [element.tag for element in ours.iter()] == [element.tag for element in theirs.iter()]
    for element, expected in zip(ours.iter(), theirs.iter(), strict=True):
        if element.tag in ROUNDED:
            assert float(element.text) == pytest.approx(float(expected.text), rel=2e-3)
        elif element.tag not in OURS_ALONE:
            assert (element.text or "").strip() == (expected.text or "").strip(), element.tag
    assert report.splitlines()[:2] == (GOLDEN / f"{program}.xml").read_text().splitlines()[:2]


def test_bio_blast_reads_the_alignments(written):
    """Source: the records and their letters; Bio.Blast builds an alignment from rows and 0-based coordinates."""
    records = Blast.parse(io.BytesIO(written("xml").encode()))
    first, second = records
    assert (records.program, records.version, records.db) == ("blastp", "swsearch 0.1.0", "d.fa")
    assert [hit.target.id for hit in first] == ["s1", "s3"]
    assert len(second) == 0
    assert second.message == "No hits found"
    hsp = first[1][0]
    assert (hsp.score, hsp.annotations["evalue"], hsp.annotations["bit score"]) == (444, 1.42e-62, 175.64)
    assert (hsp.annotations["identity"], hsp.annotations["positive"], hsp.annotations["gaps"]) == (98, 100, 19)
    rows = gapped(LEGHEMOGLOBIN[:117], SHORTENED, GAPPED.alignment.cigar)
    assert (hsp[1], hsp[0]) == rows
    assert hsp.coordinates[:, [0, -1]].tolist() == [[0, 104], [0, 117]]


def test_bio_blast_reads_the_minus_strand(written):
    """Source: the record: subject positions 3 to 65, minus strand; Biopython's coordinates of a reversed row fall."""
    (record,) = Blast.parse(io.BytesIO(written("xml", DNA_RUN, DNA_QUERIES).encode()))
    plus, minus = (hit[0] for hit in record)
    assert plus.coordinates.tolist() == [[4, 70], [0, 66]]
    coordinates = minus.coordinates
    assert {coordinates[0, 0], coordinates[0, -1]} == {3, 65}
    assert np.sign(coordinates[0, -1] - coordinates[0, 0]) != np.sign(coordinates[1, -1] - coordinates[1, 0])
    letters = {row.replace("-", "") for row in (minus[0], minus[1])}
    turned = TURNED.translate(str.maketrans("ACGT", "TGCA"))[::-1]
    assert letters in ({BASES, turned}, {BASES.translate(str.maketrans("ACGT", "TGCA"))[::-1], TURNED})


def test_search_io_reads_it(written):
    """Source: the records, read by Bio.SearchIO's parser, whose positions are 0-based and half-open."""
    first, second = SearchIO.parse(io.StringIO(written("xml")), "blast-xml")
    assert (first.id, second.id) == ("q1", "q2")
    assert len(second) == 0
    hsp = first["s3"][0]
    assert (hsp.query_range, hsp.hit_range, hsp.bitscore_raw, hsp.evalue) == ((0, 117), (0, 104), 444, 1.42e-62)
    (dna,) = SearchIO.parse(io.StringIO(written("xml", DNA_RUN, DNA_QUERIES)), "blast-xml")
    assert (dna["m2"][0].hit_range, dna["m2"][0].hit_strand) == ((3, 65), -1)


def test_odd_headers_and_unknown_values_leave_it_readable(written):
    """By hand: markup is text, characters that XML does not allow become U+FFFD, unknown numbers are not a number."""
    run = make_run("protein", lam=None, k=None, statistics="no table", parameters={"evalue": "inf"})
    hit = replace(SELF, subject_header='<s&1> "a"\x0b\ufffe\udcff > ]]>', bits=None, evalue=None)
    query = replace(PROTEIN_QUERIES[0], header="", hits=(hit,))
    (record,) = Blast.parse(io.BytesIO(written("xml", run, (query,)).encode("utf-8", "strict")))
    assert record.query.description == "No definition line"
    assert record[0].target.id == "<s&1>"
    assert record[0].target.description == '"a" \ufffd\ufffd > ]]>'
    assert np.isnan(record[0][0].annotations["evalue"])
    assert np.isnan(record[0][0].annotations["bit score"])


def test_no_query_leaves_a_document(written):
    root = ElementTree.fromstring(written("xml", queries=()))
    assert root.find("BlastOutput_iterations") is not None
    assert list(root.iter("Iteration")) == []


@pytest.mark.parametrize(
    ("parameters", "filtered"),
    [
        ({}, "F"),
        ({"mask": "none", "mask_mode": "soft"}, "F"),
        ({"mask": "tantan", "mask_mode": "soft"}, "L;m;"),
        ({"mask": "seg,lower", "mask_mode": "hard"}, "L;"),
    ],
)
def test_masks_are_named_as_blast_names_them(written, parameters, filtered):
    """Source: BLAST's filter strings; blastn prints ``L;m;`` for its soft DUST mask, blastp ``F`` without SEG."""
    run = make_run("protein", parameters={"evalue": 10.0, **parameters})
    assert f"<Parameters_filter>{filtered}</Parameters_filter>" in written("xml", run)
