"""Frames in every format: a blastx, a tblastn and a tblastx hit whose reports are known.

Both proteins align with the six codons ``ATGAAAGTTCTGTGGCAT`` (MKVLWH) of a DNA sequence of 26 bases, read on either
strand; positions are counted by hand and follow the output of BLAST+ 2.12 for such frames.
"""

import io
import json
from dataclasses import replace

import pytest

from swsearch.errors import InputError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import QueryResult
from swsearch.report.fields import STANDARD
from swsearch.report.formats import new_report
from tests.report.conftest import STATS, make_run

GENE = "ATGAAAGTTCTGTGGCAT"
FORWARD = "CCA" + "CA" + GENE + "CAC"
"""The gene in frame 3: bases 6 to 23, 1-based."""
BACKWARD = "GTG" + "ATGCCACAGAACTTTCAT" + "TGTGG"
"""Its reverse complement: the gene in frame -3, bases 21 down to 4."""

PEPTIDE = "MKVLWH"
COLUMNS = {"cigar": "2=1X3=", "identities": 5, "positives": 6, "columns": 6, "gap_openings": 0, "gap_residues": 0}


def run_of(translate: str):
    run = make_run("protein", parameters={"translate": translate, "genetic_code": 11, "strand": "both", "evalue": 10.0})
    return run if translate == "query" else replace(run, database=replace(run.database, alphabet="dna"))


def hit_of(query_frame: int, subject_frame: int) -> Hit:
    """Return a hit of the peptide, or of the gene in one of the two frames, against MKILWH or a gene for it."""
    ranges = {0: (0, 6), 3: (5, 23), -3: (3, 21)}
    query, subject = ranges[query_frame], ranges[subject_frame]
    alignment = Alignment(
        *query, *subject, **COLUMNS, subject_letters="MKILWH", query_letters=PEPTIDE if query_frame else ""
    )
    strand = "minus" if query_frame < 0 else "plus"
    length = 26 if subject_frame else 6
    return Hit(1, 0, "s1 the subject", length, 31, 16.5, 0.02, strand, alignment, 1, query_frame, subject_frame)


CASES = {
    "blastx": ("query", hit_of(-3, 0), BACKWARD),
    "tblastn": ("subject", hit_of(0, -3), PEPTIDE),
    "tblastx": ("both", hit_of(3, -3), FORWARD),
}


@pytest.fixture(params=CASES)
def case(request):
    translate, hit, letters = CASES[request.param]
    return request.param, run_of(translate), QueryResult(0, "q1 the query", letters, (hit,), 1, STATS)


BLAST6 = {
    "blastx": "q1 s1 21 4 1 6 -3 0 -3/0 MKVLWH MKILWH 69 69 26 6 N/A minus",
    "tblastn": "q1 s1 1 6 21 4 0 -3 0/-3 MKVLWH MKILWH 100 100 6 26 N/A plus",
    "tblastx": "q1 s1 6 23 21 4 3 -3 3/-3 MKVLWH MKILWH 69 69 26 26 N/A plus",
}


def test_tables_have_frames_and_places_on_the_bases(written, case):
    """Expected by hand: a minus frame runs from the higher base to the lower one."""
    name, run, query = case
    fields = (
        "qseqid sseqid qstart qend sstart send qframe sframe frames qseq sseq qcovs qcovhsp qlen slen sstrand strand"
    )
    assert written("blast6", run, [query], fields.split()) == BLAST6[name].replace(" ", "\t") + "\n"


PAIRWISE = {
    "blastx": ("-3", "21  MKVLWH  4", "1   MKILWH  6"),
    "tblastn": ("-3", "1   MKVLWH  6", "21  MKILWH  4"),
    "tblastx": ("+3/-3", "6   MKVLWH  23", "21  MKILWH  4"),
}


def test_alignments_show_residues_at_the_places_of_their_bases(written, case):
    """Expected by hand, in the format of BLAST's report."""
    name, run, query = case
    frame, above, below = PAIRWISE[name]
    text = written("pairwise", run, [query])
    assert f" Frame = {frame}\n\nQuery  {above}\n           MK+LWH\nSbjct  {below}\n" in text
    assert "Strand=" not in text
    assert "Identities = 5/6 (83%), Positives = 6/6 (100%)" in text
    assert "genetic code 11" in text


def test_tables_for_people_have_frames(written, case):
    """Expected by hand: the frames as in BLAST's ``frames`` field, and what was translated."""
    name, run, query = case
    table, page = written("table", run, [query]), written("html", run, [query])
    frames = BLAST6[name].split()[8]
    assert table.splitlines()[-2].endswith(" frames")
    assert table.splitlines()[-1].endswith(f" {frames}")
    assert "translated in six frames; genetic code 11" in table
    assert "translated in six frames; genetic code 11" in page
    assert f">{frames}</td>" in page
    assert "(26 bases)" in table if name != "tblastn" else "(6 residues)" in table


def test_json_has_frames_and_bases(written, case):
    """Expected by hand: 0-based, half-open positions of bases, start before end; null where nothing is translated."""
    _, run, query = case
    whole = json.loads(written("json", run, [query]))
    (hit,) = whole["queries"][0]["hits"]
    record = query.hits[0]
    assert (whole["translate"], whole["genetic_code"]) == (run.parameters["translate"], 11)
    assert (hit["query_frame"], hit["subject_frame"]) == (record.query_frame or None, record.subject_frame or None)
    assert (hit["query_start"], hit["query_end"]) == (record.alignment.query_start, record.alignment.query_end)
    assert (hit["subject_start"], hit["subject_end"]) == (record.alignment.subject_start, record.alignment.subject_end)


def test_biopython_reads_the_xml(written, case):
    """Source: Biopython's BLAST XML parser, which knows the programs and their frames."""
    from Bio import SearchIO

    name, run, query = case
    parsed = SearchIO.read(io.StringIO(written("xml", run, [query])), "blast-xml")
    assert parsed.program == name
    fragment = parsed[0][0][0]
    record = query.hits[0]
    assert (fragment.query_frame, fragment.hit_frame) == (record.query_frame, record.subject_frame)
    assert fragment.query_range == (record.alignment.query_start, record.alignment.query_end)
    assert fragment.hit_range == (record.alignment.subject_start, record.alignment.subject_end)
    assert (str(fragment.query.seq), str(fragment.hit.seq)) == ("MKVLWH", "MKILWH")


def test_biopython_reads_the_table(written, case):
    """Source: Biopython's parser of BLAST's tables, which reverses the positions of minus frames."""
    from Bio import SearchIO

    _, run, query = case
    fields = [*STANDARD, "qframe", "sframe"]
    parsed = SearchIO.read(io.StringIO(written("blast6", run, [query], fields)), "blast-tab", fields=fields)
    fragment = parsed[0][0][0]
    record = query.hits[0].alignment
    assert fragment.query_range == (record.query_start, record.query_end)
    assert fragment.hit_range == (record.subject_start, record.subject_end)


def test_columns_with_frames_are_there_without_being_asked_for(written, case):
    """Expected by hand: tsv and parquet add two columns to those of other searches."""
    import pyarrow.parquet

    _, run, query = case
    header, line = (row.split("\t") for row in written("tsv", run, [query]).splitlines())
    frames = [str(query.hits[0].query_frame), str(query.hits[0].subject_frame)]
    values = dict(zip(header, line, strict=True))
    assert list(values)[21:] == (["qframe", "sframe"] if case[0] == "blastx" else ["qframe", "sframe", "hsp"])
    assert [values["qframe"], values["sframe"]] == frames
    table = pyarrow.parquet.read_table(pyarrow.BufferReader(written("parquet", run, [query])))
    assert [str(table[name][0].as_py()) for name in ("qframe", "sframe")] == frames


def test_sam_refuses_with_the_reason(written, case):
    """A CIGAR of residues is not a CIGAR of bases."""
    _, run, query = case
    with pytest.raises(InputError, match="sam cannot hold a translated search: its CIGARs count residues"):
        written("sam", run, [query])
    with pytest.raises(InputError, match="choose blast6, json"):
        new_report("sam").format.check_fits(run)
    new_report("xml").format.check_fits(run)
