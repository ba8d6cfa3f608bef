"""Parquet reports, read by pyarrow and DuckDB, and the output of binary results.

The expected values are the records of ``conftest.py``, or other reports of the same hits.
"""

import io
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from swsearch.cli.app import main
from swsearch.cli.output import result_stream
from swsearch.errors import InputError
from swsearch.report.fields import FIELDS
from swsearch.report.formats import new_report
from swsearch.report.parquet import ParquetReport
from swsearch.report.tabular import DEFAULT_FIELDS
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from tests.report.conftest import GAPPED, GENOMES, PROTEIN_QUERIES, PROTEIN_RUN, SELF, context_of
from tests.report.test_formats import EVERY_FIELD
from tests.taxonomy.dumps import EXCERPT

ROOT = Path(__file__).parents[2]


def table(content: bytes) -> pyarrow.Table:
    return parquet.read_table(io.BytesIO(content))


def test_pyarrow_reads_the_values_with_their_types(written):
    """Source: the records; 98 of 120 columns is 81.667 %, 117 of 144 residues 81 %."""
    read = table(written("parquet"))
    assert read.column_names == list(DEFAULT_FIELDS)
    first, second = read.to_pylist()
    assert (first["qseqid"], first["sseqid"], first["stitle"]) == ("q1", "s1", SELF.subject_header)
    assert (second["evalue"], second["bitscore"], second["score"]) == (GAPPED.evalue, GAPPED.bits, 444)
    assert second["pident"] == pytest.approx(100 * 98 / 120)
    assert (second["qcovs"], second["qstart"], second["qend"], second["rank"]) == (81, 1, 117, 2)
    types = {field.name: str(field.type) for field in read.schema}
    assert (types["cigar"], types["score"], types["evalue"]) == ("string", "int64", "double")


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_has_the_type_of_its_values(written, field):
    """Source: the ``tsv`` report of the same field; a value of another type would not match its column."""
    organisms = TaxonomyOfSubjects(read_dump(EXCERPT), {0: (562, 9606), 1: ()}.get)
    given = *EVERY_FIELD, [field], organisms, GENOMES
    (values,) = table(written("parquet", *given)).to_pydict().values()
    lines = written("tsv", *given).splitlines()[1:]
    if FIELDS[field].kind is float:
        assert values == pytest.approx([float(line) for line in lines], rel=1e-2)
    else:
        assert ["" if value is None else str(value) for value in values] == lines


def test_the_file_says_what_was_searched(written):
    """Source: the ``json`` report."""
    about = json.loads(parquet.read_schema(io.BytesIO(written("parquet"))).metadata[b"swsearch"])
    whole = json.loads(written("json"))
    assert {**about, "queries": whole["queries"]} == whole


def test_unknown_values_are_null_and_odd_bytes_are_replaced(written):
    hit = replace(SELF, bits=None, evalue=None, subject_header="caf\u00e9 \udcff")
    (row,) = table(written("parquet", queries=(replace(PROTEIN_QUERIES[0], hits=(hit,)),))).to_pylist()
    assert (row["bitscore"], row["evalue"], row["stitle"]) == (None, None, "caf\u00e9 \ufffd")


def test_a_run_without_hits_is_a_table_without_rows(written):
    read = table(written("parquet", queries=PROTEIN_QUERIES[1:]))
    assert (read.num_rows, read.num_columns) == (0, len(DEFAULT_FIELDS))


def test_row_groups_leave_as_they_fill(monkeypatch):
    """A format that delayed the hits would have written none before it takes the last query."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw)
    sizes = []

    def queries():
        for number in range(5):
            yield replace(PROTEIN_QUERIES[0], number=number)
            sizes.append(len(raw.getvalue()))

    monkeypatch.setattr("swsearch.report.parquet.ROWS_IN_GROUP", 4)
    ParquetReport().write_all(context_of(PROTEIN_RUN), queries(), stream)
    assert sizes[0] == len(b"PAR1")
    assert len(b"PAR1") < sizes[1] == sizes[2] < sizes[3]
    written = parquet.ParquetFile(io.BytesIO(raw.getvalue())).metadata
    assert [written.row_group(number).num_rows for number in range(written.num_row_groups)] == [4, 4, 2]


def test_a_field_named_twice_is_refused():
    with pytest.raises(InputError, match="names evalue, score twice"):
        new_report("parquet", ["std", "score", "evalue", "score"])


def test_without_pyarrow_it_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("swsearch.report.parquet.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs pyarrow; `pip install 'swsearch\[parquet\]'`"):
        new_report("parquet")


@pytest.mark.parametrize("binary", [True, False])
def test_binary_results_are_kept_from_a_terminal(monkeypatch, binary):
    """stdout is a pseudo-terminal, to which only text may be written."""
    try:
        master, slave = os.openpty()
    except OSError as error:
        pytest.skip(f"this machine gives out no pseudo-terminals: {error.strerror}")
    try:
        with os.fdopen(slave, "w") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            if binary:
                with pytest.raises(InputError, match="give --out FILE"), result_stream(None, binary=True):
                    pytest.fail("the block must not begin")
            else:
                with result_stream(None) as stream:
                    stream.write("text\n")
                assert os.read(master, 100).split() == [b"text"]
    finally:
        os.close(master)


def test_the_example_of_the_docs_runs_on_a_real_search(tmp_path, monkeypatch, capfdbinary):
    """Source: docs/reference/formats.md; the same hits counted from ``blast6``, and the same bytes on stdout."""
    monkeypatch.chdir(tmp_path)
    assert main(["index", str(ROOT / "data/lambda_phage.fasta"), "-o", "l.db", "-q"]) == 0
    search = ["query", str(ROOT / "data/lambda_reads.fastq"), "l.db", "-q", "--store", "s.sqlite"]
    assert main([*search, "--format", "parquet", "--out", "hits.parquet"]) == 0
    capfdbinary.readouterr()
    assert main(["report", "1", "--store", "s.sqlite", "--format", "parquet"]) == 0
    assert capfdbinary.readouterr().out == Path("hits.parquet").read_bytes()
    assert main(["report", "1", "--store", "s.sqlite", "--format", "blast6"]) == 0
    lines = [line.split("\t") for line in capfdbinary.readouterr().out.decode().splitlines()]
    (statement,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/reference/formats.md").read_text(), re.DOTALL)
    rows = duckdb.sql(statement).fetchall()
    best = {query: subject for query, subject, *_ in reversed(lines)}
    assert {query: subject for query, subject, *_ in rows} == best
    assert len(rows) == len(best)
