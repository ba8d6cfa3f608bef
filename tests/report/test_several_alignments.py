"""Several alignments of one subject in every format: two of the first subject, one of the second.

The expected values are written by hand, or read back by Biopython and samtools.
"""

import io
import json
import re
import subprocess
from dataclasses import replace

import pytest

from swsearch.hits.hit import Alignment
from swsearch.hits.result import QueryResult
from tests.report.conftest import GAPPED, LEGHEMOGLOBIN, PROTEIN_RUN, SELF, STATS

SECOND = replace(
    SELF, hsp=2, score=52, bits=24.64, evalue=0.0011,
    alignment=Alignment(0, 10, 20, 30, "1=9X", 1, 4, 10, 0, 0, LEGHEMOGLOBIN[20:30]),
)  # fmt: skip
QUERY = QueryResult(0, "q1 some query protein", LEGHEMOGLOBIN, (SELF, SECOND, GAPPED), 2, STATS)
RUN = replace(PROTEIN_RUN, parameters={**PROTEIN_RUN.parameters, "max_hsps": 2})


def test_tables_have_a_line_an_alignment(written):
    """Expected by hand."""
    fields = ["sseqid", "rank", "hsp", "score", "qcovs", "qcovhsp"]
    assert (
        written("blast6", RUN, [QUERY], fields)
        == "s1\t1\t1\t715\t100\t100\ns1\t1\t2\t52\t100\t7\ns3\t2\t1\t444\t81\t81\n"
    )
    header, *lines = written("tsv", RUN, [QUERY]).splitlines()
    assert header.endswith("\tstitle\thsp")
    assert [line.split("\t")[-1] for line in lines] == ["1", "2", "1"]
    assert [line.split()[0] for line in written("table", RUN, [QUERY]).splitlines()[-3:]] == ["1", "1", "2"]
    assert "2 of 3 subjects have an E-value of at most 10; all are shown" in written("table", RUN, [QUERY])


def test_pairwise_has_one_header_a_subject(written):
    """Expected by hand, in BLAST's format: a header, then the alignments."""
    text = written("pairwise", RUN, [QUERY])
    assert text.count("\n>s1 ") == text.count("\n>s3") == 1
    assert re.findall(r"Score = .*bits \((\d+)\)", text) == ["715", "52", "444"]
    assert text.index("bits (52)") < text.index("\n>s3")


def test_biopython_reads_one_hit_of_two_alignments(written):
    """Source: Biopython's parsers of BLAST's XML and tables."""
    from Bio import SearchIO

    for name, parser in (("xml", "blast-xml"), ("blast6", "blast-tab")):
        parsed = SearchIO.read(io.StringIO(written(name, RUN, [QUERY])), parser)
        assert [len(hit) for hit in parsed] == [2, 1]
    parsed = SearchIO.read(io.StringIO(written("xml", RUN, [QUERY])), "blast-xml")
    assert [hsp.bitscore_raw for hsp in parsed[0]] == [715, 52]


def test_json_numbers_the_alignments(written):
    """Expected by hand."""
    hits = json.loads(written("json", RUN, [QUERY]))["queries"][0]["hits"]
    assert [(hit["rank"], hit["hsp"], hit["score"]) for hit in hits] == [(1, 1, 715), (1, 2, 52), (2, 1, 444)]


def test_names_of_the_page_are_there_once(written):
    """Expected: each alignment has its own anchor, and each row's link refers to one."""
    page = written("html", RUN, [QUERY])
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    links = re.findall(r'<th scope="row"><a href="#([^"]+)"', page)
    assert links == ["q1h1", "q1h1-2", "q1h2"]
    assert set(links) <= set(names)
    assert "alignment 2</h4>" in page


@pytest.mark.peer("samtools")
def test_samtools_reads_a_line_an_alignment(written, tmp_path):
    """Source: samtools; HI numbers the query's alignments, and NH is their number."""
    path = tmp_path / "hits.sam"
    path.write_text(written("sam", RUN, [QUERY]))
    shown = subprocess.run(["samtools", "view", path], capture_output=True, text=True, check=True).stdout.splitlines()
    lines = [line.split("\t") for line in shown]
    assert [(line[1], line[2], line[3]) for line in lines] == [
        ("0", "s1", "1"),
        ("256", "s1", "21"),
        ("256", "s3", "1"),
    ]
    assert [re.findall(r"(?:NH|HI):i:(\d+)", "\t".join(line)) for line in lines] == [["3", "1"], ["3", "2"], ["3", "3"]]
