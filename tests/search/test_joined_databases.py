"""Searches of several databases as one: the bytes of the database that was indexed from their concatenated FASTA files.

Expected values: the reports of that database with the same engine and options. The record of the run differs in the
database alone; the report has the other record, since formats print its digest.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.protocol import ScoreEngine
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import InputError
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from tests.engine.cuda.emulation.emulated_device import opener
from tests.joined_databases import joined_databases, paths, together
from tests.search.test_slices import BASES, PROTEIN, TIES, assert_equal_reports, essence
from tests.support import DATA, indexed
from tests.taxonomy.dumps import EXCERPT, write_dump
from tests.tiers import mostly_thorough

SAME = ("name", "n_subjects", "n_residues")
HSPS = {"max_hsps": 2, "top": 3}
CASES = [
    *[("queries.fasta", "proteins", options) for options in PROTEIN],
    ("obg.sto", "proteins", {"evalue": 1000}),
    ("obg.sto", "proteins", {"iterations": 2}),
    *[("reads.fasta", "bases", options) for options in BASES],
    ("reads.fasta", "proteins", {"translate": "query", "evalue": 1000}),
    ("queries.fasta", "bases", {"translate": "subject", "evalue": 1000, "min_identity": 20}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return joined_databases(tmp_path_factory.mktemp("joined"))


@pytest.mark.parametrize(("queries", "alphabet", "chosen"), mostly_thorough(CASES, *CASES[::4]))
def test_databases_together_are_their_concatenation(folder, tmp_path, queries, alphabet, chosen):
    """The bytes of four formats, and the numbers that the formats leave out."""
    options = SearchOptions(**chosen)
    with ExitStack() as opened:
        engine = opened.enter_context(CpuEngine(1))
        plain, joined = (
            Searcher(opened.enter_context(swsearch.open_database(databases)), engine, options)
            for databases in ([together(folder, alphabet)], paths(folder, alphabet))
        )
        run, of_joined = plain.run_info(""), joined.run_info("")
        assert replace(of_joined, database=run.database) == run
        assert [getattr(of_joined.database, name) for name in SAME] == [getattr(run.database, name) for name in SAME]
        file = folder / queries if (folder / queries).exists() else DATA / queries
        assert_equal_reports(file, plain, joined, tmp_path / "report")


@pytest.mark.parametrize("chosen", mostly_thorough([{}, TIES, HSPS, {"sensitive": True}], {}, TIES, HSPS))
def test_every_engine_gives_the_hits_of_the_concatenation(tmp_path, chosen):
    """Equal sequences in all databases, so equal hits at all ranks; an emulated GPU leaves subjects out by bounds.

    Expected value: the reference engine with the concatenation.
    """
    rng = np.random.default_rng(3)
    letters = ["".join("ARNDCQEGHILKMFPSTWYV"[code] for code in rng.integers(0, 20, 40)) for _ in range(30)]
    parts = [
        [(f"{name}{number}", text) for number, text in enumerate(part)]
        for name, part in (("a", letters), ("b", letters[:10]), ("c", [*letters[5:20], letters[0] * 3]))
    ]
    made = [
        indexed(tmp_path / f"{name}.db", records, slices=3 if name == "b" else 1)
        for name, records in zip("abct", [*parts, [one for part in parts for one in part]], strict=True)
    ]
    options = SearchOptions(**chosen)

    def hits(databases: Sequence[Path], engine: ScoreEngine) -> list[tuple[Any, ...]]:
        with swsearch.open_database(databases) as database:
            searcher = Searcher(database, engine, options)
            return essence(searcher.search([database.record(number) for number in (1, 7, 12)]))

    found = []
    for engine in (ReferenceEngine(), CpuEngine(2), CudaDevices([0], opener())):
        with engine:
            found += [hits(made[3:], engine), hits(made[:3], engine)]
    assert {one.subject_index for one in found[0][1][2]} > {7, 37}
    assert all(one == found[0] for one in found)


def test_python_functions_take_several_databases(folder, tmp_path):
    """Paths, open databases and a mixture; a stored run opens its databases for whole subjects, or those named."""
    databases = paths(folder, "proteins")
    options = SearchOptions(top=3)
    queries = swsearch.sequence("MKVLAAGIVGLLLAQWERTYHHEDKN", "protein", header="q")
    expected = essence(swsearch.search_database([queries], together(folder, "proteins"), options))
    assert expected[0][2]
    with swsearch.open_database(databases[0]) as first, swsearch.open_database(databases) as joined:
        for given in (databases, [str(path) for path in databases], [first, *databases[1:]], joined):
            assert essence(swsearch.search_database([queries], given, options)) == expected
        assert first.header(0) == joined.header(0)  # what was open stays open
    with swsearch.Store(tmp_path / "hits.sqlite", create=True) as store:
        for _ in swsearch.search_database([queries], databases, options, store=store):
            pass
        run = store.runs.get("latest")
        assert run.info.database.paths == tuple(str(path.resolve()) for path in databases)
        reports = []
        for places in (None, databases):
            swsearch.write_report((run.info, store.results.queries(run.id)), tmp_path / "out", "fasta", database=places)
            reports.append((tmp_path / "out").read_text())
        assert reports[0] == reports[1]
        assert reports[0].count(">") == 3


# --- organisms ---


def with_organisms(folder: Path, name: str, taxids: Sequence[int], taxonomy: Path | None) -> Path:
    """A database of one subject for each taxonomy id, all with the same letters."""
    records = [(f"{name}{n} OX={taxid}", "MKVLAAGIVGLLLAQWERTYHHEDKN") for n, taxid in enumerate(taxids)]
    return indexed(folder / f"{name}.db", records, taxonomy=taxonomy)


def organisms(databases: Path | Sequence[Path], **chosen: Any) -> list[tuple[str, ...]]:
    """Identifier, id, name and lineage of each hit."""
    query = swsearch.sequence("MKVLAAGIVGLLLAQWERTYHHEDKN", "protein", header="q")
    found = swsearch.search_database([query], databases, SearchOptions(**chosen))
    table = found.to_arrow(["sseqid", "staxids", "sscinames", "slineage"]).to_pylist()
    return [tuple(row.values()) for row in table]


def test_stored_organisms_of_several_databases_are_those_of_the_concatenation(tmp_path):
    """Filters by taxa that are in one, in the other or in both databases, and the columns of reports.

    Expected value: the concatenation with the same taxdump; it has the organisms of both.
    """
    one = with_organisms(tmp_path, "a", [9606, 10090, 9606, 77777777], EXCERPT)
    other = with_organisms(tmp_path, "b", [10090, 562, 83333], EXCERPT)
    swsearch.build_database([tmp_path / "a.fasta", tmp_path / "b.fasta"], tmp_path / "all.db", taxonomy=EXCERPT)
    for chosen in ({}, {"taxid": "9606"}, {"taxid": "9989"}, {"taxid": "2"}, {"taxid": "2,9606"}, {"taxid": "2759"}):
        expected = organisms(tmp_path / "all.db", **chosen)
        assert expected
        assert organisms([one, other], **chosen) == expected
    with swsearch.open_database([one, other]) as joined, swsearch.open_database(tmp_path / "all.db") as whole:
        assert joined.taxonomy is not None
        assert whole.taxonomy is not None
        for name in ("taxids", "parents", "by_taxid", "merged"):
            assert np.array_equal(getattr(joined.taxonomy.tree, name), getattr(whole.taxonomy.tree, name))
        assert [joined.taxonomy.taxids(n) for n in range(7)] == [whole.taxonomy.taxids(n) for n in range(7)]


def test_organisms_that_only_some_databases_have_stored(tmp_path):
    """A filter would miss descendants in the other, so it is refused without --taxonomy; reports use headers."""
    one = with_organisms(tmp_path, "a", [9606], EXCERPT)
    other = with_organisms(tmp_path, "b", [9606, 10090], None)
    message = f"taxid: {other} has no taxonomy, and another of the databases has one"
    for databases in ([one, other], [other, one]):
        with pytest.raises(InputError) as refused:
            organisms(databases, taxid="9606")
        assert str(refused.value).startswith(message)
        assert [row[0] for row in organisms(databases, taxid="9989", taxonomy=str(EXCERPT))] == ["b1"]
        assert {row[:3] for row in organisms(databases)} == {
            ("a0", "9606", "Homo sapiens"),
            ("b0", "9606", "Homo sapiens"),
            ("b1", "10090", None),
        }
    with swsearch.open_database([other, with_organisms(tmp_path, "c", [562], None)]) as joined:
        assert joined.taxonomy is None
        assert joined.taxonomy_digest is None


def test_a_taxon_is_placed_as_in_the_first_database_that_has_it(tmp_path):
    """Two releases of a taxonomy, written by hand: 30 is below 10 in the first and below 20 in the second."""
    former = write_dump(tmp_path / "former", {1: 1, 10: 1, 20: 1, 30: 10})
    later = write_dump(tmp_path / "later", {1: 1, 10: 1, 20: 1, 30: 20, 40: 30})
    one, other = with_organisms(tmp_path, "a", [30], former), with_organisms(tmp_path, "b", [40, 20], later)
    assert [row[0] for row in organisms([one, other], taxid="10")] == ["a0", "b0"]
    assert [row[0] for row in organisms([other, one], taxid="20")] == ["b0", "b1", "a0"]
