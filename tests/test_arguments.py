"""Every argument of every public function is checked where it is given, in the words of the function.

The cases come from the signatures: each parameter of each function in ``swsearch.__all__`` gets values that are wrong
for it, so that a new parameter without a check fails here.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsearch
from swsearch.cli import app
from swsearch.errors import InputError, SwSearchError
from swsearch.hits.result import RunInfo
from swsearch.search_results import SearchResults

PROTEIN = "MKVLAAGIVGLLLAQWERTY"
FAMILIES = Path(__file__).parents[1] / "data" / "families.hmm.gz"


class Thing:
    """An object that is not an argument of any function."""

    def __repr__(self) -> str:
        return "<a thing>"


DOUBTFUL = (None, True, -1, 0, 10**30, 1.5, math.nan, "", "nonsense", "a\0b", "\ud800", b"bytes", [], [Thing()], {}, 3j)
"""Values that are wrong for most parameters."""
RECORDS = {"Hit", "QueryResult", "SwSearchError"}
"""Classes that a program gets, and does not make."""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("arguments")
    folder.joinpath("s.fa").write_text(f">s\n{PROTEIN}\n")
    swsearch.build_database(folder / "s.fa", folder / "s.db")
    return folder


@pytest.fixture
def calls(place, tmp_path, monkeypatch) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """For each public function, the function, and arguments with which it works."""
    monkeypatch.chdir(tmp_path)
    search = {"database": place / "s.db", "engine": "cpu", "threads": 1}
    results = swsearch.search_database([PROTEIN], **search)
    usual = {
        "Client": {"url": "http://127.0.0.1:9"},
        "DomainLimits": {},
        "RowFilter": {},
        "SearchOptions": {},
        "Store": {"target": "hits.sqlite", "create": True},
        "SubjectPart": {},
        "align": {"query": PROTEIN, "subject": PROTEIN},
        "align_families": {"queries": [PROTEIN], "databases": [place / "s.db"], "engine": "cpu", "threads": 1},
        "all_pairs": search,
        "build_database": {"paths": place / "s.fa", "target": "new.db", "overwrite": True, "threads": 1},
        "find_domains": {"database": place / "s.db", "models": FAMILIES, "engine": "cpu", "threads": 1},
        "open_database": {"path": place / "s.db"},
        "open_searcher": search,
        "search_database": {"queries": [PROTEIN], **search},
        "sequence": {"letters": PROTEIN, "alphabet": "protein"},
        "user_store": {},
        "write_report": {"results": results, "path": "report.txt"},
    }
    assert set(usual) == set(swsearch.__all__) - RECORDS
    found = {name: (getattr(swsearch, name), arguments) for name, arguments in usual.items()}
    return found | {name: (getattr(results, name), {}) for name in ("to_arrow", "subjects")}


def perform(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Call a function, and close what it has opened."""
    found = function(**arguments)
    if isinstance(found, Iterator):
        for _ in found:
            pass
    if isinstance(found, AbstractContextManager) and not isinstance(found, Path):
        with found:
            pass


NAMES = sorted({*swsearch.__all__, "to_arrow", "subjects"} - RECORDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_argument_is_an_error_of_ours_that_names_it(calls, name):
    """A thing of no use is refused by its parameter; any other value is taken, or refused in the same way."""
    function, usual = calls[name]
    perform(function, usual)
    wrong = []
    for parameter in inspect.signature(function).parameters:
        for value in (Thing(), *DOUBTFUL):
            try:
                perform(function, usual | {parameter: value})
            except SwSearchError as error:
                shown = (value or "is empty") if isinstance(value, str) else repr(value)
                if parameter.removesuffix("s") not in str(error) and shown not in str(error):
                    wrong.append(f"{parameter}={value!r}: {error}")
                if isinstance(value, Thing) and not isinstance(error, TypeError):
                    wrong.append(f"{parameter}={value!r} is not a TypeError: {error}")
                if "--" in str(error):
                    wrong.append(f"{parameter}={value!r} in the words of the command line: {error}")
            except Exception as error:
                wrong.append(f"{parameter}={value!r}: {type(error).__name__} {error}")
            else:
                if isinstance(value, Thing):
                    wrong.append(f"{parameter}={value!r} is accepted")
    assert not wrong, "\n".join(wrong)


def test_options_take_what_a_person_means(tmp_path):
    """By hand: numbers, lists and arrays of taxonomy ids, and paths of files."""
    options = swsearch.SearchOptions
    assert [options(taxid=given).taxid for given in (9606, "9606", [9606, "10090"], np.array([9606, 10090]))] == [
        "9606", "9606", "9606,10090", "9606,10090",
    ]  # fmt: skip
    (tmp_path / "scores").write_text("  A X\nA 9 -1\nX -1 -1\n")
    assert options(matrix=tmp_path / "scores").matrix == str(tmp_path / "scores")
    assert options(include=tmp_path / "ids", taxonomy=tmp_path).include == str(tmp_path / "ids")
    assert type(options(top=np.int64(3)).top) is int


def test_a_pattern_of_headers_has_bytes(place):
    for headers in (r"^s\b", re.compile(r"^s\b")):
        with pytest.raises(TypeError, match=r"headers is .*; a compiled pattern of bytes is needed"):
            swsearch.build_database(place / "s.fa", place / "text.db", headers=headers)
    assert not (place / "text.db").exists()


def test_a_store_is_named_by_its_path(place, tmp_path):
    """Source: the store that is open."""
    search = partial(swsearch.search_database, [PROTEIN], place / "s.db")
    paths = [str(tmp_path / "text.sqlite"), tmp_path / "path.sqlite"]
    for path in paths:
        assert len(list(search(store=path))) == 1
        results = search(store=path)
        assert results.run_id == 2
        results.close()
    with swsearch.Store(tmp_path / "open.sqlite", create=True) as store:
        list(search(store=store))
        expected = [result.hits for result in store.results.queries(1)]
    for path in paths:
        with swsearch.Store(path) as store:
            assert [result.hits for result in store.results.queries(1)] == expected
            assert [run.state for run in store.runs.all()] == ["finished", "interrupted"]


def test_nothing_is_stored_by_a_search_that_is_refused(place, tmp_path):
    with pytest.raises(InputError, match="threads=0"):
        swsearch.search_database([PROTEIN], place / "s.db", store=tmp_path / "hits.sqlite", threads=0)
    assert not (tmp_path / "hits.sqlite").exists()


def test_an_alphabet_is_given_by_its_name(tmp_path):
    """Letters of DNA, which are packed as protein."""
    (tmp_path / "s.fa").write_text(">s\nACGTACGT\n")
    built = swsearch.build_database(tmp_path / "s.fa", tmp_path / "s.db", alphabet="protein")
    assert built.catalogue.alphabet == "protein"
    with pytest.raises(InputError, match="alphabet='rna': choose protein or dna"):
        swsearch.build_database(tmp_path / "s.fa", tmp_path / "t.db", alphabet="rna")


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("max_hsps", "0", "choose a number of alignments of a subject, 1 to 2,147,483,647"),
        ("strand", "minus", "queries are proteins, which have one strand; leave it out"),
        ("mask", "lower,simple", "choose none, or one or more of tantan, dust, seg, lower separated by commas"),
        ("min_identity", "101", "choose a percentage, 0 to 100"),
        ("id_pattern", "(", "is not a regular expression: missing ), unterminated subpattern at position 0"),
    ],
)
def test_one_check_speaks_to_both_callers(place, tmp_path, capfd, option, value, problem):
    """The command line names the option, Python the argument; what follows is the same."""
    given = float(value) if option.startswith("min") else int(value) if value.isdigit() else value
    with pytest.raises(SwSearchError) as caught:
        swsearch.search_database([PROTEIN], place / "s.db", swsearch.SearchOptions(**{option: given}))
    shown = repr(given) if isinstance(given, str) else f"{given:g}"
    assert str(caught.value).removeprefix(f"{option}={shown}").lstrip(": ") == problem
    name = "--" + option.replace("_", "-")
    assert app.main(["query", str(place / "s.fa"), str(place / "s.db"), name, value, "--store", "none"]) in (1, 2)
    error = capfd.readouterr().err
    assert name in error
    assert f"{option}=" not in error
    if option != "max_hsps":  # which Typer refuses in words of its own
        assert error.splitlines()[-1] == f"swsearch: error: {name} {value}{error.partition(value)[2].splitlines()[0]}"
        assert problem in error


def test_the_record_of_a_run_is_no_result(place, tmp_path):
    """A pair of which only the first part is right."""
    with swsearch.search_database([PROTEIN], place / "s.db") as results:
        info = results.run
    assert isinstance(info, RunInfo)
    with pytest.raises(InputError, match="results"):
        swsearch.write_report((info, 5), tmp_path / "x", "tsv")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fields='qseqid': a list of names is needed"):
        SearchResults.to_arrow(results, "qseqid")
