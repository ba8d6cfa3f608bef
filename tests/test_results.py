"""Results of a search are kept: they can be read again, by several threads, and never end silently too early."""

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import pytest

import swsearch
from swsearch.errors import DatabaseError, EngineError, InputError, WrongType
from swsearch.options import PAIR_EVALUE
from swsearch.search_results import SearchResults
from swsearch.sequences.fasta_text import reverse_complement_letters
from tests.patience import LIMIT_SECONDS

SUBJECTS = ("MKVLAAGIVGLLLAQWERTY", "MKVLAAGWVGLLQWERTY", "WWWWHHHHWWWWCCCC", "PPGPPGPPGPPGDDDD")
QUERIES = [(f"q{number}", letters) for number, letters in enumerate(SUBJECTS * 3)]
FIELDS = ["qseqid", "sseqid", "score", "stitle", "full_sseq"]
N_THREADS = 4


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    folder.joinpath("s.fa").write_text("".join(f">s{n} ÿ\n{one}\n" for n, one in enumerate(SUBJECTS)), "latin-1")
    swsearch.build_database(folder / "s.fa", folder / "s.db")
    return folder / "s.db"


def search(database: Path, n_times: int = 1) -> SearchResults:
    return swsearch.search_database(QUERIES * n_times, database)


def test_results_are_read_as_often_as_wanted(database):
    """Source: a second search; what the first reading gave, in its order."""
    results = search(database)
    expected = [(result.number, result.header, result.hits) for result in search(database)]
    assert len(results) == len(QUERIES)
    next(results)  # the object has a place of its own, from which no reading begins
    for _ in range(2):
        assert [(result.number, result.header, result.hits) for result in results] == expected
    assert next(results).header == "q1"


def test_results_are_taken_by_their_places(database):
    """Expected values: the list of all results."""
    headers = [result.header for result in search(database)]
    results = search(database)
    assert results[0].header == headers[0]
    assert "1 computed" in repr(results)
    assert results[-1].header == headers[-1]
    for which in (slice(1, None), slice(None, None, -1), slice(5, 2), slice(-2, 100)):
        assert [result.header for result in results[which]] == headers[which]
    for place in (len(headers), -len(headers) - 1):
        with pytest.raises(IndexError, match=f"there is no result {place} of {len(headers)} queries"):
            results[place]


def test_tables_and_reports_are_made_again_with_whole_subjects(database, tmp_path):
    """The database, which is closed after the last query, is opened again for the letters that hits do not have."""
    results = search(database)
    tables = [results.to_arrow(FIELDS).to_pylist() for _ in range(2)]
    assert tables[0] == tables[1]
    assert {(row["full_sseq"], row["stitle"][2:]) for row in tables[0]} == {(one, " \ufffd") for one in SUBJECTS}
    for name in ("1.fasta", "2.fasta"):
        swsearch.write_report(results, tmp_path / name, "fasta")
    assert (tmp_path / "1.fasta").read_bytes() == (tmp_path / "2.fasta").read_bytes() != b""
    results.close()
    assert results.to_arrow(["qlen", "qlen"]).num_rows == len(tables[0])  # all were read before


def test_results_of_several_databases_and_of_all_pairs_are_kept(database):
    for results in (swsearch.align_families(QUERIES, [database]), swsearch.all_pairs(database)):
        first, second = list(results), list(results)
        assert first == second
        assert len(results) == len(first) > 0


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda results: results, id="its own place"),
        pytest.param(iter, id="one reading"),
        pytest.param(SearchResults.stream, id="stream"),
    ],
)
def test_threads_that_share_a_reading_share_its_results(database, read: Callable[[SearchResults], Iterator]):
    reading = read(search(database))
    found: list[list[int]] = [[] for _ in range(N_THREADS)]
    in_threads(lambda number: found[number].extend(next_numbers(reading)))
    assert sorted(chain.from_iterable(found)) == list(range(len(QUERIES)))


def next_numbers(reading: Iterator) -> Iterator[int]:
    while (result := next(reading, None)) is not None:
        yield result.number


def test_each_thread_that_reads_gets_all_results(database):
    results = search(database)
    found: list[list[str]] = [[] for _ in range(N_THREADS)]
    in_threads(lambda number: found[number].extend(result.header for result in results))
    assert found == [[header for header, _ in QUERIES]] * N_THREADS


def in_threads(work: Callable[[int], None]) -> None:
    begin = threading.Barrier(N_THREADS)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        begin.wait(LIMIT_SECONDS)
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    assert not errors, errors


def test_results_are_not_kept_once_nobody_can_read_them_again(database):
    """Neither a loop over the call itself nor a stream keeps what it has yielded, apart from some dozens of results."""
    kept = search(database)
    kept_reference = weakref.ref(next(kept))
    for reading in (iter(search(database, 10)), search(database, 10).stream()):
        passed = weakref.ref(next(reading))
        for _ in reading:
            pass
        gc.collect()
        assert passed() is None
    assert kept_reference() is not None


def test_results_that_were_streamed_cannot_be_read_again(database):
    results = search(database)
    assert sum(1 for _ in results.stream()) == len(QUERIES)
    for read in (list, next, SearchResults.stream, SearchResults.to_arrow):
        with pytest.raises(InputError, match="results were streamed, and not kept; search again"):
            read(results)


def test_results_that_were_closed_too_early_do_not_end_silently(database):
    results = search(database)
    reading = iter(results)
    assert [next(reading).header, next(reading).header] == ["q0", "q1"]
    results.close()
    again = iter(results)
    assert [next(again).header, next(again).header] == ["q0", "q1"]
    for interrupted in (reading, again):
        with pytest.raises(InputError, match="the results were closed after 2 of 12 queries; search again"):
            next(interrupted)


def test_an_error_of_the_search_is_raised_by_every_reading(database):
    """The second reading must not end, as if complete, where the first one failed."""
    results = list(search(database))

    def failing() -> Iterator:
        yield from results[:2]
        raise EngineError("the GPU is gone")

    kept = SearchResults(search(database).run, None, failing(), ExitStack(), len(results))
    for _ in range(2):
        reading = iter(kept)
        assert [next(reading), next(reading)] == results[:2]
        with pytest.raises(EngineError, match="the GPU is gone"):
            next(reading)


def test_a_callback_cannot_read_the_results_for_which_it_is_called(database):
    problems: list[str] = []

    def progress(_: int) -> None:
        try:
            next(results)
        except (InputError, NameError) as error:
            problems.append(str(error))

    results = swsearch.search_database(QUERIES[:1], database, progress=progress, engine="reference")
    list(results)
    assert all("progress" in problem or "results" in problem for problem in problems)
    assert problems


@pytest.mark.parametrize("is_joined", [False, True])
def test_a_database_that_is_closed_during_the_search_is_named(database, tmp_path, is_joined):
    (tmp_path / "t.fa").write_text(">t\nMKVLAAGIVG\n")
    opened = swsearch.open_database(
        [database, swsearch.build_database(tmp_path / "t.fa", tmp_path / "t.db").path] if is_joined else database
    )
    results = swsearch.search_database(QUERIES * 200, opened)
    next(results)
    opened.close()
    for _ in range(2):
        with pytest.raises(DatabaseError, match=r"s\.db.* is closed; keep it open until all results are read"):
            list(results)
    for use in (lambda: opened.header(0), lambda: opened.record(0), lambda: list(opened.partitions())):
        with pytest.raises(DatabaseError, match="is closed"):
            use()


def test_many_kept_results_are_freed_without_recursion(database):
    found = search(database)
    results = SearchResults(found.run, None, repeat(replace(next(found), hits=()), 200_000), ExitStack(), 200_000)
    assert sum(1 for _ in results) == 200_000
    del results
    gc.collect()


def test_results_show_their_first_hits(database):
    """The representation computes nothing; a notebook's table computes the queries that have the hits it shows."""
    results = search(database, 20)
    n_queries = 20 * len(QUERIES)
    assert repr(results) == f"<SearchResults of {n_queries} queries in s.db, 0 computed>"
    table = results._repr_html_()
    rows = [row.split("</td>")[:2] for row in table.split("<tr>")[2:]]
    first = [(result.header, hit.subject_id) for result in results for hit in results.run.listed(result)][: len(rows)]
    assert len(rows) == 20
    assert [(one.removeprefix("<td>"), two.removeprefix("<td>")) for one, two in rows] == first
    assert f"{n_queries} computed" not in table


def test_results_that_are_not_kept_show_no_table(database):
    streamed, closed = search(database), search(database)
    next(streamed.stream())
    closed.close()
    assert "<table>" not in streamed._repr_html_() + closed._repr_html_()


def test_identifiers_are_escaped_in_the_table(tmp_path):
    (tmp_path / "s.fa").write_text(">a<b>&c\nMKVLAAGIVGLLLAQWERTY\n")
    table = swsearch.search_database(tmp_path / "s.fa", tmp_path / "s.fa")._repr_html_()
    assert table.count("<td>a&lt;b&gt;&amp;c</td>") == 2


def test_options_are_given_by_name(database):
    """Source: the hits of the whole list that the options leave."""
    expected = search(database)
    for given in (
        swsearch.search_database(QUERIES, database, evalue=1e-6, top=1),
        swsearch.search_database(QUERIES, database, swsearch.SearchOptions(top=3, evalue=1e-6), top=1),
    ):
        assert [result.hits for result in given] == [
            tuple(hit for hit in result.hits if hit.rank == 1 and hit.evalue <= 1e-6) for result in expected
        ]
    assert swsearch.all_pairs(database, top=1).run.parameters["evalue"] == PAIR_EVALUE
    with pytest.raises(WrongType, match="no option 'evaleu'; did you mean evalue"):
        swsearch.search_database(QUERIES, database, evaleu=1)


def test_progress_is_shown_by_a_bar_that_ends_with_the_results(database, capsys):
    results = swsearch.search_database(QUERIES, database, progress=True)
    assert len(list(results)) == len(QUERIES)
    assert "searching" in capsys.readouterr().err
    with pytest.raises(WrongType, match="progress"):
        swsearch.search_database(QUERIES, database, progress=3)


@pytest.mark.parametrize(
    ("method", "module"), [("to_arrow", "pyarrow"), ("to_pandas", "pandas"), ("to_polars", "polars")]
)
def test_missing_packages_are_named(database, method, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"{method} needs {module}; `pip install {module}`"):
        getattr(search(database), method)()


def test_polars_has_the_values_of_arrow(database):
    polars = pytest.importorskip("polars")
    results = search(database)
    frame = results.to_polars(FIELDS)
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dicts() == results.to_arrow(FIELDS).to_pylist()


def test_subjects_are_found_by_name_and_place(database):
    with swsearch.open_database(database) as subjects:
        assert len(subjects) == len(SUBJECTS)
        assert subjects["s2"].letters == subjects[2].letters == subjects[-2].letters == SUBJECTS[2]
        with pytest.raises(KeyError, match="no sequence 's'"):
            subjects["s"]
        with pytest.raises(IndexError):
            subjects[len(SUBJECTS)]


def test_an_alignment_prints_its_rows():
    shown = str(swsearch.align("ACGTTGCA", "ACGTGCA", "global"))
    assert shown.endswith("Query  1  ACGTTGCA  8\n          ||| ||||\nSbjct  1  ACG-TGCA  7")


def test_an_alignment_takes_scoring_options_by_name():
    """Source: the same options as an object; by hand, 9 equal letters and one gap."""
    sides = "MKVLAAGIVG", "MKVLAGIVG"
    expected = swsearch.align(*sides, "global", swsearch.SearchOptions(matrix="PAM30", gap_open=5, gap_extend=2))
    given = swsearch.align(
        *sides, "global", swsearch.SearchOptions(matrix="PAM30", gap_open=9), gap_open=5, gap_extend=2
    )
    assert given.score == expected.score != swsearch.align(*sides, "global").score
    assert swsearch.align("ACGTTGCA", "ACGTGCA", "global", match=3, gap_open=0, gap_extend=1).score == 7 * 3 - 1
    for name, problem in (("matrx", "did you mean matrix"), ("top", "choose matrix, match, mismatch, gap_open")):
        with pytest.raises(WrongType, match=f"no option '{name}'; {problem}"):
            swsearch.align(*sides, **{name: 5})
    with pytest.raises(InputError, match="matrix='PAM30': mode='edit' has costs of its own; leave it out"):
        swsearch.align(*sides, "edit", matrix="PAM30")


def test_hits_print_their_alignments(tmp_path):
    """Source: the report ``pairwise`` of the same results, of either strand and of frames; a pickle of the hit."""
    forward = "ATGAAAGTTCTGGCAGCTGGTATCGTTGGACTTCTTCTAGCACAATGGGAACGTACTTATCCAGATCATTGG"
    (tmp_path / "s.fa").write_text(
        f">s one\n{forward[:30] + forward[36:]}\n>turned\n{reverse_complement_letters(forward)}\n"
    )
    (tmp_path / "p.fa").write_text(">p a protein\nMKVLAAGIVGLLLAQWERTYPDHW\n")
    for database, options in (("s.fa", {}), ("p.fa", {"translate": "query"})):
        results = swsearch.search_database([("gene", forward)], tmp_path / database, **options)
        swsearch.write_report(results, tmp_path / "report.txt", "pairwise")
        report = (tmp_path / "report.txt").read_text()
        (result,) = results
        assert result.hits
        shown = [str(pickle.loads(pickle.dumps(hit))) for hit in result.hits]
        assert report[report.index("\n>") + 1 :] == "\n\n\n".join(shown) + "\n"
        assert "source" not in repr(result.hits[0])
        assert str(replace(result.hits[0], source=None)) == repr(result.hits[0])


def test_the_package_lists_its_public_names_alone():
    assert dir(swsearch) == sorted(["__version__", *swsearch.__all__])
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = swsearch.no_such_thing
