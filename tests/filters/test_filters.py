"""Filters of subjects: which subjects lists, taxa and maps choose. The expected subjects are written by hand.

What filters leave of a list of hits is tested in tests/search/test_complete_lists.py.
"""

import gzip
import math

import numpy as np
import pytest

import swsearch
from swsearch.database.changes import remove_from_database
from swsearch.errors import InputError
from swsearch.hits.result import QueryResult
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import PROTEIN
from tests.support import indexed, random_protein

N_SUBJECTS = 300
TAXIDS = (9606, 10090, 562, 83333)


def header(number: int) -> str:
    """Return a header in UniProt's format; every seventh has no OX=, every fifth a versioned accession."""
    accession = f"Q{number:05}" + (f".{number % 3 + 1}" if number % 5 == 0 else "")
    taxid = "" if number % 7 == 0 else f" OX={TAXIDS[number % 4]}"
    return f"sp|{accession}|NAME{number}_{'HUMAN' if number % 2 else 'MOUSE'} Protein OS=Some thing{taxid} SV=1"


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """A database of random proteins, and a query."""
    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("filters")
    lengths = rng.integers(60, 300, N_SUBJECTS)
    records = [(header(number), PROTEIN.decode(random_protein(rng, int(n)))) for number, n in enumerate(lengths)]
    database = indexed(folder / "family.db", records)
    query = PROTEIN.decode(random_protein(rng, 120))
    return database, swsearch.sequence(query, "protein", header="query")


def search(family, **options) -> QueryResult:
    database, query = family
    with swsearch.open_searcher(database, SearchOptions(**options), engine="cpu", threads=2) as searcher:
        (result,) = searcher.search([query])
    return result


def chosen(family, **options) -> tuple[list[int], tuple[str, ...]]:
    """Return the numbers of the subjects that a search would score, and its notes about them."""
    with swsearch.open_searcher(family[0], SearchOptions(**options), engine="cpu") as searcher:
        numbers = sorted(int(i) for part in searcher.search_subjects.partitions for i in part.subject_index)
        return numbers, searcher.notes


def test_lists_name_subjects_by_identifier_accession_name_and_accession_without_version(family, tmp_path):
    """By hand: 5 and 10 have versions 3 and 2; an identifier with a wrong or superfluous version matches none."""
    wanted = tmp_path / "wanted.txt"
    lines = ["sp|Q00001|NAME1_HUMAN trailing words", "Q00002", "NAME3_HUMAN", "Q00005", "Q00010.2", "", "# a comment"]
    wanted.write_text("\n".join([*lines, "Q00015.2", "Q00004.1", "sp", "q00006"]) + "\n")
    numbers, notes = chosen(family, include=str(wanted))
    assert numbers == [1, 2, 3, 5, 10]
    assert notes == (f"--include {wanted}: 4 of 9 identifiers are not in the database, 'Q00004.1' for one",)
    numbers, notes = chosen(family, exclude=str(wanted))
    assert numbers == sorted(set(range(N_SUBJECTS)) - {1, 2, 3, 5, 10})
    assert notes[0].startswith("--exclude")


def test_a_compressed_list_is_read(family, tmp_path):
    with gzip.open(tmp_path / "wanted.gz", "wt") as file:
        file.write("Q00007\n")
    assert chosen(family, include=str(tmp_path / "wanted.gz")) == ([7], ())
    whole = (tmp_path / "wanted.gz").read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[:-12])
    with pytest.raises(InputError, match=r"cut\.gz: the archive is damaged or cut short"):
        chosen(family, include=str(tmp_path / "cut.gz"))


NODES = """1\t|\t1\t|\tno rank\t|
2\t|\t1\t|\tsuperkingdom\t|
562\t|\t2\t|\tspecies\t|
83333\t|\t562\t|\tstrain\t|
40674\t|\t1\t|\tclass\t|
9606\t|\t40674\t|\tspecies\t|
10090\t|\t40674\t|\tspecies\t|
"""


def test_descendants_come_from_the_tree_and_not_without_it(family, tmp_path):
    """By hand: 83333 is a strain of 562; 9606 and 10090 are mammals."""
    nodes = tmp_path / "nodes.dmp"
    nodes.write_text(NODES)
    by_taxid = {taxid: [n for n in range(N_SUBJECTS) if n % 7 and TAXIDS[n % 4] == taxid] for taxid in TAXIDS}
    assert chosen(family, taxid="562")[0] == by_taxid[562]
    assert chosen(family, taxid="562", taxonomy=str(nodes))[0] == sorted(by_taxid[562] + by_taxid[83333])
    assert chosen(family, taxid="40674", taxonomy=str(nodes))[0] == sorted(by_taxid[9606] + by_taxid[10090])
    assert chosen(family, taxid="1", taxonomy=str(nodes))[0] == [n for n in range(N_SUBJECTS) if n % 7]
    with pytest.raises(InputError, match="taxid=4 is not in"):
        chosen(family, taxid="4", taxonomy=str(nodes))
    with pytest.raises(InputError, match=r"passes taxid='40674'; .*OX=.*taxid_map"):
        chosen(family, taxid="40674")


@pytest.mark.parametrize(
    "text",
    [
        "Q00001 9606\nsp|Q00003|NAME3_HUMAN\t9606\nQ00005 9606\nQ00002 7\n",
        "accession\taccession.version\ttaxid\tgi\nQ00001\tQ00001\t9606\t0\nQ00003\tQ00003.1\t9606\t0\n"
        "Q00005\tQ00005.3\t9606\t0\nQ00002\tQ00002.1\t7\t0\n",
        "accession.version\ttaxid\nQ00001\t9606\nQ00003\t9606\nQ00005.3\t9606\n",
    ],
)
def test_a_map_replaces_what_headers_state(family, tmp_path, text):
    """By hand: the three forms of a map; the taxon 9606 in the headers is ignored."""
    (tmp_path / "map.txt").write_text(text)
    assert chosen(family, taxid="9606", taxid_map=str(tmp_path / "map.txt"))[0] == [1, 3, 5]


@pytest.mark.parametrize(
    ("options", "content", "words"),
    [
        ({"include": "FILE"}, "\n# none\n", "names no identifier"),
        ({"include": "nosuch"}, "", "include nosuch: No such file"),
        ({"include": "FILE"}, "nobody\n", "no subject of .* passes include"),
        ({"taxid": "human"}, "", "taxonomy ids separated by commas"),
        ({"taxid": "9606", "taxid_map": "FILE"}, "Q00001\n", "line 1: a line is an identifier"),
        ({"taxid": "9606", "taxonomy": "FILE"}, "1\t|\t1\t|\nroot\n", "line 2: a node's line"),
        ({"min_length": 9000}, "", "passes min_length=9000"),
        ({"min_bits": 3.0, "gap_open": 4, "gap_extend": 1}, "", "there are no bit scores"),
    ],
)
def test_filters_that_cannot_be_are_one_clear_line(family, tmp_path, options, content, words):
    (tmp_path / "file").write_text(content)
    given = {name: str(tmp_path / "file") if value == "FILE" else value for name, value in options.items()}
    with pytest.raises(InputError, match=words) as error:
        chosen(family, **given)
    assert "\n" not in str(error.value)


def test_removed_subjects_do_not_shift_the_choice(family, tmp_path):
    """Source: a database built without the removed subjects."""
    database, _ = family
    records = [(record.header, record.letters) for record in swsearch.open_database(database)]
    changed, fresh = indexed(tmp_path / "all.db", records), indexed(tmp_path / "rest.db", records[3:])
    remove_from_database(changed, [header.split()[0] for header, _ in records[:3]])
    options = {"taxid": "9606", "top": 20, "evalue": math.inf}
    found = [search((path, family[1]), **options).hits for path in (changed, fresh)]
    assert len(found[0]) == 20
    assert found[0] == found[1]
