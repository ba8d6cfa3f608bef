"""Exons of a chain in GFF3 and BED: introns begin and end at splice sites, on both strands and within codons.

Genes are made up: the coordinates of their exons are known from how they were put together.
"""

from itertools import pairwise

import numpy as np
import pytest
from Bio.Seq import Seq

import swsearch
from swsearch.errors import DatabaseError, InputError
from swsearch.report.base import ReportContext
from swsearch.report.exons import exons_of
from swsearch.sequences.alphabet import DNA, PROTEIN
from tests.support import write_fasta
from tests.translated_data import gene

CUTS = (0, 120, 241, 347, 450, 540, 600)
"""The borders of the exons on the coding bases: between codons, behind the first or second base of one."""
OPTIONS = swsearch.SearchOptions(translate="subject", evalue=1e-6, max_intron=3000)
MARGIN = 20_000


def bases(rng, length, letters="ACGT"):
    return "".join(rng.choice(list(letters), size=length))


@pytest.fixture(scope="module")
def made():
    """The protein, its gene in exons, and the introns between them.

    The first intron goes on with the codons of the protein for four residues, so that the alignments overlap; the
    fourth one is a gap of 22 codons; the last one begins with GC.
    """
    rng = np.random.default_rng(7)
    protein = bases(rng, 40, PROTEIN.letters[:20]) + "V" + bases(rng, 159, PROTEIN.letters[:20])
    coding = gene(rng, protein)
    exons = [coding[start:end] for start, end in pairwise(CUTS)]
    sites = [("GTC" + coding[123:132], 700), ("GT", 71), ("GT", 1000), ("GT", 66), ("GC", 400)]
    introns = [first + bases(rng, length - len(first) - 2) + "AG" for first, length in sites]
    return protein, exons, introns


def searched(folder, protein, exons, introns):
    """Search a chromosome with the gene on each strand; the run, its results and the exons of each strand."""
    rng = np.random.default_rng(8)
    folder.mkdir()
    parts = [part for pair in zip(exons, [*(one.lower() for one in introns), ""], strict=True) for part in pair]
    whole = "".join(parts)
    margins = [bases(rng, MARGIN, "AT") for _ in range(3)]
    turned = str(Seq(whole).reverse_complement())
    write_fasta(folder / "genome.fasta", [("chr", margins[0] + whole + margins[1] + turned + margins[2])])
    swsearch.build_database([folder / "genome.fasta"], folder / "genome.db", alphabet=DNA)
    write_fasta(folder / "protein.fasta", [("protein", protein)])
    results = swsearch.search_database(folder / "protein.fasta", folder / "genome.db", OPTIONS)
    places, at = [], 0
    for part in parts[::2]:
        places.append((at, at + len(part)))
        at += len(part) + len(introns[len(places) - 1] if len(places) <= len(introns) else "")
    second = 2 * MARGIN + 2 * len(whole)
    plus = [(MARGIN + start, MARGIN + end) for start, end in places]
    return results, {"+": plus, "-": [(second - end, second - start) for start, end in places]}


@pytest.fixture(scope="module")
def found(made, tmp_path_factory):
    """The results, whose first reading keeps them, and the exons of each strand."""
    results, expected = searched(tmp_path_factory.mktemp("exons") / "sites", *made)
    list(results)
    return results, expected


def rows(path, kind):
    """The columns of the lines of a kind, by strand, with the attributes as a dictionary."""
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    of_kind = [(line, dict(pair.split("=", 1) for pair in line[8].split(";"))) for line in lines if line[2] == kind]
    return {strand: [one for one in of_kind if one[0][6] == strand] for strand in "+-"}


def test_parts_of_a_match_are_the_exons_on_both_strands(found, tmp_path):
    """By construction: coordinates, 1-based; residues of whole codons, and bases of split ones."""
    results, expected = found
    swsearch.write_report(results, tmp_path / "hits.gff3", "gff3")
    for strand, parts in rows(tmp_path / "hits.gff3", "match_part").items():
        assert [(int(line[3]) - 1, int(line[4])) for line, _ in parts] == expected[strand]
        assert [(attributes["Target"], attributes["Gap"]) for _, attributes in parts] == [
            ("protein 1 40 +", "M40"),
            ("protein 41 80 +", "M40 F1"),
            ("protein 82 115 +", "F2 M34 F2"),
            ("protein 117 150 +", "F1 M34"),
            ("protein 151 180 +", "M30"),
            ("protein 181 200 +", "M20"),
        ]
        assert {attributes["identity"] for _, attributes in parts} == {"100.00"}
        assert len({line[5] for line, _ in parts}) == 1
    for strand, ((line, attributes),) in rows(tmp_path / "hits.gff3", "protein_match").items():
        assert (int(line[3]) - 1, int(line[4])) == (min(expected[strand])[0], max(expected[strand])[1])
        assert (attributes["Target"], "Gap" in attributes) == ("protein 1 200 +", False)


def test_alignments_overlap_and_keep_their_scores(found, tmp_path):
    """The search is that of before: alignments that overlap, one of them over a gap; the match has their sums."""
    results, _ = found
    (result,) = results
    for chain in results.run.chains(result):
        first, second = chain[:2]
        assert first.alignment.query_end >= second.alignment.query_start + 4
        assert any("22D" in hit.alignment.cigar for hit in chain)
        assert len(chain) < len(CUTS) - 1
    swsearch.write_report(results, tmp_path / "hits.gff3", "gff3")
    matches = rows(tmp_path / "hits.gff3", "protein_match")
    sums = {(sum(hit.score for hit in chain), chain[0].subject_direction) for chain in results.run.chains(result)}
    assert {(int(of[0][1]["score"]), strand) for strand, of in matches.items()} == sums


def test_scores_of_parts_are_those_of_their_columns(found):
    """Source: the matrix, residue by residue; without gaps."""
    results, _ = found
    (result,) = results
    matrix = swsearch.scoring.matrix.named_matrix("BLOSUM62")
    for chain in results.run.chains(result):
        for exon in exons_of(ReportContext(results.run, results.subjects()), result, chain):
            letters = result.letters[exon.hit.alignment.query_start : exon.hit.alignment.query_end]
            pairs = zip(letters, exon.hit.alignment.subject_letters, strict=True)
            assert exon.hit.score == sum(matrix.score(*pair) for pair in pairs)


def test_blocks_of_bed_are_the_exons(found, tmp_path):
    results, expected = found
    swsearch.write_report(results, tmp_path / "hits.bed", "bed")
    for line in (tmp_path / "hits.bed").read_text().splitlines():
        columns = line.split("\t")
        sizes, starts = ([int(one) for one in column.split(",")[:-1]] for column in columns[10:12])
        blocks = [
            (int(columns[1]) + start, int(columns[1]) + start + size) for start, size in zip(starts, sizes, strict=True)
        ]
        assert blocks == sorted(expected[columns[5]])


def test_without_splice_sites_nothing_is_changed(made, tmp_path):
    """By construction: introns without G have no site, so parts are the alignments."""
    protein, exons, introns = made
    rng = np.random.default_rng(9)
    results, _ = searched(tmp_path / "none", protein, exons, [bases(rng, len(one), "ACT") for one in introns])
    (result,) = results
    swsearch.write_report(results, tmp_path / "hits.gff3", "gff3")
    parts = [part for of_strand in rows(tmp_path / "hits.gff3", "match_part").values() for part in of_strand]
    shown = {(int(line[3]) - 1, int(line[4]), int(attributes["score"])) for line, attributes in parts}
    assert shown == {(hit.alignment.subject_start, hit.alignment.subject_end, hit.score) for hit in result.hits}
    assert not any("F" in attributes["Gap"] for _, attributes in parts)


@pytest.mark.parametrize(("n_changed", "is_moved"), [(1, True), (2, True), (8, False)])
def test_splice_sites_are_worth_eight_bits(made, tmp_path, n_changed, is_moved):
    """By hand: 8 bits are 20 of BLOSUM62, with λ = 0.267.

    The intron goes on with the codons of as many residues as the exon behind it has changed to glycine: to move the
    border to its beginning costs what these residues score more than glycine.
    """
    protein, exons, _ = made
    coding, begin = "".join(exons), CUTS[1] // 3
    intron = "GTC" + coding[CUTS[1] + 3 : CUTS[1] + 3 * n_changed] + "TAA" + "ACT" * 200 + "AG"
    right = "GGC" * n_changed + coding[CUTS[1] + 3 * n_changed :]
    results, expected = searched(tmp_path / "one", protein, [coding[: CUTS[1]], right], [intron])
    matrix = swsearch.scoring.matrix.named_matrix("BLOSUM62")
    changed = protein[begin : begin + n_changed]
    assert (sum(matrix.score(one, one) - matrix.score(one, "G") for one in changed) <= 20) is is_moved
    swsearch.write_report(results, tmp_path / "hits.gff3", "gff3")
    for strand, parts in rows(tmp_path / "hits.gff3", "match_part").items():
        shown = [(int(line[3]) - 1, int(line[4])) for line, _ in parts]
        assert len(shown) == 2
        assert (shown == expected[strand]) is is_moved


def test_a_stored_run_needs_its_database(made, tmp_path):
    """The bases of introns are in the database alone."""
    results, expected = searched(tmp_path / "stored", *made)
    (result,) = results
    context = ReportContext(results.run)
    with pytest.raises(InputError, match="are in the database of the search"):
        exons_of(context, result, result.hits[:1])
    target = tmp_path / "hits.gff3"
    swsearch.write_report((results.run, [result]), target, "gff3")
    parts = rows(target, "match_part")["-"]
    assert [(int(line[3]) - 1, int(line[4])) for line, _ in parts] == expected["-"]
    results.close()
    (tmp_path / "stored" / "genome.db").rename(tmp_path / "moved.db")
    with pytest.raises(DatabaseError, match=r"genome\.db"):
        swsearch.write_report((results.run, [result]), tmp_path / "again.gff3", "gff3")
