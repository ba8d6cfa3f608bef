"""The search form: the options of the command line, read as the command line reads them."""

from dataclasses import fields

import pytest

from swsearch.options import SEARCH_FILES, SEARCH_OPTIONS
from swsearch.search.options import SearchOptions
from swsearch.service.pages.form import FIRST, SearchForm, form_fields, in_form, option_of

NAMES = list(form_fields())
VALUES = {
    "top": "7", "evalue": "1e-05", "translate": "query", "ties": "all", "strand": "minus", "genetic_code": "11",
    "max_hsps": "3", "max_intron": "5000", "matrix": "PAM250", "match": "1", "mismatch": "-2", "gap_open": "0",
    "gap_extend": "2",
    "dbsize": "1000000", "mask": "seg,lower", "mask_mode": "hard", "composition": "bias", "min_score": "20",
    "min_bits": "30.5", "min_identity": "25", "min_query_coverage": "50", "min_subject_coverage": "10",
    "min_alignment_length": "12", "min_length": "5", "max_length": "900", "id_pattern": "^sp", "taxid": "9606,10090",
    "alphabet": "dna", "iterations": "3", "inclusion_evalue": "0.02",
    "sensitive": "True", "count_hsps": "True",
}  # fmt: skip
PARSED = {**VALUES, "top": 7, "evalue": 1e-5, "genetic_code": 11, "max_hsps": 3, "max_intron": 5000, "match": 1,
          "mismatch": -2, "gap_open": 0, "gap_extend": 2, "dbsize": 10**6, "min_score": 20, "min_bits": 30.5,
          "min_identity": 25.0, "min_query_coverage": 50.0, "min_subject_coverage": 10.0, "min_alignment_length": 12,
          "min_length": 5, "max_length": 900, "iterations": 3, "inclusion_evalue": 0.02,
          "sensitive": True, "count_hsps": True}  # fmt: skip


def test_every_option_of_a_search_is_offered_or_names_a_file():
    options = {field.name for field in fields(SearchOptions)} | {"alphabet"}
    assert set(NAMES) == options - set(SEARCH_FILES)
    assert set(SEARCH_OPTIONS) == options
    assert NAMES[: len(FIRST)] == list(FIRST)


def test_meanings_are_those_of_the_command_line_in_the_words_of_the_form():
    for name, one in form_fields().items():
        assert "--" not in one.help + one.group
        assert one.help
        if name not in ("matrix", "taxid"):
            assert one.help == in_form(one.row.help)


def test_an_untouched_form_submits_no_option():
    form = SearchForm()
    assert SearchForm(values={name: form.value(name) for name in NAMES}).options() == {}
    assert not form.opens_fold


def test_values_are_read_as_their_types():
    """By hand: :data:`PARSED`. ``match`` excludes ``matrix``, and so on, so each is given alone."""
    assert set(VALUES) == set(NAMES)
    together = {"mask_mode": ["mask"], "genetic_code": ["translate"], "inclusion_evalue": ["iterations"]}
    for name, text in VALUES.items():
        given = {other: VALUES[other] for other in [name, *together.get(name, [])]}
        given |= {"translate": "subject"} if name == "max_intron" else {}
        form = SearchForm(values=given)
        assert form.options()[name] == PARSED[name], form.errors
        assert form.errors == {}
        again = SearchForm.of("", [], form.options())
        assert again.options() == form.options()
        assert again.value(name) == text


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("top", "many", "Give a whole number."),
        ("top", "-1", "Choose a number of subjects, 1 to 2,147,483,647, or all (0)"),
        ("top", "1" * 30, "Give a whole number."),
        ("evalue", "small", "Give a number, such as 10 or 1e-5."),
        ("evalue", "nan", "Choose a number above 0"),
        ("evalue", "-1", "Choose a number above 0"),
        ("strand", "left", "Choose one of the values of the list."),
        ("matrix", "/etc/passwd", "Choose one of the values of the list."),
        ("min_identity", "101", "Choose a percentage, 0 to 100"),
        ("id_pattern", "(", "missing ), unterminated subpattern"),
        ("genetic_code", "11", "“Translate”"),
        ("mask_mode", "hard", "“Mask queries”"),
        ("mask", "everything", "one or more of tantan, dust, seg, lower"),
    ],
)
def test_a_problem_stands_at_its_field(name, text, problem):
    form = SearchForm(values={name: text})
    form.options()
    assert list(form.errors) == [name]
    assert problem in form.errors[name]
    assert "--" not in form.errors[name]
    assert form.value(name) == text
    assert form.opens_fold == (name not in FIRST)


def test_all_fields_with_problems_are_named_at_once():
    form = SearchForm(values={"top": "x", "evalue": "-1", "min_identity": "400"})
    form.options()
    assert list(form.errors) == ["top", "evalue", "min_identity"]


def test_options_that_exclude_each_other_are_a_problem_of_one_of_them():
    form = SearchForm(values={"min_length": "9", "max_length": "3"})
    form.options()
    assert form.errors == {
        "min_length": "“Minimum subject length” 9 is above “Maximum subject length” 3; no subject fits"
    }


def test_the_option_of_a_message_is_found():
    assert option_of("--min-bits 4: there are no bit scores") == "min_bits"
    assert option_of("--include x: no such file") is None
    assert option_of("the query is empty") is None


def test_all_subjects_may_be_listed():
    assert SearchForm(values={"top": "all"}).options() == {"top": "all"}
    assert SearchOptions(top="all") == SearchOptions(top=0) == SearchOptions(top=2**31 - 1)  # type: ignore[arg-type]
