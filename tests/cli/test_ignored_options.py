"""No option is ignored silently: where an option would have no effect, it is refused by name.

The expected messages are written by hand.
"""

from pathlib import Path

import pytest

from tests.cli.conftest import DATA, QUERIES

READS = DATA / "lambda_reads.fastq"


@pytest.fixture
def call(swsearch, protein_db, lambda_db, tmp_path):
    """Run a command; ``{proteins}`` and ``{dna}`` are databases, ``{pair}`` a pair of proteins, ``{one}`` one."""
    (tmp_path / "pair.fasta").write_text(">a\nMKVLAAGIVG\n>b\nMKVLAGIVG\n")
    (tmp_path / "one.fasta").write_text(">a\nMKVLAAGIVG\n")
    (tmp_path / "cheap.txt").write_text("  A X\nA 9 5\nX 5 5\n")
    names = {
        "{proteins}": protein_db, "{dna}": lambda_db, "{queries}": QUERIES, "{reads}": READS,
        "{pair}": "pair.fasta", "{one}": "one.fasta",
    }  # fmt: skip
    return lambda line: swsearch(*[names.get(word, word) for word in line.split()])


SEARCHES = {
    "query {queries} {proteins} --strand plus": "--strand plus: queries are proteins",
    "query {queries} {dna} --translate subject --strand minus": "--strand minus: queries are proteins",
    "query {queries} {proteins} --match 2": "--match and --mismatch are for DNA",
    "query {queries} {proteins} --genetic-code 11": "--genetic-code 11: say with --translate",
    "query {queries} {proteins} --taxonomy nodes.dmp": "serve --taxid",
    "query {queries} {proteins} --taxid-map map.txt": "serve --taxid",
    "cluster {proteins} --out clusters.jsonl --taxonomy nodes.dmp": "serve --taxid",
    "query {queries} {proteins} --engine cpu --devices 0": "--devices 0: the cpu engine uses no GPU",
    "query {queries} {proteins} --engine reference --devices 1": "--devices 1: the reference engine uses no GPU",
    "query {queries} {proteins} --engine reference --no-bound": "the reference engine uses no bound",
    "query {queries} {proteins} --mask-mode hard": "--mask-mode hard: say with --mask",
    "query {queries} {proteins} --mask dust": "dust",
    "query {queries} {proteins} --format json --fields qseqid": "has no columns to choose",
    "query {queries} {proteins} --msa-max-identity 90": "format table has no rows of an alignment to choose",
    "query {queries} {proteins} --format tsv --msa-diff 5": "format tsv has no rows of an alignment to choose",
    "query {queries} {proteins} --format a3m --msa-filter-above 5": "--msa-filter-above serves",
    "batch {queries} {proteins} --store s.sqlite --msa-coverage 5": "name its --format",
    "query {queries} {proteins} --aligned": "format table has no parts of subjects to choose",
    "query {queries} {proteins} --format json --flank 5": "format json has no parts of subjects to choose",
    "query {queries} {proteins} --format fasta --fields qseqid": "format fasta has no columns to choose",
    "query {queries} {proteins} --format fasta --msa-diff 5": "format fasta has no rows of an alignment to choose",
    "batch {queries} {proteins} --store s.sqlite --flank 5": "say --format fasta",
    "query {queries} {proteins} --matrix cheap.txt --evalue 1": "--evalue 1: there are no E-values",
    "query {queries} {proteins} --matrix cheap.txt --dbsize 5": "--dbsize 5: there are no E-values to scale",
    "query {queries} {proteins} --matrix cheap.txt --min-bits 5": "--min-bits 5: there are no bit scores",
    "query {reads} {dna} --matrix BLOSUM62": "matrix BLOSUM62 is for protein",
    "query {reads} {dna} --composition bias": "--composition",
    "query {reads} {dna} --matrix cheap.txt --match 1": "exclude each other",
    "batch {queries} {proteins} --strand plus": "--strand plus: queries are proteins",
    "batch {queries} {proteins} --engine cpu --devices 0": "--devices 0: the cpu engine uses no GPU",
}
ALIGNMENTS = {
    "align {pair} --pairs --match 2": "--match and --mismatch are for DNA",
    "align {pair} --pairs --mode edit --gap-open 2": "leave --alphabet and the scoring options out",
    "align {pair} --pairs --mode lcs --matrix BLOSUM62": "leave --alphabet and the scoring options out",
    "align {pair} --pairs --mode edit --costs nw2009": "leave the scoring options out",
    "align {pair} --pairs --costs sw2023 --gap-extend 2": "leave the other scoring options out",
    "align {pair} --pairs --mode global --free-ends query": "--free-ends query is for --mode semiglobal",
    "align {pair} --pairs --mode lcs --free-ends subject": "--free-ends subject is for --mode semiglobal",
    "align {pair} --pairs --mode local --free-ends none": "--free-ends none is unknown",
    "align {pair} --pairs --serial --threads 2": "the reference implementation has one thread",
    "align {pair} --pairs --engine reference --threads 1": "the reference implementation has one thread",
    "align {pair} --pairs --kernel wavefront --mode edit --threads 2": "--kernel wavefront has one thread",
    "align {pair} --pairs --serial --engine cpu": "leave --engine cpu out",
    "align {pair} --pairs --engine cpu --kernel wavefront --mode edit": "leave --engine cpu out",
    "align {pair} --pairs --format pairwise --score-only": "--score-only finds none",
    "align {pair} --pairs --format pairwise --kernel wavefront --mode edit": "--kernel wavefront finds none",
    "align {one} {one} --text": "--text is for --mode edit and lcs",
}
BENCHES = {
    "bench --residues 1000 --fasta {one}": "--residues is the size of generated subjects",
    "bench kernels --residues 1000 --fasta {one}": "--residues is the size of generated subjects",
    "bench --residues 1000 kernels": "--residues stands before kernels",
    "bench --threads 2 kernels": "--threads stands before kernels",
    "bench kernels --tasks pair --residues 1000": "--residues is for the task search",
    "bench kernels --tasks search --pairs 5": "--pairs is for the task batch",
    "bench kernels --tasks search --pair-length 5": "--pair-length is for the task pair",
    "bench --instruction-sets best,mmx --residues 100": "'mmx' is not among",
}


@pytest.mark.parametrize("line", [*SEARCHES, *ALIGNMENTS, *BENCHES])
def test_an_option_that_would_change_nothing_is_refused(call, tmp_path, line):
    before = sorted(tmp_path.iterdir())
    outcome = call(line)
    assert {**SEARCHES, **ALIGNMENTS, **BENCHES}[line] in outcome.refusal
    assert [path for path in sorted(tmp_path.iterdir()) if path not in before] == []


# --- large pairs ---


@pytest.fixture
def large(tmp_path):
    """Two texts of 5,010 letters, 25.1 million cells, that differ in one letter."""
    text = "ACGTTGCAAC" * 501
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text(text[:100] + "N" + text[101:])


def test_pairwise_shows_the_alignment_of_a_large_pair(swsearch, large):
    """By hand: one of the 5,010 letters differs."""
    outcome = swsearch("align", "a.txt", "b.txt", "--mode", "edit", "--format", "pairwise")
    assert "100=1X4909=" in outcome.printed
    assert outcome.out.count("Sbjct") == 84  # 5,010 columns in blocks of 60
    assert "--cigar" not in outcome.err


def test_what_is_not_computed_of_a_large_pair_is_said_with_the_way_to_have_it(swsearch, large):
    for name in ("table", "tsv", "json", "jsonl"):
        outcome = swsearch("align", "a.txt", "b.txt", "--mode", "edit", "--format", name)
        assert "100=1X" not in outcome.printed
        assert "the pair has more than 25,000,000 cells" in outcome.err
        assert "--cigar finds the alignment" in outcome.err
    for more in (["--quiet"], ["--score-only"], ["--cigar"]):
        assert "25,000,000" not in swsearch("align", "a.txt", "b.txt", "--mode", "edit", *more).err


@pytest.mark.parametrize(
    ("command", "name", "own"),
    [
        ("query q.fa few.db", "hits.xlsx", ".tsv, .csv, .parquet, .json, .jsonl, .sam, .gff3, .gff, .bed, .paf, .a3m,"),
        ("query q.fa few.db", "hits.XLS.gz", ".tsv, .csv,"),
        ("batch q.fa few.db", "hits.pdf", ".tsv, .csv,"),
        ("allpairs few.db", "pairs.ods", ".tsv, .csv,"),
        ("cluster few.db", "clusters.docx", ".tsv, .jsonl, or say"),
        ("msa q.fa few.db", "rows.docx", ".a3m, .sto, .afasta, or say"),
        ("report latest", "hits.bam", ".tsv, .csv,"),
    ],
)
def test_the_name_of_a_spreadsheet_or_document_is_refused_before_the_search(
    swsearch, tmp_path, few_proteins_db, command, name, own
):
    (tmp_path / "few.db").symlink_to(few_proteins_db)
    (tmp_path / "q.fa").write_text(">q\nMKVLAAGIVGLLLAQWERTY\n")
    refused = swsearch(*command.split(), "-o", name)
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    assert f"--out '{name}': there are no reports as {suffix}; choose {own}" in refused.refusal
    assert refused.err == refused.error + "\n"
    assert not (tmp_path / name).exists()


def test_a_format_that_needs_a_library_is_refused_before_the_database_is_opened(swsearch, tmp_path, monkeypatch):
    monkeypatch.setattr("swsearch.report.parquet.find_spec", lambda name: None)
    (tmp_path / "q.fa").write_text(">q\nMKVLAAGIVGLLLAQWERTY\n")
    (tmp_path / "no.db").mkdir()  # which opening would refuse
    for options in (["--format", "parquet"], ["-o", "hits.parquet"]):
        refused = swsearch("query", "q.fa", "no.db", *options)
        assert refused.refusal.endswith("format parquet needs pyarrow; `pip install 'swsearch[parquet]'` adds it")
