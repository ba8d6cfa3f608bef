"""SAM reports: their lines, and how samtools reads them. The expected lines are written by hand from the records."""

import random
import subprocess
from dataclasses import replace

import pytest

import swsearch
from swsearch.report.base import ReportContext
from swsearch.report.formats import new_report
from swsearch.sequences.fasta import read_sequences
from tests.report.conftest import BASES, DNA_QUERIES, DNA_RUN, LEGHEMOGLOBIN, MINUS, PROTEIN_QUERIES, SELF

needs_samtools = pytest.mark.peer("samtools")


def samtools(*arguments: object) -> str:
    done = subprocess.run(["samtools", *map(str, arguments)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def columns(report: str) -> list[list[str]]:
    return [line.split("\t") for line in report.splitlines() if not line.startswith("@")]


def test_lines_of_a_protein_run(written):
    """By hand from the records: 144 of 144 residues; 1-117 of 144, 3 mismatches and 19 gap residues; no hit."""
    first, second, third = columns(written("sam"))
    assert first == [
        "q1", "0", "s1", "1", "255", "144=", "*", "0", "0", LEGHEMOGLOBIN, "*",
        "NH:i:2", "HI:i:1", "AS:i:715", "NM:i:0", "ZB:f:280.03", "ZE:f:2.58e-103",
    ]  # fmt: skip
    assert second[:10] == [
        "q1", "256", "s3", "1", "255", "28=1X16I1X31=1X9=3D30=27H", "*", "0", "0", LEGHEMOGLOBIN[:117],
    ]  # fmt: skip
    assert second[13:15] == ["AS:i:444", "NM:i:22"]
    assert third == ["q2", "4", "*", "0", "0", "*", "*", "0", "0", "WCWCHHW", "*"]


def test_header_of_a_protein_run(written):
    """By hand: each subject reported once, in FASTA order, with its description."""
    assert [line for line in written("sam").splitlines() if line.startswith("@")] == [
        "@HD\tVN:1.6\tSO:unsorted\tGO:query",
        "@SQ\tSN:s1\tLN:144\tDS:leghemoglobin desc one",
        "@SQ\tSN:s3\tLN:104",
        "@PG\tID:swsearch\tPN:swsearch\tVN:0.1.0",
        "@CO\tDatabase: d.fa: 3 protein sequences, 402 residues",
        "@CO\tScoring: BLOSUM62, a gap of k residues costs 11 + 1k; E-values for 402 residues",
    ]


def test_the_minus_strand_is_turned_and_its_clips_change_places(written):
    """By hand: positions 6-9 of the query CTGATCGATT, whose reverse complement is AATCGATCAG: 1 before, 5 after."""
    alignment = replace(MINUS.alignment, query_start=5, query_end=9, subject_start=2, subject_end=6, cigar="4=",
                        columns=4, identities=4, gap_residues=0, gap_openings=0, subject_letters="ATCG")  # fmt: skip
    hits = (replace(MINUS, rank=1, alignment=alignment), replace(MINUS, rank=2, subject_index=0, alignment=alignment))
    query = replace(DNA_QUERIES[0], letters="CTGATCGATT", hits=hits)
    first, second = columns(written("sam", DNA_RUN, (query,)))
    assert (first[1], first[3], first[5], first[9]) == ("16", "3", "1S4=5S", "AATCGATCAG")
    assert (second[1], second[3], second[5], second[9]) == ("272", "3", "1H4=5H", "ATCG")


def test_names_keep_to_the_format_and_apart(written):
    """By the format's grammar of names; three subjects get equal names, and one name imitates a numbered one."""
    headers = ["od,d(1) x", "od_d_1_ y", "od_d_1_~2", "*star", ""]
    hits = tuple(
        replace(SELF, rank=index + 1, subject_index=index, subject_header=header)
        for index, header in enumerate(headers)
    )
    query = replace(PROTEIN_QUERIES[0], header="a@b\udcff", hits=hits)
    report = written("sam", queries=(query,))
    names = [line.split("\t")[1] for line in report.splitlines() if line.startswith("@SQ")]
    assert names == ["SN:od_d_1_", "SN:od_d_1_~2", "SN:od_d_1_~2~3", "SN:_star", "SN:unnamed"]
    assert [f"SN:{line[2]}" for line in columns(report)] == names
    assert {line[0] for line in columns(report)} == {"a_b_"}


def test_a_stop_is_any_residue_and_unknown_values_have_no_tag(written):
    """By hand: SEQ contains no asterisk."""
    hit = replace(SELF, bits=None, evalue=None)
    query = replace(PROTEIN_QUERIES[0], letters=LEGHEMOGLOBIN[:-1] + "*", hits=(hit,))
    (line,) = columns(written("sam", queries=(query,)))
    assert line[9] == LEGHEMOGLOBIN[:-1] + "X"
    assert [tag[:2] for tag in line[11:]] == ["NH", "HI", "AS", "NM"]


@needs_samtools
@pytest.mark.parametrize("dna", [False, True])
def test_samtools_reads_every_line(written, tmp_path, dna):
    """Source: samtools, which refuses a CIGAR that does not cover its SEQ."""
    path = tmp_path / "hits.sam"
    path.write_text(written("sam", DNA_RUN, DNA_QUERIES) if dna else written("sam"))
    samtools("quickcheck", path)
    assert samtools("view", "-c", path).strip() == ("2" if dna else "3")
    assert samtools("view", "-c", "-f", "16" if dna else "4", path).strip() == "1"
    assert samtools("view", "-c", "-e", "qlen == length(seq) && mapq == 255", path).strip() == "2"


def mutated(letters: str, random_: random.Random) -> str:
    """Return letters with substitutions, insertions and deletions at one of twelve positions."""
    return "".join(
        random_.choice(["", random_.choice("ACGT"), letter + random_.choice("ACGT")])
        if random_.random() < 1 / 12
        else letter
        for letter in letters
    )


@needs_samtools
def test_samtools_finds_the_mismatches_that_we_count(tmp_path):
    """Source: ``samtools calmd``, which places SEQ on the subject by POS, flag and CIGAR, and counts NM itself."""
    random_ = random.Random(7)
    genome = ["".join(random_.choice("ACGT") for _ in range(400)) for _ in range(3)]
    turn = str.maketrans("ACGT", "TGCA")
    queries = []
    for position in range(0, 300, 25):
        piece = mutated(genome[position % 3][position : position + 100], random_)
        queries.append("TTGCA" + (piece if position % 2 else piece.translate(turn)[::-1]) + "GG")
    (tmp_path / "genome.fa").write_text("".join(f">c{n}\n{letters}\n" for n, letters in enumerate(genome)))
    (tmp_path / "queries.fa").write_text("".join(f">q{n}\n{letters}\n" for n, letters in enumerate(queries)))
    swsearch.build_database([tmp_path / "genome.fa"], tmp_path / "db")
    with swsearch.open_searcher(tmp_path / "db", swsearch.SearchOptions(top=2), engine="reference") as searcher:
        records = list(read_sequences(tmp_path / "queries.fa", searcher.database.alphabet))
        with (tmp_path / "hits.sam").open("w") as stream:
            context = ReportContext(searcher.run_info("test"))
            new_report("sam").write_all(context, searcher.search(records), stream)
    ours = columns((tmp_path / "hits.sam").read_text())
    checked = columns(samtools("calmd", tmp_path / "hits.sam", tmp_path / "genome.fa"))
    flags = [int(line[1]) for line in checked]
    assert {0, 16, 256, 272} <= set(flags)
    assert sum("I" in line[5] for line in checked) > 3
    for line, original in zip(checked, ours, strict=True):
        assert line[:11] == original[:11]
        assert line[14] == original[14]
        assert line[14].startswith("NM:i:")


def test_no_query_leaves_a_header(written):
    lines = written("sam", queries=()).splitlines()
    assert [line[:3] for line in lines] == ["@HD", "@PG", "@CO", "@CO"]


def test_records_are_those_of_the_plus_strand(written):
    """By hand: 66 equal bases from position 5 of the subject."""
    plus, _ = columns(written("sam", DNA_RUN, DNA_QUERIES))
    assert (plus[1], plus[2], plus[3], plus[5], plus[9]) == ("0", "m1", "5", "66=", BASES)
