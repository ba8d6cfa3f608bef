"""Entries: how lines are read, and which subjects an identifier denotes.

The expected subjects come from :func:`swsearch.sequences.headers.names_of`, applied to every header.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swsearch
from swsearch.errors import InputError
from swsearch.filters.entries import Entry, SubjectRange, fetch, find_subjects, read_entries
from swsearch.sequences.headers import names_of

NAMES = [
    "sp|P02232.2|LGB1_VICFA", "sp|P02232.3|LGB1_VICFA", "tr|P02232|X", "P02232", "NP_000537.3", "NP_000537", "chr1",
    "chr1.1", "a|b", "a", "b.1|a", "gi|9626243|ref|NC_001416.1|", "x.y.z", "..", "|", "P02232 twice",
]  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Subjects with these names in two segments, of which the second lost one."""
    folder = tmp_path_factory.mktemp("entries")
    for n, names in enumerate((NAMES[:9], [*NAMES[9:], "gone"])):
        (folder / f"{n}.fasta").write_text("".join(f">{name}\nMKV{'L' * place}\n" for place, name in enumerate(names)))
    swsearch.build_database(folder / "0.fasta", folder / "db")
    from swsearch.database.changes import add_to_database, remove_from_database

    add_to_database(folder / "db", folder / "1.fasta")
    remove_from_database(folder / "db", ["gone"])
    with swsearch.open_database(folder / "db") as opened:
        yield opened


def expected(name):
    """The subjects whose whole identifier is the name; if there are none, those that have it as another name."""
    words = [header.split()[0] for header in NAMES]
    whole = [index for index, word in enumerate(words) if word == name]
    return whole or [index for index, word in enumerate(words) if name in names_of(word)]


PARTS = sorted({part for name in NAMES for part in names_of(name.split()[0])} | {"gone", "LGB1", "P02232.1", "sp", "1"})


@settings(deadline=None, max_examples=60)
@given(st.sets(st.sampled_from(PARTS)))
def test_an_identifier_denotes_the_subjects_that_its_names_say(database, names):
    found = find_subjects(database, names)
    assert found == {name: expected(name) for name in names if expected(name)}


def lines(tmp_path, text):
    (tmp_path / "list.txt").write_text(text)
    return list(read_entries(str(tmp_path / "list.txt"), SubjectRange(0, 5), "plus"))


def test_lines_are_those_of_blastdbcmd(tmp_path):
    """By hand: identifier, range, strand; options hold where a line says nothing."""
    text = "# a list\nP1\n\nP2 10-200\nP3 minus\nP4\t3-  minus\nP5 minus 3-4\n"
    assert lines(tmp_path, text) == [
        Entry("P1", SubjectRange(0, 5)), Entry("P2", SubjectRange(9, 200)), Entry("P3", SubjectRange(0, 5), True),
        Entry("P4", SubjectRange(2, None), True), Entry("P5", SubjectRange(2, 4), True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "word", ["0-5", "5-4", "-5", "5", "1-2-3", "a-b", "Minus", "1-2 3-4", "1 -2", "plus minus", "٣-٤"]
)
def test_a_line_that_is_no_entry_is_named(tmp_path, word):
    with pytest.raises(InputError, match=r"list\.txt, line 2: "):
        lines(tmp_path, f"P1\nP2 {word}\n")


def test_entries_are_fetched_in_their_order_and_missing_ones_are_told(database):
    """By hand: chr1 is the 7th subject of its file and has 3 + 6 letters."""
    entries = [Entry("x.y.z"), Entry("nope"), Entry("chr1", SubjectRange(1, 4)), Entry("chr1", SubjectRange(9, None))]
    problems = []
    found = find_subjects(database, [entry.name for entry in entries])
    fetched = [(header, "".join(pieces)) for header, pieces in fetch(database, entries, found, problems)]
    assert fetched == [("x.y.z", "MKVLLL"), ("chr1:2-4", "KVL")]
    assert problems == ["no sequence 'nope'", "no position 10 in 'chr1' (9 letters)"]
    with pytest.raises(InputError, match="a protein has no minus strand"):
        list(fetch(database, [Entry("a", is_reversed=True)], {}, []))
