"""``xml2`` and ``json2``: compared element by element with BLAST's output, and read by Biopython."""

import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from Bio import Blast

from swsearch.report.blast_documents import json2_index, json2_of_query, xml2_index, xml2_of_query
from tests.report.conftest import DNA_QUERIES, DNA_RUN, PROTEIN_QUERIES, PROTEIN_RUN, SELF, context_of, make_run

GOLDEN = Path(__file__).parent / "golden"
OURS_ALONE = {"version", "reference", "db", "id", "accession", "title", "hsp-len", "eff-space", "entropy", "filter"}
ROUNDED = {"bit-score", "evalue"}
SPACE = "{http://www.ncbi.nlm.nih.gov}"


def records(program):
    return (DNA_RUN, DNA_QUERIES) if program == "blastn" else (PROTEIN_RUN, PROTEIN_QUERIES)


def compared(name, ours, theirs):
    """Compare values of a name, given with - in place of _."""
    if name in ROUNDED:
        assert float(ours) == pytest.approx(float(theirs), rel=2e-3), name
    elif name not in OURS_ALONE:
        assert ours == theirs, name


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_every_element_is_blasts(written, program):
    """Source: ``-outfmt 16`` of NCBI BLAST+ 2.12 on these pairs; the records' bits and E-values have fewer digits."""
    ours = ElementTree.fromstring(written("xml2", *records(program)))
    theirs = ElementTree.parse(GOLDEN / f"{program}2.xml").getroot()
    assert [element.tag for element in ours.iter()] == [element.tag for element in theirs.iter()]
    assert ours.attrib == theirs.attrib
    for element, expected in zip(ours.iter(), theirs.iter(), strict=True):
        compared(element.tag.removeprefix(SPACE), (element.text or "").strip(), (expected.text or "").strip())


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_every_member_is_blasts(written, program):
    """Source: ``-outfmt 15`` of NCBI BLAST+ 2.12 on these pairs; members are in the same order."""

    def walk(ours, theirs, name):
        if isinstance(theirs, dict):
            assert list(ours) == list(theirs)
            for member in theirs:
                walk(ours[member], theirs[member], member)
        elif isinstance(theirs, list):
            assert len(ours) == len(theirs)
            for one, other in zip(ours, theirs, strict=True):
                walk(one, other, name)
        else:
            compared(name.replace("_", "-"), ours, theirs)

    walk(json.loads(written("json2", *records(program))), json.loads((GOLDEN / f"{program}.json").read_text()), "")


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_bio_blast_reads_it_as_the_first_xml(written, program):
    """Source: Biopython's reading of the format ``xml``, which is compared with the records elsewhere.

    The query without hits is left out: Biopython 1.88 refuses the element ``message``, in BLAST's own output too.
    """
    run, queries = records(program)
    first, second = (
        list(Blast.parse(io.BytesIO(written(name, run, queries[:1]).encode()))) for name in ("xml", "xml2")
    )
    assert [record.query.description for record in second] == [record.query.description for record in first]
    assert [len(record) for record in second] == [len(record) for record in first]
    for one, other in zip(first, second, strict=True):
        for hit, again in zip(one, other, strict=True):
            assert again.target.id == hit.target.id
            for hsp, same in zip(hit, again, strict=True):
                assert same.score == hsp.score
                assert same.coordinates.tolist() == hsp.coordinates.tolist()
                assert (same[0], same[1]) == (hsp[0], hsp[1])
                assert same.annotations["evalue"] == hsp.annotations["evalue"]


def test_one_query_is_a_document_that_the_index_names(written):
    """Source: ``-outfmt 13`` and ``14`` of BLAST+ 2.12: the content of the single documents, and their roots."""
    whole = json.loads(written("json2"))["BlastOutput2"]
    for number, query in enumerate(PROTEIN_QUERIES):
        document = "".join(json2_of_query(context_of(PROTEIN_RUN), query))
        assert json.loads(document) == {"BlastOutput2": whole[number]}
        document = ElementTree.fromstring("".join(xml2_of_query(context_of(PROTEIN_RUN), query)))
        assert document.tag == f"{SPACE}BlastOutput2"
        assert document.find(f".//{SPACE}query-title").text == query.header
    assert json.loads(json2_index(["a_1.json"])) == {"BlastJSON": [{"File": "a_1.json"}]}
    (included,) = ElementTree.fromstring(xml2_index(["a_1.xml"]))
    assert included.tag == "{http://www.w3.org/2003/XInclude}include"
    assert included.attrib == {"href": "a_1.xml"}


def test_organisms_and_odd_headers_and_unknown_values(written):
    """By hand: markup is text, characters that XML does not allow become U+FFFD, unknown numbers have no value."""
    run = make_run("protein", lam=None, k=None, statistics="no table", parameters={"evalue": "inf"})
    hit = replace(SELF, subject_header='<s&1> "a"\x0b\udcff OS=Vicia faba OX=3906', bits=None, evalue=None)
    query = replace(PROTEIN_QUERIES[0], header="", hits=(hit,))
    text = written("xml2", run, (query,))
    (record,) = Blast.parse(io.BytesIO(text.encode("utf-8", "strict")))
    assert record[0].target.id == "<s&1>"
    assert "\ufffd" in record[0].target.description
    assert np.isnan(record[0][0].annotations["evalue"])
    described = ElementTree.fromstring(text).find(f".//{SPACE}HitDescr")
    assert [element.text for element in described][3:] == ["3906", "Vicia faba"]
    found = json.loads(written("json2", run, (query,)))["BlastOutput2"][0]["report"]
    assert found["params"]["expect"] is None
    (hit,) = found["results"]["search"]["hits"]
    assert (hit["description"][0]["taxid"], hit["description"][0]["sciname"]) == (3906, "Vicia faba")
    assert (hit["hsps"][0]["evalue"], hit["hsps"][0]["bit_score"]) == (None, None)
    assert found["results"]["search"]["query_title"] == "No definition line"


def test_no_query_leaves_documents(written):
    assert list(ElementTree.fromstring(written("xml2", queries=()))) == []
    assert json.loads(written("json2", queries=())) == {"BlastOutput2": []}
