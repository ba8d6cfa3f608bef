"""`max_hsps` in a search: repeats, both strands, frames, and the cut.

The expected values come from longer lists and rescored CIGARs, or are written by hand.
"""

from dataclasses import replace

import numpy as np
import pytest

import swsearch
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from tests.hits.rescore import rescore
from tests.support import indexed
from tests.translated_data import gene, mutated

DOMAIN = "MKVLAAGIVGLCAKAYWDERTNQHFPYICSEGWLKMND"
DNA_DOMAIN = "ATGGCTAAGCTTGATCCGTATTGCGAACAGTGGACCTTAGGCAATCGT"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Proteins with three, one and no copies of a domain; DNA with a copy on each strand; a genome with three genes."""
    rng = np.random.default_rng(4)
    folder = tmp_path_factory.mktemp("several")

    def random(letters: str, length: int) -> str:
        return "".join(rng.choice(list(letters), size=length))

    proteins = [
        ("one", random(PROTEIN.letters[:20], 50) + mutated(rng, DOMAIN, 0.1)),
        ("three", "GSGSGSG".join(mutated(rng, DOMAIN, share) for share in (0.3, 0.05, 0.2))),
        ("none", random(PROTEIN.letters[:20], 100)),
    ]
    turned = DNA.decode(reverse_complement(DNA.encode(DNA_DOMAIN[:40])))
    strands = [("both", random("ACGT", 30) + turned + random("ACGT", 30) + DNA_DOMAIN + random("ACGT", 20))]
    plus, minus = gene(rng, mutated(rng, DOMAIN, 0.1)), gene(rng, mutated(rng, DOMAIN, 0.25))
    genome = random("ACGT", 100) + plus + random("ACGT", 101) + gene(rng, DOMAIN) + random("ACGT", 100)
    genome += DNA.decode(reverse_complement(DNA.encode(minus))) + random("ACGT", 50)
    for name, records, alphabet in (
        ("proteins", proteins, PROTEIN), ("strands", strands, DNA), ("genome", [("genome", genome)], DNA),
    ):  # fmt: skip
        indexed(folder / f"{name}.db", records, alphabet)
    return folder


def search(database, query, engine="cpu", **changes):
    options = swsearch.SearchOptions(**changes)
    with swsearch.open_searcher(database, options, engine=engine, threads=2) as searcher:
        (result,) = searcher.search([query])
    return result


@pytest.fixture
def protein():
    return swsearch.sequence(DOMAIN, "protein", header="domain")


def test_a_subjects_alignments_follow_each_other_and_the_best_is_the_default(folder, protein):
    """Expected: three copies of the domain in one subject, best first; with one alignment, the same subjects.

    The subject with one copy is first, because its copy is better than the best of the three.
    """
    one = search(folder / "proteins.db", protein, evalue=1e-3)
    several = search(folder / "proteins.db", protein, evalue=1e-3, max_hsps=3)
    assert [hit for hit in several.hits if hit.hsp == 1] == list(one.hits)
    assert (several.n_passed, several.n_subjects) == (one.n_passed, one.n_subjects) == (2, 2)
    assert [(hit.rank, hit.hsp) for hit in several.hits if hit.subject_header == "three"] == [(2, 1), (2, 2), (2, 3)]
    scores = [hit.score for hit in several.hits if hit.subject_header == "three"]
    assert scores == sorted(scores, reverse=True)
    starts = [hit.alignment.subject_start for hit in several.alignments(2)]
    assert len({start // 35 for start in starts}) == 3


def test_each_alignment_has_the_evalue_of_its_score_and_passes_the_cut(folder, protein):
    """Source: the E-value of a subject of this length with this score as its best; the cut omits the rest."""
    with swsearch.open_searcher(folder / "proteins.db", engine="cpu") as searcher:
        statistics, space = searcher.significance.statistics, searcher.significance.search_space
    weak = search(folder / "proteins.db", protein, max_hsps=50, evalue=1000.0, composition="none")
    for hit in weak.hits:
        assert hit.evalue == statistics.evalue(hit.score, len(DOMAIN), [hit.subject_length], space)[0]
    strong = search(folder / "proteins.db", protein, max_hsps=50, evalue=1e-3, composition="none")
    assert strong.hits == tuple(hit for hit in weak.hits if hit.evalue is not None and hit.evalue <= 1e-3)
    assert 3 <= len(strong.hits) < len(weak.hits)


def test_both_strands_of_dna_are_in_one_list(folder):
    """Expected: the complete domain on the plus strand first, then its first 40 bases on the minus strand."""
    query = swsearch.sequence(DNA_DOMAIN, "dna", header="domain")
    hits = search(folder / "strands.db", query, max_hsps=2).hits
    assert [(hit.strand, hit.alignment.query_start, hit.alignment.query_end) for hit in hits] == [
        ("plus", 0, 48), ("minus", 0, 40),
    ]  # fmt: skip
    assert [hit.score for hit in hits] == [96, 80]


def test_genes_in_several_frames_are_in_one_list(folder, protein):
    """Expected: the complete gene, the copy with a tenth replaced, then the gene on the other strand."""
    hits = search(folder / "genome.db", protein, max_hsps=3, translate="subject").hits
    assert [hit.hsp for hit in hits] == [1, 2, 3]
    assert hits[0].alignment.identities == len(DOMAIN)
    assert [hit.subject_frame > 0 for hit in hits] == [True, True, False]
    assert all(hit.evalue < 1e-3 for hit in hits)


def test_all_alignments_rescore(folder, protein):
    """Source: the column-by-column score of each CIGAR."""
    with swsearch.open_searcher(folder / "proteins.db", swsearch.SearchOptions(max_hsps=20), engine="cpu") as s:
        (result,) = s.search([protein])
        for hit in result.hits:
            subject = s.database.codes(hit.subject_index)
            assert rescore(protein.codes, subject, hit.alignment, s.scheme) == hit.score


def test_schemes_without_statistics_list_what_scores(folder, protein):
    """Expected: such cheap gaps (the linear phase) give no E-values for a cut; the lists have the requested length."""
    hits = search(folder / "proteins.db", protein, max_hsps=4, gap_open=1, gap_extend=1).hits
    assert all(hit.evalue is None for hit in hits)
    assert [hit.hsp for hit in hits if hit.rank == 1] == [1, 2, 3, 4]


def test_coverage_is_that_of_all_alignments_of_the_subject(folder):
    """Expected by hand: two alignments of 10 and 20 of 40 residues that share 5 cover 25 together: 63 %."""
    from swsearch.report.fields import FIELDS

    query = swsearch.sequence(DOMAIN, "protein")
    result = search(folder / "proteins.db", query)
    first = result.hits[0]
    ranges = [(0, 10), (5, 25)]
    hits = tuple(
        replace(first, hsp=number, alignment=replace(first.alignment, query_start=start, query_end=end))
        for number, (start, end) in enumerate(ranges, 1)
    )
    shown = replace(result, letters="A" * 40, hits=(*hits, replace(first, rank=2)))
    assert [FIELDS["qcovs"].value(None, shown, hit) for hit in hits] == [63, 63]  # type: ignore[arg-type]
    assert [FIELDS["qcovhsp"].value(None, shown, hit) for hit in hits] == [25, 50]  # type: ignore[arg-type]


@pytest.mark.parametrize("composition", ["none", "adjust"])
@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("database", "letters", "changes"),
    [
        ("proteins", DOMAIN, {}),
        ("proteins", DOMAIN, {"max_hsps": 2}),
        ("proteins", DOMAIN, {"min_identity": 75.0}),
        ("strands", DNA_DOMAIN, {}),
        ("genome", DOMAIN, {"translate": "subject"}),
        ("genome", DOMAIN, {"translate": "subject", "max_hsps": 1}),
    ],
)
def test_counted_alignments_are_those_of_a_search_that_lists_them_all(
    folder, engine, composition, database, letters, changes
):
    """Expected: the lists of a search with ``max_hsps=50``; the reported hits are those of a search without counts."""
    query = swsearch.sequence(letters, "dna" if database == "strands" else "protein", header="domain")
    given = {"composition": composition, "evalue": 0.1, **changes}
    if database == "strands":
        del given["composition"]
    subjects = folder / f"{database}.db"
    counted = search(subjects, query, engine, count_hsps=True, **given)
    every = search(subjects, query, engine, **{**given, "max_hsps": 50})
    usual = search(subjects, query, engine, **given)
    assert [replace(hit, n_hsps=None) for hit in counted.hits] == list(usual.hits)
    expected = {hit.subject_index: 0 for hit in every.hits}
    for hit in every.hits:
        expected[hit.subject_index] += 1
    assert {hit.subject_index: hit.n_hsps for hit in counted.hits} == expected
    assert max(expected.values()) > 1
