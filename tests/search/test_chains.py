"""Chains: alignments of a protein with the exons of its gene, which have one E-value, and are one feature in reports.

A chromosome has the gene of a protein in three exons on each strand, one exon so short that it is not significant by
itself, and a copy whose intron is longer than allowed.
"""

import subprocess
from itertools import pairwise

import numpy as np
import pytest

import swsearch
from swsearch.errors import InputError
from swsearch.hits.chains import MOST_GAP, MOST_OVERLAP, Piece, best_chains, chains_of
from swsearch.report.narrowing import Narrowing
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.store.store import Store
from tests.peers import module
from tests.support import indexed, write_fasta
from tests.translated_data import gene

CUTS = (0, 60, 75, 140)
"""The borders of the exons on the protein; the second one has 15 residues."""
INTRONS = (700, 1900)
OPTIONS = {"translate": "subject", "evalue": 1e-6, "composition": "none"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(21)
    folder = tmp_path_factory.mktemp("chains")

    def random(length):
        return "".join(rng.choice(list("ACGT"), size=length))

    protein = "".join(rng.choice(list(PROTEIN.letters[:20]), size=CUTS[-1]))
    exons = [gene(rng, protein[start:end]) for start, end in pairwise(CUTS)]

    def whole(introns):
        return exons[0] + random(introns[0]) + exons[1] + random(introns[1]) + exons[2]

    turned = DNA.decode(reverse_complement(DNA.encode(whole(INTRONS))))
    far = exons[0] + random(30_000) + exons[2]
    letters = random(40_000) + whole(INTRONS) + random(40_000) + turned + random(40_000) + far + random(500)
    indexed(folder / "genome.db", [("chr", letters)], DNA)
    write_fasta(folder / "protein.fasta", [("protein", protein)])
    return folder


def found(folder, engine="cpu", threads=2, **changes):
    options = swsearch.SearchOptions(**{**OPTIONS, **changes})
    results = swsearch.search_database(
        folder / "protein.fasta", folder / "genome.db", options, engine=engine, threads=threads
    )
    (result,) = results
    return results.run, result


def test_exons_of_a_gene_have_one_evalue_and_the_short_one_is_found(folder):
    """By hand: three exons on each strand; the short one has E > 1e-6 by itself; the far exons are not chain."""
    run, result = found(folder, max_intron=3000)
    chains = chains_of(result.hits, 3000)
    assert sorted(map(len, chains)) == [1, 1, 3, 3]
    _, single = found(folder)
    assert len(single.hits) == 6
    best = min(hit.evalue for hit in single.hits)
    for chain in chains:
        assert len({hit.evalue for hit in chain}) == 1
        assert len({hit.subject_direction for hit in chain}) == 1
        starts = [hit.alignment.query_start for hit in chain]
        assert starts == sorted(starts)
        if len(chain) == 3:
            assert chain[0].evalue < best * 1e-10
            assert all(abs(start - cut) <= 5 for start, cut in zip(starts, CUTS, strict=False))
    assert {len(chain) for chain in run.chains(result)} == {1, 3}
    longer, result = found(folder, max_intron=40_000)
    assert sorted(map(len, longer.chains(result))) in ([2, 3, 3], [3, 5])


def test_engines_and_threads_change_nothing(folder):
    """Source: the reference engine on one thread."""
    _, result = found(folder, max_intron=3000)
    assert found(folder, engine="reference", threads=1, max_intron=3000)[1].hits == result.hits


def test_a_stored_run_has_its_chains_and_is_narrowed(folder, tmp_path):
    """Source: searches with smaller E-values; a chain passes or fails as a whole."""
    run, result = found(folder, max_intron=3000, evalue=10.0)
    with Store(tmp_path / "s.sqlite", create=True) as store:
        number = store.runs.start(run)
        store.results.add(number, result)
        stored, info = list(store.results.queries(number)), store.runs.get(number).info
    assert info.chains(stored[0]) == run.chains(result)
    for evalue in (1e-3, 1e-12, 1e-30):
        (narrowed,) = Narrowing(evalue=evalue).results(info, stored)
        assert narrowed.hits == found(folder, max_intron=3000, evalue=evalue)[1].hits
    with pytest.raises(InputError, match="for others, search again"):
        Narrowing(max_hsps=1).of_run(info)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"translate": None}, "is for proteins against a genome; say translate='subject'"),
        ({"max_hsps": 2}, "joins all significant alignments; leave max_hsps out"),
        ({"iterations": 2, "inclusion_evalue": 1e-7}, "an iterated search has no chains"),
        ({"max_intron": 0}, "a number of bases, 1 to 10,000,000"),
    ],
)
def test_what_has_no_chains_is_refused(changes, words):
    """By hand: the messages."""
    with pytest.raises(InputError, match=words):
        swsearch.SearchOptions(**{**OPTIONS, "max_intron": 100, **changes})


def test_links_are_in_order_on_both_sequences():
    """By hand: the largest gap and overlap, and an intron of 1,000 bases."""
    first = Piece(100, 200, 3000, 3300, 30.0)

    def follows(query_start, subject_start):
        return first.links(Piece(query_start, 300, subject_start, subject_start + 900, 30.0), 1000)

    assert follows(200, 3300)
    assert follows(200 + MOST_GAP, 4300)
    assert not follows(201 + MOST_GAP, 4300)
    assert not follows(200, 4301)
    assert follows(200 - MOST_OVERLAP, 3300 - 3 * MOST_OVERLAP)
    assert not follows(199 - MOST_OVERLAP, 3300)
    assert not follows(200, 3299 - 3 * MOST_OVERLAP)
    assert not first.links(Piece(90, 95, 3400, 3415), 1000)


def test_the_best_chain_has_the_largest_value_less_the_costs_of_links():
    """By hand: three pieces in order, one that costs more than it brings, and one that is far away."""
    pieces = [
        Piece(0, 50, 1000, 1150, 40.0),
        Piece(50, 100, 2000, 2150, 40.0),
        Piece(100, 110, 2500, 2530, 10.0),
        Piece(100, 150, 3000, 3150, 40.0),
        Piece(0, 50, 90_000, 90_150, 40.0),
    ]
    assert best_chains(pieces, 2000, 15.0) == [([0, 1, 3], 120.0)]
    assert best_chains(pieces, 2000, 45.0) == []
    overlapping = [Piece(0, 50, 1000, 1150, 40.0), Piece(40, 90, 2000, 2150, 50.0)]
    assert best_chains(overlapping, 2000, 15.0) == [([0, 1], 90.0 - 10 * 0.8)]


@pytest.mark.peer("gffutils")
def test_gffutils_reads_a_match_with_its_parts(folder, tmp_path):
    """Expected: two matches of three parts, which are within them."""
    options = swsearch.SearchOptions(**OPTIONS, max_intron=3000)
    results = swsearch.search_database(folder / "protein.fasta", folder / "genome.db", options)
    swsearch.write_report(results, tmp_path / "hits.gff3", "gff3")
    database = module("gffutils").create_db(str(tmp_path / "hits.gff3"), ":memory:", merge_strategy="error")
    matches = list(database.features_of_type("protein_match"))
    parts = {one.id: list(database.children(one, featuretype="match_part", order_by="start")) for one in matches}
    assert sorted(map(len, parts.values())) == [0, 0, 3, 3]
    for one in matches:
        for part in parts[one.id]:
            assert (one.start <= part.start, part.end <= one.end) == (True, True)
            assert (part.strand, part.score) == (one.strand, one.score)
        if parts[one.id]:
            assert (parts[one.id][0].start, parts[one.id][-1].end) == (one.start, one.end)


@pytest.mark.peer("bedtools")
def test_bedtools_divides_a_chain_into_its_blocks(folder, tmp_path):
    """Expected: the aligned parts of the hits."""
    options = swsearch.SearchOptions(**OPTIONS, max_intron=3000)
    results = swsearch.search_database(folder / "protein.fasta", folder / "genome.db", options)
    swsearch.write_report(results, tmp_path / "hits.bed", "bed")
    out = subprocess.run(
        ["bedtools", "bed12tobed6", "-i", tmp_path / "hits.bed"], capture_output=True, text=True, check=True
    ).stdout
    blocks = sorted(tuple(map(int, line.split("\t")[1:3])) for line in out.splitlines())
    hits = found(folder, max_intron=3000)[1].hits
    assert blocks == sorted((hit.alignment.subject_start, hit.alignment.subject_end) for hit in hits)


@pytest.mark.peer("tblastn")
def test_tblastn_links_the_same_exons(folder, tmp_path):
    """Source: tblastn's sum statistics, which give linked alignments one E-value, without masking and composition."""
    columns = "sstart send score evalue"
    out = subprocess.run(
        ["tblastn", "-query", folder / "protein.fasta", "-subject", folder / "genome.fasta", "-evalue", "1e-6", "-seg",
         "no", "-comp_based_stats", "0", "-max_intron_length", "3000", "-outfmt", f"6 {columns}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    theirs: dict[str, list[tuple[str, ...]]] = {}
    for line in out.splitlines():
        *place, evalue = line.split("\t")
        theirs.setdefault(evalue, []).append(tuple(place))
    run, result = found(folder, max_intron=3000)
    ours = [{(str(hit.sstart), str(hit.send)) for hit in chain} for chain in run.chains(result) if len(chain) == 3]
    linked = [{place[:2] for place in places} for places in theirs.values()]
    places = {place for several in linked for place in several}
    assert len(ours) == 2
    for chain in ours:
        assert len(chain & places) >= 2, (chain, linked)
        assert any(len(chain & several) >= 2 for several in linked)
