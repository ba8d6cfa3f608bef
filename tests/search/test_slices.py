"""Searches by slices: the merged results are, byte for byte, those of the whole database.

Expected values: the reports of a search of the whole database with the same engine and options.
"""

import pickle
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.database.builder import build_database
from swsearch.database.changes import add_to_database, remove_from_database
from swsearch.database.opening import open_database
from swsearch.database.reader import DatabasePart
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.protocol import Forecast, ScoreEngine
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import DatabaseError, InputError
from swsearch.hits.result import QueryResult
from swsearch.search.options import SearchOptions
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import QueryFiles
from swsearch.search.rounds import search_in_rounds
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.searcher import Searcher
from swsearch.search.slices import merge_results, slices_of, whole
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Progress
from tests.engine.cuda.emulation.emulated_device import opener
from tests.sliced_databases import DATA, segmented, sliced_databases
from tests.tiers import mostly_thorough

FORMATS = ("blast6", "xml", "jsonl", "parquet")
TIES = {"top": 2, "evalue": float("inf"), "ties": "all"}


class SlicedSearch(PlannedSearch):
    """A search of each slice in this process, one after the other."""

    engine_name = "cpu"

    def __init__(self, path: Path, engine: ScoreEngine, options: SearchOptions, opened: ExitStack) -> None:
        database = opened.enter_context(open_database(path))
        super().__init__(database, options, is_scored_here=False)
        self.searchers = [
            Searcher(
                opened.enter_context(open_database(path, parts=[DatabasePart(segments=one.segments)])), engine, options
            )
            for one in slices_of(self.search_subjects)
        ]

    def forecast(self, n_cells: int, queries: Sequence[SequenceRecord] = ()) -> Forecast | None:
        return None

    def explain(self, queries: Sequence[SequenceRecord]) -> list[str]:
        return []

    def search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        if self.options.iterations == 1:
            return self.search_once(queries, progress)
        return search_in_rounds(self, queries, progress, 7, 10**6, 2)

    def search_once(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        queries = list(queries)
        found = [list(searcher.search_once(queries, progress)) for searcher in self.searchers]
        yield from (merge_results(parts, self.limits) for parts in zip(*found, strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sliced_databases(tmp_path_factory.mktemp("slices"))


PROTEIN: list[dict[str, Any]] = [
    {},
    {"top": 3, "ties": "all", "evalue": 1000},
    {"top": 1, "evalue": float("inf")},
    {"top": 40, "evalue": float("inf"), "ties": "all"},
    {"max_hsps": 3, "evalue": 1000},
    {"top": 4, "min_identity": 35, "min_query_coverage": 30, "evalue": 1000},
    {"top": 2, "ties": "all", "min_identity": 60, "max_hsps": 2, "evalue": 1000},
    {"min_length": 100, "max_length": 300, "evalue": 1000},
    {"id_pattern": "copy1", "evalue": 1000},
    {"mask": "tantan", "evalue": 1000},
    {"mask": "tantan", "mask_mode": "hard", "composition": "bias", "evalue": 1000},
    {"iterations": 3, "top": 5},
    {"iterations": 3, "max_hsps": 2, "ties": "all", "top": 3, "inclusion_evalue": 1e-5},
    {"gap_open": 1, "gap_extend": 0, "min_score": 60, "top": 5},
    {"dbsize": 10**9, "min_bits": 30},
    {"sensitive": True, "top": 5, "ties": "all", "min_identity": 25},
    {"sensitive": True, "contexts": str(DATA / "contexts.lib"), "iterations": 3, "top": 5},
]
BASES: list[dict[str, Any]] = [
    {"evalue": 1000},
    {"strand": "minus", "top": 2, "ties": "all"},
    {"max_hsps": 4, "evalue": 1000, "min_alignment_length": 20},
    {"top": 1, "evalue": float("inf")},
    {"mask": "dust", "evalue": 1000},
    {"translate": "both", "evalue": 1000, "max_hsps": 3},
]
CASES = [
    *[("queries.fasta", "proteins", options) for options in PROTEIN],
    ("obg.sto", "proteins", {"evalue": 1000}),
    ("obg.sto", "proteins", {"iterations": 2}),
    *[("reads.fasta", "bases", options) for options in BASES],
    ("reads.fasta", "proteins", {"translate": "query", "evalue": 1000}),
    ("queries.fasta", "bases", {"translate": "subject", "evalue": 1000, "min_identity": 20}),
    ("queries.fasta", "dealt_proteins", {"top": 3, "ties": "all", "evalue": 1000}),
    ("queries.fasta", "dealt_proteins", {"id_pattern": "copy1", "min_length": 100, "evalue": 1000}),
    ("queries.fasta", "dealt_proteins", {"iterations": 3, "top": 5}),
    ("reads.fasta", "dealt_bases", {"translate": "both", "evalue": 1000, "max_hsps": 3}),
]


@pytest.mark.parametrize(("queries", "database", "chosen"), mostly_thorough(CASES, *CASES[::4]))
def test_merged_slices_are_the_whole_database(folder, tmp_path, queries, database, chosen):
    """The bytes of four formats, and the numbers that the formats leave out."""
    options = SearchOptions(**chosen)
    path = folder / f"{database}.db"
    with ExitStack() as opened:
        engine = opened.enter_context(CpuEngine(1))
        plain = Searcher(opened.enter_context(open_database(path)), engine, options)
        sliced = SlicedSearch(path, engine, options, opened)
        assert len(sliced.searchers) == (1 if "id_pattern" in chosen and database == "proteins" else 3)
        assert sliced.run_info("") == plain.run_info("")
        file = folder / queries if (folder / queries).exists() else DATA / queries
        assert_equal_reports(file, plain, sliced, tmp_path / "report")


def assert_equal_reports(file: Path, plain: PlannedSearch, other: PlannedSearch, report: Path) -> None:
    """Search with a file of queries in two ways; all reports are those of the run of the first."""
    records = [one for one in QueryFiles.of([file], "auto").records(plain) if isinstance(one, SequenceRecord)]
    found = []
    for searcher in (plain, other):
        results = list(searcher.search(records))
        numbers = [(one.n_passed, one.stats.cells, one.n_rounds, one.hits) for one in results]
        found.append({"numbers": numbers, **dict.fromkeys(FORMATS, b"")})
        for form in FORMATS:
            swsearch.write_report((plain.run_info(""), results), report, form)
            found[-1][form] = report.read_bytes()
    assert any(hits for *_, hits in found[0]["numbers"])
    for name, expected in found[0].items():
        assert found[1][name] == expected, name


@pytest.mark.parametrize("n_slices", mostly_thorough([2, 8], 2))
def test_slices_of_an_index_are_the_whole_database(folder, tmp_path, n_slices):
    """The sequences are dealt, so neighbours of the FASTA are in different slices; some were removed and others added.

    Expected value: the hits of the whole database, for a list with ties, a filter on subjects and rounds.
    """
    path = tmp_path / "dealt.db"
    build_database([folder / "proteins0.fasta", folder / "proteins1.fasta"], path, slices=n_slices)
    first = (folder / "proteins0.fasta").read_text().split(maxsplit=1)[0].removeprefix(">")
    remove_from_database(path, [first])
    add_to_database(path, [folder / "proteins2.fasta"])
    for chosen in ({"top": 2, "ties": "all", "evalue": 1000}, {"id_pattern": "[AC]", "iterations": 2}):
        options = SearchOptions(**chosen)
        with ExitStack() as opened:
            engine = opened.enter_context(CpuEngine(1))
            plain = Searcher(opened.enter_context(open_database(path)), engine, options)
            sliced = SlicedSearch(path, engine, options, opened)
            assert len(sliced.searchers) >= n_slices
            file = QueryFiles.of([folder / "queries.fasta"], "auto")
            queries = [one for one in file.records(plain) if isinstance(one, SequenceRecord)]
            assert essence(sliced.search(queries)) == essence(plain.search(queries))
            assert sliced.run_info("") == plain.run_info("")


@pytest.mark.parametrize("chosen", mostly_thorough([{}, TIES, {"sensitive": True}], {}, TIES))
def test_a_background_engine_leaves_no_hit_of_a_slice_out(tmp_path, chosen):
    """An emulated GPU, whose bounds leave subjects out slice by slice; expected value: the reference engine."""
    rng = np.random.default_rng(3)
    letters = ["".join("ARNDCQEGHILKMFPSTWYV"[code] for code in rng.integers(0, 20, 40)) for _ in range(60)]
    segmented(tmp_path, "short", [(f"p{number}", text) for number, text in enumerate(letters)], [30, 20, 10])
    path, options = tmp_path / "short.db", SearchOptions(**chosen)
    found = []
    for engine in (ReferenceEngine(), CudaDevices([0], opener())):
        with ExitStack() as opened:
            opened.enter_context(engine)
            plain = Searcher(opened.enter_context(open_database(path)), engine, options)
            sliced = SlicedSearch(path, engine, options, opened)
            queries = [plain.database.record(number) for number in (1, 35)]
            found += [essence(searcher.search(queries)) for searcher in (plain, sliced)]
    assert found[0][0][2]
    assert all(one == found[0] for one in found)


def essence(results: Iterable[QueryResult]) -> list[tuple[Any, ...]]:
    """What the search determines."""
    return [(one.number, one.n_passed, one.hits) for one in results]


def test_slices_contain_each_segment_once_and_small_ones_are_shared_out(folder, tmp_path):
    """Expected value by hand: the additions of 10 sequences are not slices, and go where fewest residues are."""
    segmented(tmp_path, "few", [(f"p{number}", "MKVLAAGIVG" * 9) for number in range(400)], [200, 170, 2, 3])
    with open_database(tmp_path / "few.db") as database:
        subjects = SearchSubjects(database, SearchOptions(), is_scored_here=False)
        slices = slices_of(subjects)
        assert [one.segments for one in slices] == [(0,), (1, 2, 3)]
        assert sum(one.n_residues for one in slices) == whole(subjects).n_residues == database.n_residues
        assert sum(one.n_bytes for one in slices) == whole(subjects).n_bytes


def test_a_slice_needs_no_files_of_other_slices(folder, tmp_path):
    """Files of the first segment are gone; the second slice is searched all the same, the whole database is refused."""
    segmented(tmp_path, "two", [(f"p{number}", "MKVLAAGIVGLLLAQWERTY") for number in range(90)], [50, 40])
    path = tmp_path / "two.db"
    with open_database(path, parts=[DatabasePart(segments=(1,))]) as part, open_database(path) as database:
        assert part.subject_index.tolist() == list(range(50, database.n_subjects))
        assert [part.header(number) for number in (50, 60)] == [database.header(number) for number in (50, 60)]
        (path / database.catalogue.segments[0].name / "residues.bin").unlink()
    with pytest.raises(DatabaseError, match="residues"):
        open_database(path)
    with open_database(path, parts=[DatabasePart(segments=(1,))]) as part:
        again = pickle.loads(pickle.dumps(part))
        assert again.subject_index.tolist() == part.subject_index.tolist()
        again.close()


def test_a_filter_is_applied_to_the_subjects_of_a_slice(folder):
    """Expected value: the selection of the whole database, among the subjects of the slice."""
    options = SearchOptions(id_pattern="copy", min_length=60)
    with ExitStack() as opened:
        engine = opened.enter_context(CpuEngine(1))
        database = opened.enter_context(open_database(folder / "proteins.db"))
        selection = Searcher(database, engine, options).search_subjects.selection
        assert selection is not None
        part = opened.enter_context(open_database(folder / "proteins.db", parts=[DatabasePart(segments=(2,))]))
        of_slice = Searcher(part, engine, options).search_subjects
        assert of_slice.parameters == selection.among(part.subject_index).parameters
        assert 0 < of_slice.n_subjects < len(selection.subject_index)
        first = opened.enter_context(open_database(folder / "proteins.db", parts=[DatabasePart(segments=(0,))]))
        with pytest.raises(InputError, match="no subject"):
            Searcher(first, engine, options)


def test_subjects_that_are_only_counted_are_as_many_as_those_that_are_scored(folder):
    """The residues of all frames, without a translation; expected value: those of the translated partitions."""
    for chosen in ({}, {"min_length": 500}, {"translate": "both", "max_length": 650}):
        options = SearchOptions(**chosen)
        with open_database(folder / "bases.db") as database, CpuEngine(1) as engine, ExitStack() as opened:
            scored = Searcher(database, engine, options).search_subjects
            counted = SlicedSearch(folder / "bases.db", engine, options, opened).search_subjects
            numbers = [(one.n_residues, one.n_rows, one.n_subjects) for one in (scored, counted)]
            assert numbers[0] == numbers[1]
            assert np.array_equal(scored.distinct_lengths, counted.distinct_lengths)
            assert counted.partitions == []
