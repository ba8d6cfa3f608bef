"""Sequences of hits (``--format fasta``, ``full_sseq``) and of queries with and without hits, from real searches.

The expected sequences come from ``samtools faidx`` and Biopython on the FASTA that was indexed, and from the tables of
the same run.
"""

import io
import shutil
import subprocess
from pathlib import Path

import pytest
from Bio import SeqIO
from Bio.Data import CodonTable
from Bio.Seq import Seq

import swsearch as package
from tests.cli.conftest import DATA, QUERIES

READS = DATA / "lambda_reads.fastq"
GENOME = DATA / "lambda_phage.fasta"
QUIET = ["--quiet", "--threads", "1"]
needs_samtools = pytest.mark.peer("samtools")


def records(text):
    """Return first word, other words and letters of each record."""
    found = SeqIO.parse(io.StringIO(text), "fasta")
    return [(record.id, record.description.split(" ")[1:], str(record.seq)) for record in found]


def rows(text):
    return [line.split("\t") for line in text.splitlines()]


@pytest.fixture
def stored(swsearch, few_proteins_db, tmp_path):
    """A stored run of the seven queries against a copy of the database of 60 proteins, and its report as FASTA."""
    shutil.copytree(few_proteins_db, tmp_path / "few.db")
    found = swsearch("query", QUERIES, "few.db", "--top", "4", "--evalue", "1000", "--format", "fasta", *QUIET)
    assert found.code == 0
    return found.out


def test_hits_are_the_records_of_the_database_once_in_the_order_of_the_table(swsearch, stored):
    """Source: the run's table, and ``db export``."""
    names = list(
        dict.fromkeys(name for (name,) in rows(swsearch("report", 1, "--format", "blast6", "--fields", "sseqid").out))
    )
    assert len(names) > 10
    exported = {record.split()[0]: record for record in swsearch("db", "export", "few.db").out.split(">")[1:]}
    assert stored == "".join(f">{exported[name]}" for name in names)
    assert swsearch("report", 1, "--format", "fasta").out == stored
    assert swsearch("db", "fetch", "few.db", *names).out == stored


@needs_samtools
@pytest.mark.parametrize("flank", [None, 0, 17])
def test_parts_of_dna_are_those_of_samtools_faidx(swsearch, tmp_path, flank):
    """The reads hit both strands; the regions come from the table of the run, the letters from the genome's FASTA."""
    shutil.copy(GENOME, tmp_path / "genome.fasta")
    assert swsearch("index", "genome.fasta", "-o", "genome.db").code == 0
    part = ["--aligned"] if flank is None else ["--flank", flank]
    command = ["query", READS, "genome.db", "--max-hsps", "2", "--format", "fasta", *part, *QUIET]
    found = records(swsearch(*command).out)
    fields = "sseqid sstart send slen qseqid evalue"
    table = rows(swsearch("report", "latest", "--format", "tsv", "--fields", fields).out)[1:]
    assert len(found) == len(table) > 10
    assert {"/rc" in name for name, _, _ in found} == {True, False}
    for (name, words, letters), (subject, start, end, length, query, evalue) in zip(found, table, strict=True):
        first, last = sorted((int(start), int(end)))
        first, last = max(1, first - (flank or 0)), min(int(length), last + (flank or 0))
        strand = ["-i"] if int(start) > int(end) else []
        command = ["samtools", "faidx", *strand, "genome.fasta", f"{subject}:{first}-{last}"]
        expected = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
        assert (name, letters) == records(expected)[0][::2]
        assert words[:2] == [f"query={query}", f"evalue={evalue}"]


def test_parts_of_a_translated_subject_are_nucleotides_of_the_aligned_residues(swsearch, lambda_db):
    """Source: Biopython's translation of each part is the subject's row of the alignment without its gaps."""
    command = ["query", QUERIES, lambda_db, "--translate", "subject", "--genetic-code", "11", "--max-hsps", "3"]
    found = records(swsearch(*command, "--format", "fasta", "--aligned", *QUIET).out)
    table = rows(swsearch("report", "latest", "--format", "blast6", "--fields", "sseq sframe").out)
    assert {int(frame) < 0 for _, frame in table} == {True, False}
    for (name, _, letters), (row, frame) in zip(found, table, strict=True):
        assert str(Seq(letters).translate(11)) == row.replace("-", "")
        assert name.endswith("/rc") == (int(frame) < 0)


def test_a_translated_query_turns_no_protein(swsearch, few_proteins_db, tmp_path):
    """Source: the reverse complement of a gene's bases aligns to its protein, which is written as it is."""
    protein = next(SeqIO.parse(io.StringIO(swsearch("db", "export", few_proteins_db).out), "fasta"))
    codons = CodonTable.unambiguous_dna_by_id[1].back_table
    gene = Seq("".join(codons.get(letter, "NNN") for letter in str(protein.seq)[:60]))
    (tmp_path / "gene.fasta").write_text(f">gene\n{gene.reverse_complement()}\n")
    command = ["query", "gene.fasta", few_proteins_db, "--translate", "query", "--top", "1", "--format", "fasta"]
    ((name, _, letters),) = records(swsearch(*command, "--aligned", *QUIET).out)
    assert (name, letters) == (f"{protein.id}:1-60", str(protein.seq)[:60])


# --- the database of a stored run ---


def test_a_database_that_moved_is_named(swsearch, stored, tmp_path):
    (tmp_path / "few.db").rename(tmp_path / "other.db")
    lost = swsearch("report", 1, "--format", "fasta", "--out", "x.fasta")
    assert "run 1: this report needs the database of the run" in lost.refusal
    assert "few.db does not exist; name the database with --database" in lost.error
    assert not (tmp_path / "x.fasta").exists()
    assert swsearch("report", 1, "--format", "fasta", "--database", "other.db").out == stored
    assert swsearch("report", 1, "--format", "fasta", "--aligned").out.count(">") > 10
    useless = swsearch("report", 1, "--format", "fasta", "--aligned", "--database", "other.db")
    assert "written from the store alone" in useless.error


def test_a_database_may_be_a_url(swsearch, stored, tmp_path, monkeypatch):
    """It is read from the cache of the node."""
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "cache"))
    url = (tmp_path / "few.db").as_uri()
    assert swsearch("report", 1, "--format", "fasta", "--database", url).out == stored
    first = stored.split()[0][1:]
    assert swsearch("db", "fetch", url, first).out == swsearch("db", "fetch", "few.db", first).out


def test_a_database_with_other_content_is_refused_and_a_compacted_one_is_not(swsearch, stored, tmp_path):
    """``db compact`` keeps the content; ``db add`` and ``db remove`` do not."""
    (tmp_path / "new.fasta").write_text(">new\nMKVLWYRAAAAA\n")
    first = stored.split()[0][1:]
    assert swsearch("db", "remove", "few.db", first).code == 0
    before = ["query", QUERIES, "few.db", "--top", "4", "--evalue", "1000", "--format", "fasta", *QUIET]
    searched = swsearch(*before).out
    assert swsearch("db", "compact", "few.db").code == 0
    assert swsearch("report", 2, "--format", "fasta").out == searched
    for fields in (["--format", "fasta"], ["--format", "blast6", "--fields", "full_sseq"]):
        changed = swsearch("report", 1, *fields)
        assert "few.db has other content than the database that was searched" in changed.refusal


def test_python_writes_the_same(stored, user_store):
    """A search that is running, and a stored run with its store."""
    options = package.SearchOptions(top=4, evalue=1000)
    package.write_report(package.search_database(QUERIES, "few.db", options), "new.fasta", "fasta")
    with package.Store(user_store) as store:
        package.write_report(
            (store.runs.get(1).info, store.results.queries(1)), "old.fasta", "fasta", database="few.db"
        )
        part = package.SubjectPart(aligned=True, flank=3)
        package.write_report((store.runs.get(1).info, store.results.queries(1)), "part.fasta.gz", "fasta", part=part)
    assert Path("new.fasta").read_text() == Path("old.fasta").read_text() == stored
    table = package.search_database(QUERIES, "few.db", options).to_arrow(["sseqid", "full_sseq"]).to_pylist()
    whole = {name: letters for name, _, letters in records(stored)}
    assert {row["sseqid"]: row["full_sseq"] for row in table} == whole


def test_python_refuses_a_database_that_would_not_be_read(stored, user_store, few_proteins_db):
    """Alignments of several databases have no whole subjects; aligned parts are in the records."""

    def families():
        return package.align_families([("q", "MKVLWYRAAGHTWKDE")], [few_proteins_db, "few.db"])

    with pytest.raises(package.SwSearchError, match="of several"):
        package.write_report(families(), "x.fasta", "fasta")
    package.write_report(families(), "part.fasta", "fasta", part=package.SubjectPart(aligned=True))
    assert not Path("x.fasta").exists()
    with pytest.raises(package.SwSearchError, match="a search has its own"):
        package.write_report(package.search_database(QUERIES, "few.db"), "x.tsv", "tsv", database="few.db")
    with package.Store(user_store) as store, pytest.raises(package.SwSearchError, match="from the records alone"):
        package.write_report((store.runs.get(1).info, store.results.queries(1)), "x.tsv", "tsv", database="few.db")


def test_a_batch_prints_sequences_and_part_options_need_their_format(swsearch, few_proteins_db, tmp_path):
    batch = ["batch", QUERIES, few_proteins_db, "--store", "b.sqlite", *QUIET]
    assert swsearch(*batch, "--format", "fasta", "--flank", "5", "--out", "parts.fasta").code == 0
    printed = swsearch("report", 1, "--store", "b.sqlite", "--format", "fasta", "--flank", "5").out
    assert (tmp_path / "parts.fasta").read_text() == printed
    assert "say --format fasta" in swsearch(*batch, "--aligned").error
    assert "has no parts of subjects to choose" in swsearch(*batch, "--format", "tsv", "--flank", "5").error
    assert swsearch(*batch, "--format", "fasta", "--flank", "-1").code == 2


# --- queries with and without hits ---


@pytest.fixture
def mixed(tmp_path):
    """Seven queries, and between them two that hit nothing, one of them in lower case and on two lines."""
    given = QUERIES.read_text().split(">")[1:]
    given.insert(3, "nothing here\nwcwchhwcwchhw\nCWCW\n")
    given.append("nothing again\nHWHWHWCCHW\n")
    (tmp_path / "mixed.fasta").write_text("".join(f">{record}" for record in given))
    return {record.split()[0]: record for record in given}


UNALIGNED = ">nothing here\nwcwchhwcwchhwCWCW\n>nothing again\nHWHWHWCCHW\n"
SPLIT = ["--evalue", "1e-5", "--unaligned", "un.fasta", "--aligned-queries", "al.fasta"]


def split(tmp_path):
    return (tmp_path / "un.fasta").read_text(), records((tmp_path / "al.fasta").read_text())


def test_queries_with_and_without_hits_are_written_as_given(swsearch, protein_db, mixed, tmp_path):
    """Masking changes what is searched, and reported, but not what is written here."""
    for masked in ([], ["--mask", "tantan", "--mask-mode", "hard"]):
        assert swsearch("query", "mixed.fasta", protein_db, *SPLIT, *masked, *QUIET).code == 0
        unaligned, aligned = split(tmp_path)
        assert unaligned == UNALIGNED
        assert [name for name, _, _ in aligned] == [name for name in mixed if name != "nothing"]
        for name, _, letters in aligned:
            assert letters == "".join(mixed[name].split("\n")[1:])


def test_a_resumed_batch_writes_the_queries_of_both_calls(swsearch, spawn_paused, few_proteins_db, mixed, tmp_path):
    """The process is killed after five of nine queries; it leaves no file, and the second call writes all."""
    batch = ["batch", "mixed.fasta", few_proteins_db, "--store", "b.sqlite", *SPLIT, "--quiet", "--threads", "1"]
    process = spawn_paused('Results, "add", 5', *batch)
    process.kill()
    process.communicate()
    assert not (tmp_path / "un.fasta").exists()
    outcome = swsearch(*batch, "--resume", "latest")
    assert "5 were there before" in outcome.out
    resumed = split(tmp_path)
    assert swsearch(*batch, "--store", "c.sqlite").code == 0
    assert split(tmp_path) == resumed
    assert len(resumed[1]) + resumed[0].count(">") == 9
    assert swsearch(*batch, "--resume", "1").code == 0  # nothing is left to search
    assert split(tmp_path) == resumed


def test_shares_write_their_own_queries_and_refused_records_are_in_neither(swsearch, few_proteins_db, mixed, tmp_path):
    (tmp_path / "mixed.fasta").write_text((tmp_path / "mixed.fasta").read_text() + ">bad\nMK1VL\n")
    written = []
    files = ["--evalue", "1e-5", "--unaligned", "un-{shard}.fasta", "--aligned-queries", "al-{shard}.fasta"]
    for shard in ("1/2", "2/2"):
        outcome = swsearch(
            "batch", "mixed.fasta", few_proteins_db, "--store", "s.sqlite", "--shard", shard, *files, *QUIET
        )
        assert outcome.code == (1 if "failed: " in outcome.err else 0)
        for kind in ("un", "al"):
            text = (tmp_path / f"{kind}-{shard.replace('/', '-of-')}.fasta").read_text()
            written += [name for name, _, _ in records(text)]
    assert sorted(written) == sorted([*(name for name in mixed if name != "nothing"), "nothing", "nothing"])


def test_fastq_queries_are_written_as_fasta(swsearch, lambda_db, tmp_path):
    """By hand: a read of another genome has no hit; the qualities are not kept."""
    (tmp_path / "reads.fastq").write_text(
        READS.read_text() + "@alien one\nACACACACACTTTTTTTTGGGG\n+\nIIIIIIIIIIIIIIIIIIIIII\n"
    )
    assert swsearch("query", "reads.fastq", lambda_db, *SPLIT, "--format", "blast6", *QUIET).code == 0
    assert split(tmp_path)[0] == ">alien one\nACACACACACTTTTTTTTGGGG\n"


def test_a_failed_search_leaves_no_file_of_queries(swsearch, few_proteins_db, mixed, tmp_path):
    (tmp_path / "un.fasta").write_text("before")
    (tmp_path / "mixed.fasta").write_text((tmp_path / "mixed.fasta").read_text() + ">bad\nMK1VL\n")
    assert swsearch("query", "mixed.fasta", few_proteins_db, *SPLIT, *QUIET).code == 1
    assert (tmp_path / "un.fasta").read_text() == "before"
    assert not (tmp_path / "al.fasta").exists()


def test_a_report_is_whole_before_the_queries_are_written(swsearch, few_proteins_db, tmp_path):
    """/dev/full takes no more of them than a buffer holds."""
    (tmp_path / "many.fasta").write_text(6 * QUERIES.read_text())
    query = ["query", "many.fasta", few_proteins_db, "--format", "blast7", "--store", "none", *QUIET]
    outcome = swsearch(*query, "--aligned-queries", "/dev/full")
    assert outcome.code == 1
    assert outcome.out.endswith("# BLAST processed 42 queries\n")


def test_outputs_of_queries_are_refused_like_others(swsearch, user_store, few_proteins_db, mixed):
    query = ["query", "mixed.fasta", few_proteins_db, *QUIET]
    both = swsearch(*query, "--unaligned", "x.fasta", "--aligned-queries", "x.fasta")
    assert "--aligned-queries x.fasta: --unaligned writes the same file" in both.error
    shared = swsearch(*query, "--unaligned", "-")
    assert "--unaligned -: the report is written to stdout, too" in shared.error
    alone = swsearch("batch", "mixed.fasta", few_proteins_db, "--evalue", "1e-5", "--unaligned", "-", *QUIET)
    assert alone.out.startswith(">")  # the summary is on stderr
    assert f"run 1 in {user_store}" not in alone.out
    profile = swsearch("query", DATA / "obg.sto", few_proteins_db, "--unaligned", "x.fasta", *QUIET)
    assert "--unaligned writes sequences, and these queries are profiles" in profile.error
    server = ["query", "mixed.fasta", "few.db", "--server", "http://127.0.0.1:9"]
    for option in ("--unaligned", "--aligned-queries", "--contexts"):
        assert f"{option} has no meaning with --server" in swsearch(*server, option, "x.fasta").error
