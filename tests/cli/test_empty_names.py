"""Empty names of files and databases are refused. Expected values: by hand."""

import shlex

import pytest


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["query", "q.fa", "--db", ""], "--db: the name is empty"),
        (["query", "q.fa", "--db="], "--db: the name is empty"),
        (["query", "q.fa", ""], "an argument is empty"),
        (["query", "-query", "", "-db", "p.db"], "an argument is empty"),
        (["query", "q.fa", "p.db", "--out", ""], "--out: the name is empty"),
        (["query", "q.fa", "p.db", "--taxonomy="], "--taxonomy: the name is empty"),
        (["msa", "q.fa", "p.db", "--out", ""], "--out: the name is empty"),
        (["index", "q.fa", "--force", "-o", ""], "--out: the name is empty"),
        (["index", "-o", "x.db", "--", ""], "an argument is empty"),
        (["db", "verify", ""], "an argument is empty"),
        (["db", "fetch", "p.db", "--ids", ""], "--ids: the name is empty"),
        (["align", "", "q.fa"], "an argument is empty"),
    ],
    ids=shlex.join,
)
def test_an_empty_name_is_not_the_working_folder(swsearch, tmp_path, words, named):
    """What a shell passes for an unset variable in quotation marks."""
    (tmp_path / "q.fa").write_text(">q\nMKV\n")
    refused = swsearch(*words)
    assert (refused.code, refused.out) == (2, "")
    assert f"{named}; give one, and check that a variable of the shell is not empty" in refused.error
    assert [path.name for path in tmp_path.iterdir()] == ["q.fa"]


def test_an_unknown_option_is_named_rather_than_its_empty_value(swsearch):
    assert "no such option: --nosuch" in swsearch("query", "q.fa", "p.db", "--nosuch", "").error


def test_a_text_may_be_empty(swsearch):
    assert "Edit distance: 3" in swsearch("align", "--mode", "edit", "--text", "", "ABC").out
