"""GFF3, BED and PAF: their lines, and how bedtools, gffutils and pafpy read them.

The expected lines are written by hand from the records and the specifications of the formats; what the programs read is
compared with the sequences of a genome in which genes were planted.
"""

import random
import re
import subprocess
from dataclasses import replace
from itertools import product

import pytest
from Bio.Seq import Seq

import swsearch
from tests.peers import module
from tests.report.conftest import DNA_QUERIES, DNA_RUN, PROTEIN_QUERIES, make_run
from tests.report.test_translated import BACKWARD, CASES


def lines_of(report: str) -> list[list[str]]:
    return [line.split("\t") for line in report.splitlines() if not line.startswith("#")]


def translated(written, name, case):
    translate, hit, letters = CASES[case]
    run = make_run("protein", parameters={"translate": translate, "genetic_code": 11, "evalue": 10.0})
    run = run if translate == "query" else replace(run, database=replace(run.database, alphabet="dna"))
    query = replace(PROTEIN_QUERIES[0], header="q1 the query", letters=letters, hits=(hit,))
    (line,) = lines_of(written(name, run, (query,)))
    return line


# --- the lines ---


def test_gff3_of_proteins(written):
    """By hand: the records; ``Gap`` from the CIGAR 28=1X16I1X31=1X9=3D30=, where M stands for = and X."""
    first, *rest = written("gff3").splitlines()
    assert first == "##gff-version 3"
    assert [line for line in rest if line.startswith("#")] == [
        "##sequence-region s1 1 144",
        "##sequence-region s3 1 104",
    ]
    _, gapped = lines_of("\n".join(rest))
    assert gapped[:8] == ["s3", "swsearch", "protein_match", "1", "104", "1.42e-62", "+", "."]
    assert gapped[8] == (
        "ID=match1.2.1;Name=q1;Target=q1 1 117 +;Gap=M29 I16 M42 D3 M30;score=444;identity=81.67;bits=175.64"
    )


def test_gff3_has_the_reversed_subject_of_a_minus_strand(written):
    """By hand: subject positions 4 to 65; the CIGAR 30=4I32= of the forward subject, in the direction of the query."""
    _, minus = lines_of(written("gff3", DNA_RUN, DNA_QUERIES))
    assert minus[2:5] + minus[6:8] == ["nucleotide_match", "4", "65", "-", "."]
    assert "Target=n1 1 66 +;Gap=M32 I4 M30;" in minus[8]


@pytest.mark.parametrize(
    ("case", "expected", "target"),
    [
        ("blastx", ["translated_nucleotide_match", "1", "6", "0.02", "+"], "q1 4 21 -"),
        ("tblastn", ["protein_match", "4", "21", "0.02", "-"], "q1 1 6 +"),
        ("tblastx", ["translated_nucleotide_match", "4", "21", "0.02", "-"], "q1 6 23 +"),
    ],
)
def test_gff3_has_bases_on_translated_sides(written, case, expected, target):
    """By hand: the positions of the genes of ``test_translated.py``."""
    line = translated(written, "gff3", case)
    assert line[2:7] == expected
    assert f"Target={target};Gap=M6;" in line[8]


def test_gff3_escapes_what_separates_its_parts(written):
    """By the specification: a blank, %, ;, = and a comma in values; only listed characters in the first column."""
    hit = replace(PROTEIN_QUERIES[0].hits[0], subject_header="a>b|c%é", evalue=None, bits=None)
    query = replace(PROTEIN_QUERIES[0], header="q;1=2,%3", hits=(hit,))
    (line,) = lines_of(written("gff3", queries=(query,)))
    assert (line[0], line[5]) == ("a%3Eb|c%25%C3%A9", ".")
    assert line[8].startswith("ID=match1.1.1;Name=q%3B1%3D2%2C%253;Target=q%3B1%3D2%2C%253 1 144 +;")
    assert "bits" not in line[8]


def test_bed_lines(written):
    """By hand: half-open intervals, the rounded bit score, one block."""
    plus, minus = lines_of(written("bed", DNA_RUN, DNA_QUERIES))
    assert plus == ["m1", "4", "70", "n1", "120", "+", "4", "70", "0", "1", "66,", "0,"]
    assert minus == ["m2", "3", "65", "n1", "101", "-", "3", "65", "0", "1", "62,", "0,"]
    assert [translated(written, "bed", case)[1:6] for case in CASES] == [
        ["0", "6", "q1", "16", "-"], ["3", "21", "q1", "16", "-"], ["3", "21", "q1", "16", "-"],
    ]  # fmt: skip
    strong = replace(PROTEIN_QUERIES[0].hits[0], bits=2000.5)
    unknown = replace(strong, bits=None, evalue=None)
    for hit, score in ((strong, "1000"), (unknown, "0")):
        (line,) = lines_of(written("bed", queries=(replace(PROTEIN_QUERIES[0], hits=(hit,)),)))
        assert line[4] == score


def test_paf_lines(written):
    """By hand: half-open coordinates; 62 of 66 columns are identities; in translated searches, three bases each."""
    _, minus = lines_of(written("paf", DNA_RUN, DNA_QUERIES))
    assert minus == [
        "n1", "66", "0", "66", "-", "m2", "69", "3", "65", "62", "66", "255",
        "AS:i:111", "NM:i:4", "ZB:f:101.39", "ZE:f:4.19e-27", "cg:Z:30=4I32=",
    ]  # fmt: skip
    blastx, tblastn, tblastx = (translated(written, "paf", case) for case in CASES)
    assert blastx[1:12] == [str(len(BACKWARD)), "3", "21", "-", "s1", "6", "0", "6", "15", "18", "255"]
    assert tblastn[1:12] == ["6", "0", "6", "-", "s1", "26", "3", "21", "15", "18", "255"]
    assert tblastx[1:12] == ["26", "5", "23", "-", "s1", "26", "3", "21", "15", "18", "255"]
    unknown = replace(PROTEIN_QUERIES[0].hits[0], bits=None, evalue=None)
    (line,) = lines_of(written("paf", queries=(replace(PROTEIN_QUERIES[0], hits=(unknown,)),)))
    assert line[12:] == ["AS:i:715", "NM:i:0", "cg:Z:144="]


# --- the programs ---


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Reports in the three formats of a DNA and a translated search: genes on both strands of a genome."""
    folder = tmp_path_factory.mktemp("genome")
    rng = random.Random(11)
    codons = [codon for codon in map("".join, product("ACGT", repeat=3)) if codon not in ("TAA", "TAG", "TGA")]
    genes = ["".join(rng.choices(codons, k=100)) for _ in range(4)]
    spacers = ["".join(rng.choices("ACGT", k=500)) for _ in range(5)]
    turned = [gene if place % 2 else str(Seq(gene).reverse_complement()) for place, gene in enumerate(genes)]
    genome = spacers[0] + "".join(gene + spacer for gene, spacer in zip(turned, spacers[1:], strict=True))
    (folder / "genome.fa").write_text(f">chr1 planted\n{genome}\n")
    (folder / "genes.fa").write_text("".join(f">gene{place}\n{gene}\n" for place, gene in enumerate(genes)))
    proteins = [str(Seq(gene).translate()) for gene in genes]
    (folder / "proteins.fa").write_text("".join(f">protein{place}\n{one}\n" for place, one in enumerate(proteins)))
    for queries, options in (("genes", {}), ("proteins", {"translate": "subject"})):
        asked = swsearch.SearchOptions(max_hsps=4, evalue=1e-10, **options)
        results = swsearch.search_database(folder / f"{queries}.fa", folder / "genome.fa", asked)
        for form in ("gff3", "bed", "paf"):
            swsearch.write_report(results, folder / f"{queries}.{form}", form)
    return folder, dict(zip((f"gene{place}" for place in range(4)), genes, strict=True))


def bedtools(*arguments: object) -> str:
    done = subprocess.run(["bedtools", *map(str, arguments)], capture_output=True, text=True, check=True)
    assert "rror" not in done.stderr
    return done.stdout


@pytest.mark.peer("bedtools")
@pytest.mark.parametrize("form", ["bed", "gff3"])
def test_bedtools_extracts_the_genes(searched, form):
    """Expected: the genes themselves, in the direction of the query."""
    folder, genes = searched
    for queries in ("genes", "proteins"):
        path = folder / f"{queries}.{form}"
        out = bedtools("getfasta", "-s", "-tab", "-fi", folder / "genome.fa", "-bed", path)
        found = [line.split("\t")[1].upper() for line in out.splitlines()]
        assert sorted(found) == sorted(genes.values())


@pytest.mark.peer("bedtools")
def test_bedtools_intersects_features_with_intervals(searched):
    """Expected: each feature of the GFF3 lies on the interval of the same gene, on the same strand."""
    folder, genes = searched
    out = bedtools(
        "intersect", "-s", "-f", "1", "-r", "-wa", "-wb", "-a", folder / "genes.gff3", "-b", folder / "proteins.bed"
    )
    pairs = [(re.search("Name=gene([0-9])", line)[1], line.split("\t")[12]) for line in out.splitlines()]
    assert sorted(pairs) == [(str(place), f"protein{place}") for place in range(len(genes))]
    blocks = bedtools("bed12tobed6", "-i", folder / "genes.bed")
    assert [line.split("\t")[:4] for line in blocks.splitlines()] == [
        line[:4] for line in lines_of((folder / "genes.bed").read_text())
    ]


@pytest.mark.peer("gffutils")
def test_gffutils_reads_features_and_attributes(searched):
    """Expected: the BED of the same search, which is 0-based, and the genes' names."""
    folder, _ = searched
    gffutils = module("gffutils")
    for queries, kind in (("genes", "nucleotide_match"), ("proteins", "protein_match")):
        database = gffutils.create_db(str(folder / f"{queries}.gff3"), ":memory:", merge_strategy="error")
        found = [
            [one.seqid, one.start - 1, one.end, one.attributes["Name"][0], one.strand]
            for one in database.features_of_type(kind)
        ]
        expected = [
            [line[0], int(line[1]), int(line[2]), line[3], line[5]]
            for line in lines_of((folder / f"{queries}.bed").read_text())
        ]
        assert sorted(found) == sorted(expected)
        assert len(expected) == 4
        assert database.directives == ["gff-version 3", "sequence-region chr1 1 3700"]


@pytest.mark.peer("pafpy")
def test_pafpy_reads_records_and_tags(searched):
    """Expected: whole genes without a difference, by their lengths of 300 bases."""
    folder, _ = searched
    pafpy = module("pafpy")
    for queries, length, cigar in (("genes", 300, "300="), ("proteins", 100, "100=")):
        with pafpy.PafFile(str(folder / f"{queries}.paf")) as records:
            found = list(records)
        assert [(one.qlen, one.qstart, one.qend, one.tname, one.tlen) for one in found] == [
            (length, 0, length, "chr1", 3700)
        ] * 4
        assert all(one.tend - one.tstart == one.mlen == one.blen == 300 for one in found)
        assert {str(one.strand) for one in found} == {"+", "-"}
        assert {one.get_tag("cg").value for one in found} == {cigar}
        assert {one.get_tag("NM").value for one in found} == {0}
