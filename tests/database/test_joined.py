"""Several databases as one: subjects, places and digests, and what is refused.

Expected values: the database that was indexed from the concatenated FASTA files, or by hand.
"""

import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch.database.builder import build_database
from swsearch.database.catalogue import joined_catalogue
from swsearch.database.changes import add_to_database, compact_database, remove_from_database
from swsearch.database.opening import load_catalogue, open_database, opened
from swsearch.errors import DatabaseError, InputError
from swsearch.hits.result import DatabaseInfo
from tests.joined_databases import LETTERS, joined_databases, paths, together
from tests.support import indexed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return joined_databases(tmp_path_factory.mktemp("joined"))


def made(folder: Path, name: str, *letters: str) -> Path:
    """A database of sequences that are named by its name and their numbers."""
    return indexed(folder / f"{name}.db", [(f"{name}{number}", text) for number, text in enumerate(letters)])


@pytest.mark.parametrize("alphabet", ["proteins", "bases"])
def test_the_subjects_are_those_of_the_concatenation(folder: Path, alphabet: str) -> None:
    """Every subject by every way of reading it; members have slices, several segments, and removed subjects."""
    with swsearch.open_database(paths(folder, alphabet)) as joined:
        whole = swsearch.open_database(together(folder, alphabet))
        assert (joined.n_subjects, joined.n_residues) == (whole.n_subjects, whole.n_residues)
        assert joined.subject_index.tolist() == list(range(whole.n_subjects))
        every = joined.subject_index
        assert np.array_equal(joined.lengths(every), whole.lengths(every))
        assert np.array_equal(joined.distinct_lengths(), whole.distinct_lengths())
        for one, other in zip(joined, whole, strict=True):
            assert (one.header, one.letters) == (other.header, other.letters)
        assert list(joined.headers()) == list(whole.headers())
        for partition in joined.partitions(20_000):
            for row, index in enumerate(partition.subject_index.tolist()):
                assert np.array_equal(partition.codes(row), whole.codes(index))
        last = whole.n_subjects - 1
        assert joined.letters(last, 1, 9) == whole.letters(last, 1, 9)
        with pytest.raises(IndexError):
            joined.header(last + 1)
        whole.close()


def test_a_part_of_joined_databases_has_their_indices(folder: Path) -> None:
    """Segments 1, 3 and 5: a slice of the first member, the second, and the second segment of the third."""
    with swsearch.open_database(paths(folder, "proteins")) as joined:
        assert len(joined.catalogue.segments) == 7
        assert len({segment.name for segment in joined.catalogue.segments}) == 7
        part = joined.part([1, 3, 5])
        numbers = part.subject_index.tolist()
        expected = sorted(
            index
            for number in (1, 3, 5)
            for one in joined.part([number]).partitions()
            for index in one.subject_index.tolist()
        )
        assert numbers == expected
        assert 0 < len(numbers) < joined.n_subjects == part.n_subjects
        assert [part.header(number) for number in numbers] == [joined.header(number) for number in numbers]
        with pytest.raises(IndexError, match="none of the segments"):
            part.header(min(set(range(joined.n_subjects)) - set(numbers)))
        again = pickle.loads(pickle.dumps(part))
        assert again.subject_index.tolist() == numbers
        assert again.letters(numbers[-1]) == joined.letters(numbers[-1])
        again.close()
        whole = pickle.loads(pickle.dumps(joined))
        assert (whole.digest, whole.locations) == (joined.digest, joined.locations)
        assert whole.letters(whole.n_subjects - 1) == joined.letters(joined.n_subjects - 1)
        whole.close()


def test_joined_databases_say_where_and_what_they_are(tmp_path: Path) -> None:
    """By hand: the digests with + between them, the paths as words of a command line, generations and sizes added."""
    (tmp_path / "my data").mkdir()
    one, other = made(tmp_path, "one", LETTERS), made(tmp_path / "my data", "two", LETTERS[3:], LETTERS[7:])
    add_to_database(other, [tmp_path / "one.fasta"])
    with opened([one, other]) as joined:
        digests = [load_catalogue(path).digest for path in (one, other)]
        assert joined.digest == "+".join(digests)
        assert joined.name == f"{one} and {other}"
        assert joined.locations == (str(one), str(other))
        assert joined.catalogue.generation == 3
        info = DatabaseInfo(joined.locations, joined.digests, 3, "protein", joined.n_subjects, joined.n_residues)
        assert info.path == f"{one} '{other}'"
        assert (info.digests, info.name) == (tuple(digests), "one.db two.db")
        assert [member.catalogue.n_subjects for member in joined.members] == [1, 3]
    three = [one, other, made(tmp_path, "three", LETTERS[9:])]
    with opened(three) as joined:
        assert joined.name == f"{one}, {other} and {three[2]}"
    with opened([one]) as alone:
        assert (alone.digest, alone.name, alone.locations) == (digests[0], str(one), (str(one),))
        assert [member.name for member in alone.members] == [str(one)]


def test_joined_databases_may_be_joined_with_others(tmp_path: Path) -> None:
    """The members are those of all of them, in order; a report finds each by its own path."""
    one, two, three = (made(tmp_path, name, LETTERS[n:]) for n, name in enumerate(("one", "two", "three")))
    with opened([one, two]) as first, opened([first, three]) as nested, opened([one, two, three]) as flat:
        assert (nested.locations, nested.digest, nested.name) == (flat.locations, flat.digest, flat.name)
        assert [header for _, header in nested.headers()] == ["one0", "two0", "three0"]
        assert pickle.loads(pickle.dumps(nested)).digest == flat.digest
        with pytest.raises(InputError, match=re.escape(f"{two} is named twice")), opened([first, two]):
            pass
        results = swsearch.search_database([("q", LETTERS)], [first, three])
        swsearch.write_report((results.run, list(results)), tmp_path / "hits.fasta", "fasta")
    assert (tmp_path / "hits.fasta").read_text().count(">") == 3
    with pytest.raises(InputError, match="at least one path is needed"):
        swsearch.write_report((results.run, []), tmp_path / "none.fasta", "fasta", database=[])


def test_searched_databases_are_known_after_compactions_and_in_other_places(tmp_path: Path) -> None:
    """A compaction changes no subject, an addition does; the databases are named in the order of the search."""
    one, other = made(tmp_path, "one", LETTERS, LETTERS[9:]), made(tmp_path, "two", LETTERS[3:], LETTERS[7:])
    remove_from_database(one, ["one0"])
    with opened([one, other]) as joined:
        searched = DatabaseInfo(joined.locations, joined.digests, 3, "protein", joined.n_subjects, joined.n_residues)
    compact_database(one)
    assert load_catalogue(one).digest not in searched.digests
    with open_database(searched.paths, searched=searched.digests) as again:
        assert again.has_content(searched.digests)
        assert again.header(0) == "one1"
    moved = other.rename(tmp_path / "moved.db")
    with pytest.raises(DatabaseError, match=r"two\.db does not exist"):
        open_database(searched.paths, searched=searched.digests)
    open_database([one, moved], searched=searched.digests).close()
    with pytest.raises(DatabaseError, match=r"moved\.db has other content than the database that was searched"):
        open_database([moved, one], searched=searched.digests)
    with pytest.raises(DatabaseError, match="the search was of 2 databases"):
        open_database(one, searched=searched.digests)
    with opened(moved) as alone, opened([one, moved]) as joined:
        assert not alone.has_content(searched.digests)
        assert not joined.has_content([alone.digest])
        with pytest.raises(DatabaseError, match=r"the search was of 1 database$"):
            joined.check_searched([alone.digest])
    add_to_database(moved, [tmp_path / "one.fasta"])
    with pytest.raises(DatabaseError, match=r"moved\.db has other content"):
        open_database([one, moved], searched=searched.digests)


def test_what_cannot_be_joined_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    one = made(tmp_path, "one", LETTERS)
    copy = made(tmp_path, "copy", LETTERS)
    (tmp_path / "copy.fasta").write_text((tmp_path / "one.fasta").read_text())
    build_database(tmp_path / "copy.fasta", copy, overwrite=True)
    bases = folder / "bases.db"
    before = made(tmp_path, "before", LETTERS, LETTERS[4:])
    remove_from_database(before, ["before0"])
    after = shutil.copytree(before, tmp_path / "after.db")
    compact_database(after)
    assert load_catalogue(before).digest != load_catalogue(after).digest
    for given, message in (
        ([before, one, after], f"{after} has the content of {before}"),
        ([after, before], f"{before} has the content of {after}"),
        ([one, bases], f"{bases} is dna, {one} is protein; databases of one alphabet are searched together"),
        ([one, one], f"{one} is named twice; its subjects would count twice"),
        ([one, copy], f"{copy} has the content of {one}"),
    ):
        with pytest.raises(InputError) as refused, opened(given):
            pass
        assert str(refused.value).startswith(message)
        with pytest.raises(InputError, match=re.escape(message)):
            swsearch.open_database(given)
    with pytest.raises(InputError, match="no database is named"), opened([]):
        pass
    with pytest.raises(InputError, match=r"^path=\[\]: at least one path is needed"):
        swsearch.open_database([])
    missing = tmp_path / "missing.db"
    with pytest.raises(DatabaseError, match="does not exist"):
        swsearch.open_database([one, missing])


def test_more_subjects_than_can_be_numbered_are_refused(folder: Path) -> None:
    """Catalogues of 2^31 subjects each, which no disk here holds; two of them are one too many."""
    found = load_catalogue(folder / "few_proteins.db")
    (segment,) = found.segments
    half = replace(found, segments=(replace(segment, n_subjects=2**31),))
    less = replace(found, segments=(replace(segment, n_subjects=2**31 - 1),))
    assert joined_catalogue([half, less]).n_subjects == 2**32 - 1
    with pytest.raises(InputError, match="4,294,967,296 subjects together, of which one search takes 4,294,967,295"):
        joined_catalogue([half, half])
