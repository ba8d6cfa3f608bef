"""The taxonomy ids of sequences, from headers and from maps; the expected ids are written by hand."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsearch.errors import InputError
from swsearch.taxonomy.assignment import mapped_taxids, stated_taxids

HEADERS = [
    "sp|P02232.2|LGB1_VICFA Leghemoglobin OX=3906",
    "WP_000000001.1 one [Escherichia coli]\x01NP_414542.1 two\x01AAC73112.1 three",
    "plain",
    "plain again",
    "",
]


def of_all(found):
    """Return the ids of each sequence."""
    return [found.taxids(number) for number in range(len(found.set_of))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P02232 9606\nplain 10090\n", [(9606,), (), (10090,), (10090,), ()]),
        ("LGB1_VICFA\t9606;10090\n", [(9606, 10090), (), (), (), ()]),
        ("NP_414542 562\nAAC73112.1 83333\nWP_000000001 562\n", [(), (562, 83333), (), (), ()]),
        ("# a remark\n\nplain 7\nplain 5\nplain 7\n", [(), (), (5, 7), (5, 7), ()]),
        ("plain 0\nP02232.2 4294967295\nWP_000000001.1 4294967296\n", [(4294967295,), (), (), (), ()]),
        (
            "accession\taccession.version\ttaxid\tgi\nWP_000000001\tWP_000000001.1\t562\t0\nP02232\tP02232.2\t3906\t0\n",
            [(3906,), (562,), (), (), ()],
        ),
    ],
)
def test_a_map_assigns_ids_by_any_name_of_a_sequence(tmp_path, text, expected):
    """With a map, the ids in headers are ignored."""
    (tmp_path / "map.gz").write_bytes(gzip.compress(text.encode()))
    assert of_all(mapped_taxids(HEADERS, str(tmp_path / "map.gz"))) == expected


def test_headers_state_ids():
    """UniProt's and UniRef's fields; other words are not taken for organisms."""
    stated = ["a OX=9606 GN=x", "b TaxID=562 RepID=y", "c [Homo sapiens] 9606", "d OX=9606\x01e OX=7 OX=9606", "OX=x"]
    assert of_all(stated_taxids(stated)) == [(9606,), (562,), (), (7, 9606), ()]
    assert stated_taxids([]).n_assigned == 0


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 9)), max_size=30))
def test_any_map_assigns_what_a_dictionary_does(tmp_path_factory, lines):
    """Source: a dictionary of sets."""
    path = tmp_path_factory.mktemp("maps") / "map"
    path.write_text("".join(f"{name} {taxid}\n" for name, taxid in lines))
    headers = ["a", "b", "c", "a twice"]
    expected = [tuple(sorted({taxid for known, taxid in lines if known == header[0]})) for header in headers]
    assert of_all(mapped_taxids(headers, str(path))) == expected


@pytest.mark.parametrize("line", ["plain", "plain x", "plain 5;", "plain 5;x"])
def test_a_line_of_another_form_is_refused(tmp_path, line):
    (tmp_path / "map").write_text(f"a 1\n{line}\n")
    with pytest.raises(InputError, match="line 2: a line is an identifier and a taxonomy id"):
        mapped_taxids(HEADERS, str(tmp_path / "map"))
