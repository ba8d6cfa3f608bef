"""Empty names of files and databases are refused. Expected values: by hand."""

import shlex

import pytest


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["query", "q.fa", "--db", ""], "--db has an empty name"),
        (["query", "q.fa", "--db="], "--db has an empty name"),
        (["query", "q.fa", ""], "an argument is empty"),
        (["query", "-query", "", "-db", "p.db"], "an argument is empty"),
        (["query", "q.fa", "p.db", "--out", ""], "--out has an empty name"),
        (["query", "q.fa", "p.db", "--taxonomy="], "--taxonomy has an empty name"),
        (["msa", "q.fa", "p.db", "--out", ""], "--out has an empty name"),
        (["index", "q.fa", "--force", "-o", ""], "-o has an empty name"),
        (["index", "-o", "x.db", "--", ""], "an argument is empty"),
        (["db", "verify", ""], "an argument is empty"),
        (["db", "fetch", "p.db", "--ids", ""], "--ids has an empty name"),
        (["align", "", "q.fa"], "an argument is empty"),
        (["plan", ""], "an argument is empty"),
    ],
    ids=shlex.join,
)
def test_an_empty_name_is_not_the_working_folder(swsearch, tmp_path, words, named):
    """What a shell passes for an unset variable in quotation marks."""
    (tmp_path / "q.fa").write_text(">q\nMKV\n")
    refused = swsearch(*words)
    assert (refused.code, refused.out) == (2, "")
    assert f"{named}; name it, and look whether a variable of the shell is empty" in refused.error
    assert [path.name for path in tmp_path.iterdir()] == ["q.fa"]


def test_a_text_may_be_empty(swsearch):
    assert "Edit distance: 3" in swsearch("align", "--mode", "edit", "--text", "", "ABC").out
