"""Alignments with the rows that pass conditions: which rows, in which formats. Source: the alignment with all rows."""

import io
import re

import numpy as np
import pytest

import swsearch
from swsearch.cli.app import main
from swsearch.errors import InputError
from swsearch.report.anchored import alignment_codes
from swsearch.report.formats import new_report
from swsearch.report.row_filter import RowFilter
from swsearch.sequences.alphabet import DNA, PROTEIN
from tests.cli.conftest import DATA
from tests.report.conftest import BASES, DNA_QUERIES, DNA_RUN, PROTEIN_QUERIES, PROTEIN_RUN, context_of
from tests.report.test_a3m import rows_of

ROWS = ["--msa-coverage", "30", "--msa-max-identity", "60"]


def test_codes_are_the_columns_of_the_rows(written):
    """Source: the text of the same rows; positions that a minus strand covers are those of its row."""
    for run, query, alphabet in ((PROTEIN_RUN, PROTEIN_QUERIES[0], PROTEIN), (DNA_RUN, DNA_QUERIES[0], DNA)):
        codes = alignment_codes(query, alphabet)
        (block,) = rows_of(written("a3m", run, [query]))
        columns = [re.sub("[a-z]", "", row) for _, row in block]
        assert ["".join("-" if c == 31 else alphabet.letters[c] for c in row) for row in codes.tolist()] == columns
        assert codes.dtype == np.uint8
    assert len(BASES) == codes.shape[1]


def test_every_format_leaves_out_the_same_rows():
    """By hand: the second hit has residues in 101 of 144 columns."""
    (query,) = PROTEIN_QUERIES[:1]
    for name, mark in (("a3m", r"^>s\d"), ("afasta", r"^>s\d"), ("sto", r"^s\d/")):
        for coverage, wanted in ((70, 2), (71, 1)):
            stream = io.StringIO()
            new_report(name, rows=RowFilter(coverage=coverage)).write_all(context_of(PROTEIN_RUN), [query], stream)
            assert len(re.findall(mark, stream.getvalue(), re.MULTILINE)) == wanted, name
    with pytest.raises(InputError, match="format json has no rows"):
        new_report("json", rows=RowFilter(coverage=70))


def test_commands_and_functions_write_the_same_bytes(tmp_path, monkeypatch, capfd):
    """A stored run is reported as the search printed it; the kept rows are those of the whole alignment."""
    monkeypatch.chdir(tmp_path)
    record = (DATA / "queries.fasta").read_text().split(">")[2]
    (tmp_path / "q.fasta").write_text(f">{record}")
    main(["index", str(DATA / "proteins.fasta.gz"), "-o", "p.db", "--quiet"])
    assert main(["query", "q.fasta", "p.db", "--top", "100", "--format", "a3m", "--out", "kept.a3m", *ROWS]) == 0
    kept = (tmp_path / "kept.a3m").read_text()
    assert main(["report", "latest", "--format", "a3m", "--out", "again.a3m", *ROWS]) == 0
    assert (tmp_path / "again.a3m").read_text() == kept
    with swsearch.Store(swsearch.user_store()) as store:
        stored = store.runs.get(1).info, list(store.results.queries(1))
        swsearch.write_report(stored, "function.a3m", "a3m", rows=swsearch.RowFilter(coverage=30, max_identity=60))
    assert (tmp_path / "function.a3m").read_text() == kept
    assert main(["report", "latest", "--format", "a3m"]) == 0
    everything = rows_of(capfd.readouterr().out)[0]
    chosen = RowFilter(coverage=30, max_identity=60).kept(alignment_codes(stored[1][0], PROTEIN))
    assert rows_of(kept)[0] == [everything[row] for row in chosen.tolist()]
    assert 5 < len(chosen) < len(everything) - 5
