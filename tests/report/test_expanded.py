"""``sto`` and ``afasta``: the same columns as ``a3m``, as other readers see them, and the names of rows."""

import io
import re
from dataclasses import replace

import pytest
from Bio import AlignIO
from hypothesis import given
from hypothesis import strategies as st

from swsearch.errors import InputError
from swsearch.query.multiple_alignment import read_aligned_fasta, read_stockholm
from swsearch.report.anchored import expanded, insertions
from tests.report.conftest import DNA_QUERIES, DNA_RUN, GAPPED, PROTEIN_QUERIES, PROTEIN_RUN, SELF
from tests.report.test_several_alignments import QUERY, RUN
from tests.report.test_translated import CASES, STATS, QueryResult, run_of

RUNS = [(PROTEIN_RUN, PROTEIN_QUERIES), (DNA_RUN, DNA_QUERIES), (RUN, [QUERY])]


def a3m_rows(written, run, query) -> list[str]:
    return written("a3m", run, [query]).splitlines()[1::2]


@pytest.mark.parametrize(("run", "queries"), RUNS)
def test_biopython_reads_the_columns_of_a3m(written, run, queries):
    """Source: ``a3m``. Where ``RF`` has an x are its columns, elsewhere its lower-case letters."""
    alignments = list(AlignIO.parse(io.StringIO(written("sto", run, queries)), "stockholm"))
    assert len(alignments) == len(queries)
    for query, alignment in zip(queries, alignments, strict=True):
        reference = alignment.column_annotations["reference_annotation"]
        assert reference.count("x") == query.length
        for row, record in zip(a3m_rows(written, run, query), alignment, strict=True):
            pairs = list(zip(str(record.seq), reference, strict=True))
            assert "".join(letter for letter, mark in pairs if mark == "x") == re.sub("[a-z]", "", row)
            assert "".join(letter for letter, mark in pairs if mark == "x" or letter != "-") == row


@pytest.mark.parametrize(("run", "queries"), RUNS)
def test_aligned_fasta_is_the_same_in_upper_case(written, run, queries):
    """Source: ``sto``, whose rows are the same with other gaps; and the headers of ``a3m``."""
    stockholm = list(AlignIO.parse(io.StringIO(written("sto", run, queries)), "stockholm"))
    blocks = written("afasta", run, queries).split("\0")
    for block, alignment in zip(blocks, stockholm, strict=True):
        rows = block.splitlines()[1::2]
        assert rows == [str(record.seq).upper().replace(".", "-") for record in alignment]
        assert len(set(map(len, rows))) == 1
    assert [line for line in "".join(blocks).splitlines() if line.startswith(">")] == [
        line.lstrip("\0") for line in written("a3m", run, queries).splitlines() if line.lstrip("\0").startswith(">")
    ]


@given(st.lists(st.lists(st.tuples(st.text("abc", max_size=3), st.sampled_from("KLMN-")), min_size=4, max_size=4)))
def test_any_rows_get_equal_lengths_and_keep_their_letters(made):
    """By the definition of the formats: without the gaps of other rows' insertions, a row is what it was."""
    rows = ["".join(inserted + column for inserted, column in row) for row in made]
    found = [insertions(row) for row in rows]
    widths = {
        place: max(len(dict(row).get(place, "")) for row in found) for place in {p for row in found for p, _ in row}
    }
    wide = [expanded(row, widths, ".") for row in rows]
    assert [row.replace(".", "") for row in wide] == rows
    assert {len(row) for row in wide} <= {4 + sum(widths.values())}


def test_this_program_reads_both(written, tmp_path):
    """Source: the readers of profiles; three columns hold an insertion of the last row alone."""
    (tmp_path / "a.sto").write_text(written("sto"))
    first, second = read_stockholm(tmp_path / "a.sto")
    assert (first.name, first.codes.shape, second.name, second.codes.shape) == ("q1", (3, 147), "q2", (1, 7))
    (tmp_path / "a.fasta").write_text(written("afasta", queries=PROTEIN_QUERIES[:1]))
    (read,) = read_aligned_fasta(tmp_path / "a.fasta", insertions=False)
    assert (read.codes == first.codes).all()


def test_names_are_there_once_and_begin_no_remark(written):
    """By hand: two subjects with one identifier, and identifiers that Stockholm would take for something else."""
    hits = (
        SELF,
        replace(SELF, rank=2, subject_index=9),
        replace(SELF, rank=3, subject_index=10, subject_header="#odd one"),
    )
    report = written("sto", queries=(replace(PROTEIN_QUERIES[0], header="//q", hits=hits),))
    names = [line.split()[0] for line in report.splitlines() if not line.startswith(("#", "//"))]
    assert names == ["_q", "s1/1-144", "s1/1-144~2", "_odd/1-144"]
    assert "\n#=GS _odd/1-144 DE one\n" in report


def test_unknown_values_have_no_line(written):
    hit = replace(GAPPED, bits=None, evalue=None)
    report = written("sto", queries=(replace(PROTEIN_QUERIES[0], hits=(hit,)),))
    assert "#=GS" not in report
    assert "\ns3/1-104 " in report


def test_translated_queries_are_refused(written):
    translate, hit, letters = CASES["blastx"]
    for name in ("sto", "afasta"):
        with pytest.raises(InputError, match=f"format {name} cannot hold a search with a translated query"):
            written(name, run_of(translate), [QueryResult(0, "q1", letters, (hit,), 1, STATS)])
