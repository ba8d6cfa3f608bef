"""Lists, taxonomies and CIGARs of any length and with any digits; expected values are written by hand."""

import pytest

from swsearch.errors import InputError
from swsearch.filters.taxonomy import mapped_members, parse_taxids
from swsearch.hits.cigar import gapped, parse
from swsearch.sequences.identifiers import names_of
from swsearch.sequences.organism import header_organism, header_taxid
from swsearch.taxonomy.dump import read_dump


def test_a_word_of_a_megabyte_is_an_identifier_like_others():
    """A regular expression with backtracking needed time quadratic in the length."""
    word = "A" * 1_000_000
    assert list(names_of(word)) == [word]
    assert list(names_of(word + "1.2"))[1] == word + "1"
    assert header_organism(f"x OS=a{' ' * 200_000}b") == f"a{' ' * 200_000}b"


@pytest.mark.parametrize("text", ["9" * 5000, "1_0", "\u0661", "-1", ""])
def test_what_is_no_taxonomy_id_is_refused(text, tmp_path):
    """Python's int accepts more texts than NCBI writes, and raises beyond 4,300 digits."""
    with pytest.raises(InputError, match="taxid=") as caught:
        parse_taxids(text)
    assert len(str(caught.value)) < 300
    tree, mapped = tmp_path / "nodes.dmp", tmp_path / "map"
    tree.write_text(f"{text}|1|\n")
    mapped.write_text(f"P1 {text}x\n")
    if text != "-1":
        with pytest.raises(InputError, match=r"nodes\.dmp, line 1"):
            read_dump(tree)
    with pytest.raises(InputError, match="map, line 1"):
        mapped_members(frozenset({1}), str(mapped))
    assert header_taxid(f"x OX={text}") is None


def test_counts_of_any_length_are_refused():
    with pytest.raises(InputError, match="no operation at character 1"):
        parse("9" * 5000 + "=")


@pytest.mark.parametrize("cigar", ["99999999999999999I", "99999999999999999D", "1=" + "9999999999D1=" * 50])
def test_a_gap_that_no_sequence_has_takes_no_memory(cigar):
    """A stored CIGAR may have any content; the row would have had the length that it states."""
    with pytest.raises(InputError, match=r"CIGAR .* covers"):
        gapped("A", "A", cigar)
