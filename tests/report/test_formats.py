"""Reports as other programs read them, and values that the formats refuse.

The expected values are the records of ``conftest.py``, or are written by hand.
"""

import csv
import io
import json
from dataclasses import replace

import pytest
from Bio import SearchIO

from swsearch.errors import InputError
from swsearch.report.fields import FIELDS
from swsearch.report.formats import FORMATS, Use, new_report
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from tests.report.conftest import (
    DNA_QUERIES,
    DNA_RUN,
    GAPPED,
    GENOMES,
    LEGHEMOGLOBIN,
    MINUS,
    OF_TAXA,
    PROTEIN_QUERIES,
    PROTEIN_RUN,
    SELF,
    STATS,
    context_of,
    make_run,
)
from tests.taxonomy.dumps import EXCERPT

ODD = replace(SELF, subject_header='od,d\tname "quoted"\x0b caf\u00e9 \udcff', bits=None, evalue=None)
ODD_QUERIES = (replace(PROTEIN_QUERIES[0], header="", hits=(ODD,), n_passed=1),)
EVERY_FIELD = (
    make_run("dna", parameters={**DNA_RUN.parameters, "sensitive": True, "count_hsps": True}),
    [replace(q, hits=tuple(replace(hit, n_hsps=2, forward_bits=61.28) for hit in q.hits)) for q in DNA_QUERIES],
)
"""A run and its queries with a value of each field, although no search has both options."""


@pytest.mark.parametrize("name", ["blast6", "blast7"])
def test_biopython_reads_the_blast_formats(written, name):
    """Source: the records themselves, read back by Bio.SearchIO's parser."""
    results = list(SearchIO.parse(io.StringIO(written(name)), "blast-tab", comments=name == "blast7"))
    found = {(result.id, hsp.hit_id): hsp for result in results for hsp in result.hsps}
    assert list(found) == [("q1", "s1"), ("q1", "s3")]
    gapped = found["q1", "s3"]
    # SearchIO has 0-based, half-open coordinates, as the records do.
    assert (gapped.query_start, gapped.query_end, gapped.hit_start, gapped.hit_end) == (0, 117, 0, 104)
    assert (gapped.evalue, gapped.bitscore, gapped.ident_pct) == (1.42e-62, 175.0, 81.667)
    assert (gapped.aln_span, gapped.mismatch_num, gapped.gapopen_num) == (120, 3, 2)


def test_biopython_reads_the_minus_strand(written):
    """Source: the record: subject positions 3 to 65, minus strand."""
    (result,) = SearchIO.parse(io.StringIO(written("blast6", DNA_RUN, DNA_QUERIES)), "blast-tab")
    minus = result.hsps[1]
    assert (minus.hit_start, minus.hit_end, minus.hit_strand, minus.query_strand) == (3, 65, -1, 1)


def test_biopython_reads_a_query_without_a_header(written):
    """By hand: an empty identifier is ``unnamed`` in the columns, so the comment must also contain it."""
    nameless = (replace(PROTEIN_QUERIES[0], header=""),)
    (result,) = SearchIO.parse(io.StringIO(written("blast7", PROTEIN_RUN, nameless)), "blast-tab", comments=True)
    assert (result.id, len(result.hsps)) == ("unnamed", 2)


def test_json_holds_the_records(written):
    """Source: the records; 98 of 120 columns is 81.667 %, 117 of 144 residues 81.25 %."""
    report = json.loads(written("json"))
    assert report["schema_version"] == 2
    assert report["parameters"] == PROTEIN_RUN.parameters
    assert report["database"]["n_residues"] == 402
    first, second = report["queries"]
    assert (second["n_passed"], second["hits"]) == (0, [])
    hit = first["hits"][1]
    assert hit["score"] == 444
    assert hit["evalue"] == GAPPED.evalue
    assert hit["bits"] == GAPPED.bits
    assert (hit["query_start"], hit["query_end"]) == (0, 117)
    assert hit["identity_percent"] == pytest.approx(81.667, abs=1e-3)
    assert hit["query_coverage_percent"] == 81.25


def test_json_lines_are_the_same_objects(written):
    """Source: the ``json`` report."""
    whole = json.loads(written("json"))
    rows = [json.loads(line) for line in written("jsonl").splitlines()]
    assert [row.pop("type") for row in rows] == ["run", "query", "hit", "hit", "query"]
    assert rows[0].items() <= whole.items()
    hits = rows[2:4]
    assert {(row.pop("query_number"), row.pop("query_id")) for row in hits} == {(0, "q1")}
    assert hits == whole["queries"][0]["hits"]
    assert {**rows[4], "hits": []} == whole["queries"][1]


def test_json_of_a_run_without_queries_is_an_object(written):
    assert json.loads(written("json", queries=()))["queries"] == []


def test_csv_gives_back_any_header(written):
    """Source: the header, read by Python's csv module."""
    (row,) = csv.DictReader(io.StringIO(written("csv", queries=ODD_QUERIES), newline=""))
    assert row["stitle"] == ODD.subject_header
    assert row["qseqid"] == "unnamed"


def test_odd_headers_do_not_break_lines_or_columns(written):
    for name in ("blast6", "tsv"):
        last = written(name, queries=ODD_QUERIES, fields=["stitle", "score"]).split("\n")[-2]
        assert last.split("\t") == ['od,d name "quoted"  café \udcff', "715"]
    (hit,) = json.loads(written("json", queries=ODD_QUERIES))["queries"][0]["hits"]
    assert hit["subject_header"] == ODD.subject_header


def test_unknown_values_are_empty_null_or_not_available(written):
    columns = ["evalue", "bitscore", "sstrand", "score"]
    assert written("tsv", queries=ODD_QUERIES, fields=columns).splitlines()[1] == "\t\t\t715"
    assert written("csv", queries=ODD_QUERIES, fields=columns).splitlines()[1] == ",,,715"
    assert written("blast6", queries=ODD_QUERIES, fields=columns) == "N/A\tN/A\tN/A\t715\n"
    hit = json.loads(written("json", queries=ODD_QUERIES))["queries"][0]["hits"][0]
    assert hit["evalue"] is None
    assert hit["bits"] is None
    run = make_run("protein", lam=None, k=None, statistics="no table has gap 3/1")
    shown = written("pairwise", run, ODD_QUERIES)
    assert " Score = 715\n" in shown
    assert "no E-values: no table has gap 3/1" in shown


@pytest.mark.parametrize("name", FORMATS)
def test_engine_threads_times_and_command_are_in_no_report(written, name):
    """Source: the same search by another engine; reports must be the same bytes."""
    other = make_run("protein", engine="cuda", threads=64, command="another --engine cuda")
    taxonomy = TaxonomyOfSubjects(read_dump(EXCERPT), {0: (9606,)}.get)
    slower = [replace(query, stats=replace(STATS, total_seconds=9.0, n_rescored=5)) for query in PROTEIN_QUERIES]
    assert written(name, other, slower, taxonomy=taxonomy) == written(name, taxonomy=taxonomy)


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"sam", "parquet", "multiqc"} - OF_TAXA))
def test_queries_are_written_as_they_come(name):
    """A format that delayed the queries would not have written the first one before it takes the second one.

    ``sam`` must know all subjects first, and ``parquet`` writes row groups.
    """
    stream = io.StringIO()

    def queries():
        yield PROTEIN_QUERIES[0]
        assert "s3" in stream.getvalue()
        yield PROTEIN_QUERIES[1]

    new_report(name).write_all(context_of(PROTEIN_RUN), queries(), stream)


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"parquet", "multiqc"} - OF_TAXA))
def test_every_text_format_writes_dna(written, name):
    assert "m2" in written(name, DNA_RUN, DNA_QUERIES)


def test_std_stands_for_blasts_twelve_columns(written):
    assert written("blast6", fields=["std"]) == written("blast6")
    assert written("tsv", fields=["std", "cigar"]).splitlines()[0].split("\t")[-2:] == ["bitscore", "cigar"]


@pytest.mark.parametrize("field", [name for name, field in FIELDS.items() if field.use is Use.NONE])
def test_every_field_has_a_value_on_both_strands(written, field):
    """Every field has a value for DNA, as in BLAST; those of organisms are in ``test_taxa.py``."""
    for line in written("tsv", *EVERY_FIELD, [field], None, GENOMES).splitlines():
        assert line


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"parquet"} - OF_TAXA))
def test_forward_scores_are_shown_where_no_other_program_defines_the_format(written, name):
    """Source: the record; for other formats, the report of a hit without a Forward score."""
    run, (query,) = EVERY_FIELD
    without = replace(query, hits=tuple(replace(hit, forward_bits=None) for hit in query.hits))
    shown, plain = (written(name, run, [one], subjects=GENOMES) for one in (query, without))
    in_json = '"forward_bits": 61.28, "evalue"'
    texts = {"table": "    61.3 ", "pairwise": "),  Forward = 61.3 bits,  Expect", "tsv": "\t61.3\n", "csv": ",61.3\n",
             "html": '<td class="number">61.3</td>', "json": in_json, "jsonl": in_json}  # fmt: skip
    assert shown.count(texts[name]) == 2 if name in texts else shown == plain
    assert "orward" not in written(name)


@pytest.mark.parametrize(("fields", "words"), [(["sseqid", "colour"], "no field colour"), ([], "names no field")])
def test_unknown_fields_are_refused_with_the_valid_ones(fields, words):
    with pytest.raises(InputError, match=words) as caught:
        new_report("tsv", fields)
    assert "qseqid" in str(caught.value)
    assert "cigar" in str(caught.value)


@pytest.mark.parametrize("name", ["table", "json", "jsonl", "pairwise", "sam", "xml", "html"])
def test_fields_are_refused_where_there_are_no_columns(name):
    with pytest.raises(InputError, match=f"format {name} has no columns"):
        new_report(name, ["score"])


def test_unknown_formats_are_refused_with_the_valid_ones():
    with pytest.raises(InputError, match="no format 'blast5'; choose from table, blast6"):
        new_report("blast5")


def test_a_table_stays_within_100_columns(written):
    """Names, descriptions and numbers are as long as those of Swiss-Prot."""
    header = "sp|A0A1234567|LONGNAME_ORGANISM " + "a very long description " * 10
    alignment = replace(SELF.alignment, query_start=30_000, query_end=35_000, subject_start=100, subject_end=34_350)
    long = tuple(
        replace(SELF, rank=rank, subject_header=header, subject_length=35_213, alignment=alignment)
        for rank in range(1, 1001)
    )
    query = replace(PROTEIN_QUERIES[0], header=header, letters=LEGHEMOGLOBIN * 300, hits=long, n_passed=20_000)
    lines = written("table", queries=(query,)).splitlines()
    assert max(map(len, lines)) <= 100
    assert "20,000 of 3 subjects have an E-value of at most 10; the best 1,000 are shown" in lines[3]


def table_of(names, description, width=100):
    """The lines of a table of three hits with these names, from its titles on."""
    headers = [f"{name} {description}" for name in names]
    hits = tuple(replace(SELF, rank=rank, subject_header=header) for rank, header in enumerate(headers, 1))
    stream = io.StringIO()
    query = replace(PROTEIN_QUERIES[0], hits=hits, n_passed=3)
    new_report("table", width=width).write_all(context_of(PROTEIN_RUN), [query], stream)
    return stream.getvalue().splitlines()[5:]


@pytest.mark.parametrize("width", [20, 78, 80, 90, 100, 130, 1000])
def test_a_table_has_whole_identifiers_and_the_width_that_is_asked_for(width):
    """By hand: rank and numbers take 54 columns, the longest identifier takes 30, a space and the description 246.

    In 20 columns there is no room at all, and the lines are as long as they must be, one under another.
    """
    names = ("sp|A5IMB8|ENGB_THEP1", "tr|A0A0A6N0I7|A0A0A6N0I7_9THEM", "x")
    _, *lines = table_of(names, f"{'a long text ' * 20}whole", width)
    assert [line.split()[1] for line in lines] == list(names)
    assert ("whole" in lines[0]) == (width == 1000)
    longest = 54 + 30 if width == 20 else min(width, 54 + 30 + 246)
    assert [len(line) for line in lines] == [max(longest, 54 + len(name)) for name in names]


def test_a_long_identifier_takes_the_room_of_its_description_alone():
    """By hand: 46 columns are left for identifiers and descriptions; the latter need 11 and a space."""
    names = ("short", "i" * 40, "i" * 60)
    title, first, second, third = table_of(names, "a long text " * 20)
    assert len(title) == len(first) == len(second) == 100
    assert "short                              a long tex…    144" in first
    assert f" {'i' * 40} a lo…    144" in second
    assert f" {'i' * 60}    144" in third


def test_a_block_of_gaps_alone_repeats_the_place_before(written):
    """By hand: 2 equal letters, 70 of the query against a gap, 2 equal letters.

    Columns 1-60 hold query 1-60 and subject 1-2; columns 61-74 query 61-74 and subject 3-4. With 130 in the gap the
    second block contains no residue of the subject and shows the position before it, 2, at both ends.
    """
    letters = "MK" + "A" * 130 + "WC"
    alignment = replace(
        SELF.alignment,
        query_end=134,
        subject_end=4,
        cigar="2=130I2=",
        columns=134,
        identities=4,
        subject_letters="MKWC",
    )
    query = replace(PROTEIN_QUERIES[0], letters=letters, hits=(replace(SELF, alignment=alignment),), n_passed=1)
    subject = [line for line in written("pairwise", queries=(query,)).splitlines() if line.startswith("Sbjct")]
    assert [line.split()[1] + " " + line.split()[-1] for line in subject] == ["1 2", "2 2", "3 4"]


def test_rna_and_lower_case_are_shown_as_written(written):
    """By hand: the query's U is unchanged; the letters of the reversed subject are complements in the same case."""
    alignment = replace(MINUS.alignment, query_end=4, subject_start=3, subject_end=7, cigar="4=", columns=4,
                        identities=4, gap_residues=0, gap_openings=0, subject_letters="ttAG")  # fmt: skip
    query = replace(DNA_QUERIES[0], letters="CUAA", hits=(replace(MINUS, alignment=alignment),))
    assert written("blast6", DNA_RUN, (query,), ["qseq", "sseq", "btop"]) == "CUAA\tCTaa\t4\n"


def test_multiqc_counts_queries_by_their_best_hit(written):
    """By hand: a limit belongs to the upper category; the best hit counts, not the second one."""
    query = PROTEIN_QUERIES[0]
    counts = [(144, 144), (90, 100), (8999, 10000), (7, 10), (1, 2), (3, 10), (299, 1000), (0, 1)]
    queries = [
        replace(
            query, hits=(replace(SELF, alignment=replace(SELF.alignment, identities=same, columns=columns)), GAPPED)
        )
        for same, columns in counts
    ]
    queries.append(replace(query, hits=(), n_passed=0))
    lines = written("multiqc", PROTEIN_RUN, tuple(queries)).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "90 to 100 % identical\t2", "70 to 90 %\t2", "50 to 70 %\t1", "30 to 50 %\t1", "below 30 %\t2", "no hit\t1",
    ]  # fmt: skip
