"""Lists, taxonomies and CIGARs of any length and with any digits; expected values are written by hand."""

import re

import pytest

from swsearch.errors import InputError
from swsearch.filters.subject_filters import identifier_pattern
from swsearch.hits.cigar import gapped, parse
from swsearch.search.options import SearchOptions
from swsearch.sequences.headers import header_organism, header_taxid, names_of
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.taxon_filter import mapped_members, parse_taxids


def test_a_word_of_a_megabyte_is_an_identifier_like_others():
    """A regular expression with backtracking needed time quadratic in the length."""
    word = "A" * 1_000_000
    assert list(names_of(word)) == [word]
    assert list(names_of(word + "1.2"))[1] == word + "1"
    assert header_organism(f"x OS=a{' ' * 200_000}b") == f"a{' ' * 200_000}b"


def test_a_pattern_takes_linear_time():
    """Python's re would take 2^100 steps."""
    assert not identifier_pattern("(a+)+$b|(a|a)*c")("a" * 100 + "!")
    assert identifier_pattern("(a|aa)+$")("b" + "a" * 100_000)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        (r"(a)\1", r"does not support \1 ("),
        ("(?=a)b", "does not support (?="),
        ("(?<!a)b", "does not support (?<"),
        ("a++", "does not support ++"),
        ("(?>a)", "does not support (?>"),
        (r"a\Z", r"does not support \Z"),
        ("a{2000}", "does not support {2000}"),
        ("a{,3}", "{,3} is not supported; write {0,n}"),
        ("[[:alpha:]]", "[:alpha:] is not supported"),
        (r"\pL", "bad escape"),
        ("(a", "unterminated subpattern"),
        ("\udc80", "is not a regular expression"),
        ("((((a{50}){50}){50}){50})", "RE2"),
    ],
)
def test_a_pattern_that_is_not_supported_is_refused_by_name(pattern, named):
    with pytest.raises(InputError, match=r"^id_pattern=") as caught:
        SearchOptions(id_pattern=pattern)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    ["^sp", "_HUMAN$", "(?i)human", r"\bP\d+\b", "P[0-9]{2,3}?|x", r"\Asp\|", "(?P<n>L)(?:GB)+", ".", "é", r"\x41"],
)
def test_a_usual_pattern_means_what_it_means_in_python(pattern):
    """Expected values: re.search, for identifiers of ASCII and others."""
    matches = identifier_pattern(pattern)
    for identifier in ("sp|P02232|LGB1_HUMAN", "tr|A|x_human", "lgbGBGB", "é\udc80", "", "\udc80"):
        assert matches(identifier) == (re.search(pattern, identifier) is not None), identifier


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
