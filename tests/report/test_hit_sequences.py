"""The format ``fasta``: which sequences it writes, under which names, and what it needs for them.

Expected values are the records of ``conftest.py``, cut by hand; `tests/cli/test_sequences.py` compares with samtools.
"""

import io
from dataclasses import replace

import pytest
from Bio import SeqIO
from Bio.Seq import reverse_complement

from swsearch.errors import InputError
from swsearch.report.formats import new_report
from swsearch.report.hit_sequences import FastaReport
from swsearch.sequences.fasta_text import SubjectPart
from tests.report.conftest import (
    BASES,
    DNA_QUERIES,
    DNA_RUN,
    GAPPED,
    LEGHEMOGLOBIN,
    MINUS,
    PROTEIN_QUERIES,
    PROTEIN_RUN,
    SELF,
    SHORTENED,
    TURNED,
    context_of,
    make_run,
)

ALIGNED = SubjectPart(aligned=True)
TRANSLATED = make_run("protein", parameters={"translate": "subject"})


def fasta(part, run, queries, subjects=...):
    """Return the records of a report as pairs of header and letters."""
    stream = io.StringIO()
    FastaReport(part).write_all(context_of(run, subjects=subjects), iter(queries), stream)
    return [(record.description, str(record.seq)) for record in SeqIO.parse(io.StringIO(stream.getvalue()), "fasta")]


def test_whole_sequences_have_their_headers_and_are_written_once(written):
    """A second query with the same subjects, and a second alignment of one, add nothing."""
    again = replace(SELF, hsp=2)
    queries = (replace(PROTEIN_QUERIES[0], hits=(SELF, again, GAPPED)), *PROTEIN_QUERIES)
    expected = [("s1 leghemoglobin desc one", LEGHEMOGLOBIN), ("s3", SHORTENED)]
    assert fasta(SubjectPart(), PROTEIN_RUN, queries) == expected
    assert written("fasta") == written("fasta", queries=queries)
    assert written("fasta").splitlines()[1] == LEGHEMOGLOBIN[:60]


def test_aligned_parts_name_range_query_and_evalue_and_are_reversed_on_the_minus_strand():
    """By hand: positions 5 to 70 forward, and 4 to 65 reversed; the letters are those of the subjects there."""
    assert fasta(ALIGNED, DNA_RUN, DNA_QUERIES) == [
        ("m1:5-70 query=n1 evalue=4.47e-33 plus", BASES),
        ("m2:4-65/rc query=n1 evalue=4.19e-27 minus", reverse_complement(TURNED)),
    ]


def test_flanks_end_at_the_ends_of_the_subject():
    """By hand: subject m1 has 4 bases on each side, m2 has 3 before and 4 after its aligned part."""
    (_, one), (_, two) = fasta(SubjectPart(True, 2), DNA_RUN, DNA_QUERIES)
    assert (one, two) == (f"ta{BASES}tt", reverse_complement(f"gt{TURNED}tt"))
    (first, one), (second, two) = fasta(SubjectPart(True, 100), DNA_RUN, DNA_QUERIES)
    assert (one, two) == (f"ggta{BASES}ttag", reverse_complement(f"ggt{TURNED}ttaN"))
    assert (first.split()[0], second.split()[0]) == ("m1:1-74", "m2:1-69/rc")


def test_each_alignment_of_each_query_is_a_part():
    second = replace(SELF, hsp=2, alignment=replace(SELF.alignment, subject_start=10, subject_letters="PLL"))
    query = replace(PROTEIN_QUERIES[0], hits=(SELF, second, GAPPED))
    found = fasta(ALIGNED, PROTEIN_RUN, (query, replace(query, number=1, header="other")))
    assert [header.split()[:2] for header, _ in found[:4]] == [
        ["s1:1-144", "query=q1"], ["s1:11-144", "query=q1"], ["s3:1-104", "query=q1"], ["s1:1-144", "query=other"]
    ]  # fmt: skip
    assert found[1][1] == "PLL"


def test_a_whole_subject_is_written_although_its_best_alignment_was_filtered():
    """The hits of a page of the service may begin with any alignment of a subject."""
    second = replace(GAPPED, hsp=2)
    query = replace(PROTEIN_QUERIES[0], hits=(second,))
    assert fasta(SubjectPart(), PROTEIN_RUN, (query,)) == [("s3", SHORTENED)]


def test_only_stored_aligned_parts_do_without_the_database():
    """A translated subject's record has residues, but nucleotides are written."""
    query = PROTEIN_QUERIES[0]
    assert len(fasta(ALIGNED, PROTEIN_RUN, (query,), None)) == 2
    assert not FastaReport(ALIGNED).needs_subjects(PROTEIN_RUN)
    for part, run in ((SubjectPart(), PROTEIN_RUN), (SubjectPart(True, 1), PROTEIN_RUN), (ALIGNED, TRANSLATED)):
        assert FastaReport(part).needs_subjects(run)
    for part in (SubjectPart(), SubjectPart(True, 1)):
        with pytest.raises(InputError, match="which was not opened"):
            fasta(part, PROTEIN_RUN, (query,), None)
    framed = replace(query, hits=(replace(SELF, subject_frame=-2),))
    with pytest.raises(InputError, match="which was not opened"):
        fasta(ALIGNED, TRANSLATED, (framed,), None)


def test_an_unknown_evalue_and_an_empty_header_are_left_out_or_named():
    query = replace(PROTEIN_QUERIES[0], header="", hits=(replace(SELF, subject_header="", evalue=None),))
    assert fasta(ALIGNED, PROTEIN_RUN, (query,)) == [("unnamed:1-144 query=unnamed", LEGHEMOGLOBIN)]
    assert fasta(SubjectPart(), PROTEIN_RUN, (query,)) == [("unnamed", LEGHEMOGLOBIN)]


@pytest.mark.parametrize("name", ["blast6", "blast7", "tsv", "csv", "parquet"])
def test_full_sseq_is_read_from_the_database(written, name):
    assert new_report(name, ["sseqid", "full_sseq"]).needs_subjects(PROTEIN_RUN)
    assert not new_report(name).needs_subjects(PROTEIN_RUN)
    with pytest.raises(InputError, match="full_sseq is in the database"):
        written(name, fields=["full_sseq"], subjects=None)
    if name != "parquet":
        assert SHORTENED in written(name, fields=["full_qseq", "full_sseq"])


def test_the_minus_strand_reverses_no_full_sequence(written):
    rows = written("blast6", DNA_RUN, DNA_QUERIES, ["full_sseq"]).splitlines()
    assert rows[1] == f"ggt{TURNED}ttaN"
    assert len(rows[1]) == MINUS.subject_length


def test_a_part_out_of_range_or_for_another_format_is_refused():
    with pytest.raises(InputError, match=r"flank=1000001: give a number of residues, 0 to 1,000,000"):
        SubjectPart(True, 1_000_001)
    with pytest.raises(InputError, match="flanks are beside an aligned part"):
        SubjectPart(False, 3)
    with pytest.raises(InputError, match="format tsv has no parts of subjects to choose"):
        new_report("tsv", part=ALIGNED)
