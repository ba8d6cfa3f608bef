"""The taxon of a query: the lowest common ancestor that DIAMOND and taxopy find for the same hits."""

import csv
import io
import random
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swsearch
from swsearch.errors import InputError
from swsearch.report.formats import Use, new_report
from swsearch.report.taxa import CommonAncestors, cut_lists
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from tests.report.conftest import PROTEIN_QUERIES, PROTEIN_RUN, SELF, context_of, make_run
from tests.taxonomy.dumps import EXCERPT, trees, with_changes, write_dump


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The excerpt of NCBI's taxonomy, with merged and deleted ids."""
    return read_dump(with_changes(tmp_path_factory.mktemp("taxdump")))


def query_of(*hits, tree):
    """Return the result of a query with hits of these bit scores, and the taxonomy with their ids."""
    records = []
    for rank, (bits, _) in enumerate(hits, 1):
        evalue = None if bits is None else 1e-9 * rank
        records.append(replace(SELF, rank=rank, subject_index=rank - 1, bits=bits, score=500 - rank, evalue=evalue))
    query = replace(PROTEIN_QUERIES[0], hits=tuple(records), n_passed=len(records))
    return query, TaxonomyOfSubjects(tree, [taxids for _, taxids in hits].__getitem__)


def assigned(query, taxonomy, percent=10.0):
    """Return the id and the E-value that a query is assigned."""
    taxon, evalue = CommonAncestors(percent).of(context_of(PROTEIN_RUN, taxonomy), query)
    return None if taxon is None else taxonomy.tree.taxid(taxon), evalue


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        ([(200.0, (9606,)), (190.0, (10090,))], (314146, 1e-9)),  # human and mouse: Euarchontoglires
        ([(200.0, (9606,)), (180.0, (10090,))], (314146, 1e-9)),  # exactly 10 % below
        ([(200.0, (9606,)), (179.9, (10090,))], (9606, 1e-9)),
        ([(200.0, ()), (190.0, (10090,))], (10090, 2e-9)),  # a hit without a taxon does not count …
        ([(200.0, ()), (179.9, (10090,))], (None, None)),  # … but has the best score
        ([(200.0, (9606, 10090))], (314146, 1e-9)),  # several organisms of one subject
        ([(200.0, (4000010,)), (190.0, (9606,))], (9606, 1e-9)),  # merged
        ([(200.0, (4000000,)), (190.0, (10090,))], (10090, 2e-9)),  # deleted
        ([(200.0, (77,)), (190.0, (10090,))], (10090, 2e-9)),  # unknown
        ([(200.0, (77, 9606))], (9606, 1e-9)),
        ([(200.0, (77,))], (None, None)),
        ([(200.0, (1,)), (190.0, (10090,))], (1, 1e-9)),  # the root
        ([(200.0, (9606,)), (190.0, (10497,))], (1, 1e-9)),  # of cells and of viruses
        ([(200.0, (9606,)), (190.0, (9605,))], (9605, 1e-9)),  # a taxon and its ancestor
        ([(None, (9606,)), (None, (10090,))], (314146, None)),  # raw scores of 499 and 498
        ([], (None, None)),
    ],
)
def test_hits_within_the_percentage_count(tree, hits, expected):
    """By hand."""
    assert assigned(*query_of(*hits, tree=tree)) == expected


@pytest.mark.parametrize(("percent", "taxid"), [(0, 9606), (9.9, 9606), (10, 207598), (50, 314146), (100, 131567)])
def test_the_percentage_decides(tree, percent, taxid):
    """By hand: human, chimpanzee, mouse and E. coli."""
    query = query_of((200.0, (9606,)), (180.0, (9598,)), (100.0, (10090,)), (1.0, (562,)), tree=tree)
    assert assigned(*query, percent)[0] == taxid


def test_below_different_roots_there_is_none(tmp_path):
    tree = read_dump(write_dump(tmp_path, {1: 1, 5: 5, 7: 5, 8: 1}))
    assert assigned(*query_of((200.0, (7,)), (200.0, (8,)), tree=tree)) == (None, None)


@settings(max_examples=30)
@given(trees(), st.data())
def test_the_taxon_is_taxopys(parents, data):
    """Source: taxopy's find_lca of the taxa of the hits within the percentage."""
    import taxopy

    bits = st.integers(1, 20).map(float)
    taxids = st.lists(st.sampled_from(sorted(parents)), max_size=3).map(tuple)
    hits = data.draw(st.lists(st.tuples(bits, taxids), min_size=1, max_size=8))
    percent = data.draw(st.sampled_from([0, 25, 50, 100]))
    with tempfile.TemporaryDirectory() as folder:
        write_dump(Path(folder), parents)
        tree = read_dump(Path(folder))
        files = {f"{name}_dmp": str(Path(folder, f"{name}.dmp")) for name in ("nodes", "names")}
        theirs = taxopy.TaxDb(**files, keep_files=True)
    best = max(bits for bits, _ in hits)
    counting = {taxid for bits, taxids in hits if 100 * (best - bits) <= percent * best for taxid in taxids}
    taxa = [taxopy.Taxon(taxid, theirs) for taxid in sorted(counting)]
    expected = None if not taxa else taxa[0].taxid if len(taxa) == 1 else taxopy.find_lca(taxa, theirs).taxid
    assert assigned(*query_of(*hits, tree=tree), percent)[0] == expected


# --- formats ---


def test_tables_have_the_taxon_in_each_line_of_a_query(written, tree):
    """By hand. Rank and lineage of the excerpt."""
    query, taxonomy = query_of((200.0, (9606,)), (190.0, (10090,)), tree=tree)
    taxonomy = TaxonomyOfSubjects(tree, {0: (9606,), 1: (10090,), 2: ()}.get)
    queries = [query, replace(query, hits=(replace(query.hits[0], subject_index=2),))]
    names = ["sseqid", "lca", "lcarank", "lcaname", "lcalineage"]
    rows = list(csv.DictReader(io.StringIO(written("csv", queries=queries, fields=names, taxonomy=taxonomy))))
    assert [row["lca"] for row in rows] == ["314146", "314146", "0"]
    assert [row["lcaname"] for row in rows] == ["Euarchontoglires", "Euarchontoglires", ""]
    assert rows[1]["lcarank"] == "superorder"
    assert rows[1]["lcalineage"].startswith("cellular organisms; Eukaryota; ")
    assert rows[1]["lcalineage"].endswith("; Eutheria; Boreoeutheria; Euarchontoglires")
    assert written("blast6", queries=queries, fields=names, taxonomy=taxonomy).splitlines()[2] == "s1\t0\tN/A\tN/A\tN/A"


def test_lca_has_one_line_for_each_query(written, tree):
    """By hand; the form is that of DIAMOND, with which a test below compares it."""
    query, taxonomy = query_of((200.0, (9606,)), (190.0, (10090,)), tree=tree)
    queries = [query, PROTEIN_QUERIES[1]]
    assert written("lca", queries=queries, taxonomy=taxonomy) == "q1\t314146\t1.00e-09\nq2\t0\t0\n"
    named = written("lca", queries=queries, fields=["qseqid", "qlen", "lca", "lcarank", "lcaname"], taxonomy=taxonomy)
    assert named == "q1\t144\t314146\tsuperorder\tEuarchontoglires\nq2\t7\t0\tN/A\tN/A\n"
    unscored, taxonomy = query_of((None, (9606,)), tree=tree)
    run = make_run("protein", lam=None, k=None)
    assert written("lca", run, [unscored], taxonomy=taxonomy) == "q1\t9606\tN/A\n"


def test_reports_say_whether_they_have_taxa_of_queries():
    assert new_report("lca").ancestors.percent == 10
    assert new_report("lca", lca_top=3.0).ancestors.percent == 3
    assert new_report("tsv", ["qseqid", "lca"], lca_top=0).ancestors.percent == 0
    assert new_report("tsv", ["qseqid"]).ancestors is None
    assert new_report("table").ancestors is None
    assert new_report("lca").taxonomy_use is Use.NEEDED
    assert new_report("csv", ["lca"]).taxonomy_use is Use.NEEDED


@pytest.mark.parametrize(
    ("name", "fields", "percent", "words"),
    [
        ("table", None, 5.0, "format table has no taxa of queries"),
        ("tsv", ["qseqid"], 5.0, "format tsv with these columns has no taxa of queries"),
        ("lca", None, 101.0, "lca_top=101: give a percentage"),
        ("blast6", ["lca"], -1.0, "lca_top=-1: give a percentage"),
        ("blast6", ["lca"], float("nan"), "lca_top=nan: give a percentage"),
        ("lca", ["qseqid", "sseqid"], None, "which has no sseqid; choose from qseqid"),
        ("lca", [], None, "fields names no field"),
    ],
)
def test_what_cannot_be_is_one_clear_line(name, fields, percent, words):
    with pytest.raises(InputError, match=words):
        new_report(name, fields, lca_top=percent)


def test_lists_are_cut_where_their_last_hit_counts(tree):
    """By hand: lists of two hits of which three passed."""
    run = replace(PROTEIN_RUN, parameters={**PROTEIN_RUN.parameters, "top": 2})
    near, _ = query_of((200.0, (9606,)), (190.0, (10090,)), tree=tree)
    far, _ = query_of((200.0, (9606,)), (100.0, (10090,)), tree=tree)
    queries = replace(near, n_passed=3), replace(far, n_passed=3), near, replace(near, hits=near.hits[:1])
    assert [CommonAncestors(10).is_cut(run, query) for query in queries] == [True, False, False, False]
    assert cut_lists(run, 10, 1).startswith("1 list was cut at --top 2 where hits still counted")
    assert cut_lists(run, 10, 0) is None


# --- DIAMOND itself ---

GROUPS = {
    "two": [("9606", 0), ("10090", 1)],
    "far": [("9606", 0), ("10090", 30)],
    "none": [("", 0), ("", 1)],
    "firstwithout": [("", 0), ("9606", 1)],
    "farwithout": [("", 0), ("9606", 36)],
    "root": [("1", 0), ("9606", 1)],
    "rootalone": [("1", 0)],
    "domains": [("562", 0), ("9606", 1)],
    "virus": [("10497", 0), ("9606", 1)],
    "ancestor": [("40674", 0), ("9606", 1)],
    "several": [("9606 10090", 0)],
    "severalfar": [("9606 9598", 0), ("3702", 36)],
    "nothing": [],
}
"""Queries by name: for each of their subjects, its taxonomy ids and the number of residues that are changed."""
OLD_RANKS = {"domain": "superkingdom", "acellular root": "superkingdom", "cellular root": "no rank", "realm": "no rank"}
"""Ranks that are newer than DIAMOND 2.1.3 and Kraken 2.1.2, and those that they read in their place."""


def write_groups(folder: Path) -> None:
    """Write queries, subjects, a map of their ids in NCBI's form, and the excerpt with the old ranks."""
    draw = random.Random(3)
    queries, subjects, lines = [], [], ["accession\taccession.version\ttaxid\tgi"]
    for name, members in GROUPS.items():
        letters = draw.choices("ARNDCQEGHILKMFPSTWYV", k=120)
        queries.append(f">{name} of the test\n{''.join(letters)}\n")
        for number, (taxids, n_changed) in enumerate(members):
            changed = letters.copy()
            for place in draw.sample(range(120), n_changed):
                changed[place] = draw.choice("ARNDCQEGHILKMFPSTWYV")
            accessions = [f"{name}{number}{letter}" for letter, _ in zip("abc", taxids.split() or [""], strict=False)]
            joined = "\x01".join(accessions)
            subjects.append(f">{joined}\n{''.join(changed)}\n")
            lines += [f"{one}\t{one}.1\t{taxid}\t0" for one, taxid in zip(accessions, taxids.split(), strict=False)]
    (folder / "queries.fa").write_text("".join(queries))
    (folder / "subjects.fa").write_text("".join(subjects))
    (folder / "map").write_text("\n".join(lines) + "\n")
    write_nodes_of_old(folder)


def write_nodes_of_old(folder: Path) -> None:
    """Write the excerpt with all columns of a taxdump, and with the ranks of those before 2025."""
    nodes = [line.split("\t|")[:3] for line in (EXCERPT / "nodes.dmp").read_text().splitlines()]
    rest = "\t|\t\t|\t0\t|\t1\t|\t1\t|\t1\t|\t0\t|\t1\t|\t1\t|\t0\t|\t\t|\n"
    lines = [f"{taxid}\t|{parent}\t|\t{OLD_RANKS.get(rank[1:], rank[1:])}{rest}" for taxid, parent, rank in nodes]
    (folder / "nodes.dmp").write_text("".join(lines))
    shutil.copy(EXCERPT / "names.dmp", folder)


@pytest.mark.peer("diamond")
def test_lines_are_those_of_diamond(tmp_path, monkeypatch):
    """Source: diamond blastp --outfmt 102 with the same sequences, ids and taxonomy, without masking and correction."""
    write_groups(tmp_path)
    monkeypatch.chdir(tmp_path)

    def diamond(*arguments):
        outcome = subprocess.run(["diamond", *arguments, "--quiet"], check=True, capture_output=True, text=True)
        return outcome.stdout

    taxonomy = ["--taxonmap", "map", "--taxonnodes", "nodes.dmp", "--taxonnames", "names.dmp"]
    diamond("makedb", "--in", "subjects.fa", "--db", "theirs", *taxonomy)
    swsearch.build_database("subjects.fa", "ours", taxonomy=tmp_path, taxid_map="map")
    options = swsearch.SearchOptions(evalue=0.001, composition="none")
    plain = ["--masking", "0", "--comp-based-stats", "0", "--outfmt", "102"]
    found = {}
    for percent in (None, 0.0, 5.0, 10.0, 50.0):
        top = [] if percent is None else ["--top", f"{percent:g}"]
        found[percent] = diamond("blastp", "--query", "queries.fa", "--db", "theirs", *plain, *top)
        results = swsearch.search_database("queries.fa", "ours", options)
        swsearch.write_report(results, "lines", "lca", lca_top=percent)
        assert (tmp_path / "lines").read_text() == found[percent]
    assert found[None] == found[10.0] != found[50.0] != found[0.0]
    assert "severalfar\t207598\t" in found[10.0]
    assert "nothing\t0\t0\n" in found[10.0]
