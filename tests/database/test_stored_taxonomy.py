"""The taxonomy that a database stores: it stays with its sequences through every change, and damage is found.

The expected ids are those of a dictionary that the tests keep beside the sequences.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from swsearch.database.builder import build_database
from swsearch.database.catalogue import read_catalogue
from swsearch.database.changes import add_to_database, compact_database, remove_from_database, set_taxonomy
from swsearch.database.format import CATALOGUE
from swsearch.database.opening import open_database
from swsearch.database.reader import DatabasePart
from swsearch.database.stored_taxonomy import taxonomy_of_subjects
from swsearch.errors import DatabaseError, InputError
from swsearch.filters.subject_filters import select_subjects
from swsearch.hits.limits import SubjectFilters
from tests.taxonomy.dumps import with_changes

ORGANISMS = {
    "P0": (9606,), "P1": (10090,), "P2": (), "P3": (9606, 10090), "P4": (562,), "P5": (4000010,), "P6": (77,),
    "P7": (9606,), "P8": (6239,), "P9": (4000000,),
}  # fmt: skip
"""The ids that the map of the tests assigns; 4000010 was merged into 9606, 4000000 was deleted, 77 is unknown."""
LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"


def fasta(path: Path, names: list[str], note: str = "") -> Path:
    path.write_text("".join(f">{name} protein{note}\n{LETTERS[: 10 + int(name[1:])]}\n" for name in names))
    return path


@pytest.fixture
def inputs(tmp_path):
    """A taxdump, a map, and a FASTA file of ten sequences."""
    with_changes(tmp_path / "dump")
    lines = [f"{name} {';'.join(map(str, taxids))}\n" for name, taxids in ORGANISMS.items() if taxids]
    (tmp_path / "map").write_text("".join(lines))
    fasta(tmp_path / "ten.fa", list(ORGANISMS))
    return tmp_path


def stored(path):
    """Return what a database has stored, by identifier."""
    with open_database(path) as database:
        assert database.taxonomy is not None
        return {database.record(i).identifier: database.taxonomy.taxids(i) for i in range(database.n_subjects)}


def current(taxids):
    """Return ids with merged ones replaced, by hand."""
    return tuple(sorted({9606 if taxid == 4000010 else taxid for taxid in taxids}))


EXPECTED = {name: current(taxids) for name, taxids in ORGANISMS.items()}


@pytest.mark.parametrize("slices", [1, 3])
def test_ids_stay_with_their_sequences_through_all_changes(inputs, problems_of, slices):
    database = inputs / "db"
    built = build_database(
        inputs / "ten.fa", database, slices=slices, taxonomy=inputs / "dump", taxid_map=inputs / "map"
    )
    assert stored(database) == EXPECTED
    assert built.notes == (
        "1 taxonomy id was merged into others, which are used: 4000010 into 9606",
        "warning: 1 taxonomy id was deleted from the taxonomy: 4000000",
        "warning: 1 taxonomy id is not in the taxonomy: 77; a newer taxdump may have more",
    )
    remove_from_database(database, ["P1", "P4"])
    left = {name: taxids for name, taxids in EXPECTED.items() if name not in ("P1", "P4")}
    assert stored(database) == left
    add_to_database(database, fasta(inputs / "more.fa", ["P11", "P12"], " OX=6239"))
    assert stored(database) == {**left, "P11": None, "P12": None}
    remove_from_database(database, ["P0", "P11"])
    del left["P0"]
    compact_database(database)
    assert stored(database) == {**left, "P12": (6239,)}
    assert problems_of(database) == []
    assert len(list(database.glob("taxonomy-*"))) == 1


def test_a_taxonomy_changes_neither_digest_nor_slices(inputs, problems_of):
    """Source: the database before."""
    plain = build_database(inputs / "ten.fa", inputs / "db", slices=2).catalogue
    changed = set_taxonomy(inputs / "db", inputs / "dump", inputs / "map").catalogue
    assert (changed.digest, changed.layout, changed.segments) == (plain.digest, plain.layout, plain.segments)
    assert (changed.generation, changed.taxonomy.n_assigned) == (2, 9)
    with open_database(inputs / "db") as database:
        tree = database.taxonomy.tree
        names = {tree.name(one) for one in range(len(tree))}
    assert {"root", "Homo sapiens", "Mammalia", "Escherichia coli", "Caenorhabditis"} <= names
    assert not {"Pan", "Arabidopsis thaliana"} & names  # the database has no sequence of these
    again = set_taxonomy(inputs / "db", inputs / "dump").catalogue
    assert again.taxonomy.n_assigned == 0
    assert problems_of(inputs / "db") == []
    with (
        open_database(inputs / "db", parts=[DatabasePart(segments=(1,))]) as part,
        open_database(inputs / "db") as whole,
    ):
        assert [part.taxonomy.taxids(int(i)) for i in part.subject_index] == [
            whole.taxonomy.taxids(int(i)) for i in part.subject_index
        ]


def test_an_open_database_keeps_the_taxonomy_that_it_opened(inputs):
    build_database(inputs / "ten.fa", inputs / "db", taxonomy=inputs / "dump", taxid_map=inputs / "map")
    with open_database(inputs / "db") as opened:
        set_taxonomy(inputs / "db", inputs / "dump")
        assert opened.taxonomy.taxids(0) == (9606,)
    assert stored(inputs / "db")["P0"] == ()


@pytest.mark.parametrize("slices", [1, 2])
def test_a_filter_by_taxon_uses_what_is_stored(inputs, slices):
    """Source: the dictionary of ids, and descendants by hand. What was added has the ids of its headers."""
    build_database(inputs / "ten.fa", inputs / "db", slices=slices, taxonomy=inputs / "dump", taxid_map=inputs / "map")
    add_to_database(inputs / "db", fasta(inputs / "more.fa", ["P11"], " OX=10090"))
    remove_from_database(inputs / "db", ["P7"])

    def chosen(taxid, **others):
        with open_database(inputs / "db") as database:
            selection = select_subjects(database, SubjectFilters(taxid=taxid, **others))
            return [database.record(int(i)).identifier for i in selection.subject_index], selection.notes

    assert chosen("9606") == (["P0", "P3", "P5"], ())
    assert chosen("40674")[0] == ["P0", "P1", "P3", "P5", "P11"]
    assert chosen("4000011") == (["P0", "P3", "P5"], ("--taxid 4000011 was merged into 9606, which is used",))
    assert chosen("2,6239")[0] == ["P4", "P8"]
    assert chosen("77")[0] == ["P6"]
    with pytest.raises(InputError, match=r"no subject of .* passes taxid='3702'"):
        chosen("3702")
    (inputs / "other").write_text("P2 562\n")
    assert chosen("562", taxid_map=str(inputs / "other"))[0] == ["P2"]
    with pytest.raises(InputError, match="taxid=4000000 was deleted from the taxonomy"):
        chosen("4000000", taxonomy=str(inputs / "dump"))


def test_reports_take_ids_from_the_map_then_the_database_then_headers(inputs, monkeypatch):
    """By hand: the order in which the sources count."""
    build_database(fasta(inputs / "own.fa", ["P0"], " OX=562"), inputs / "plain.db")
    build_database(inputs / "own.fa", inputs / "db", taxonomy=inputs / "dump", taxid_map=inputs / "map")

    def names(database, **given):
        with open_database(inputs / database) as opened:
            known = taxonomy_of_subjects(opened, **given)
            return known and [known.tree.name(one) for one in known.of(0, opened.header(0)).taxa]

    dump = str(inputs / "dump")
    assert names("db") == ["Homo sapiens"]
    assert names("plain.db") is None
    assert names("plain.db", taxonomy=dump) == ["Escherichia coli"]
    assert names("plain.db", taxonomy=dump, taxid_map=str(inputs / "map")) == ["Homo sapiens"]
    with pytest.raises(InputError, match="a map needs a taxonomy; taxonomy or SWSEARCH_TAXONOMY names one"):
        names("plain.db", needed_by="a map")
    monkeypatch.setenv("SWSEARCH_TAXONOMY", dump)
    assert names("plain.db") is None  # headers suffice, so that no taxdump is read unasked
    assert names("plain.db", needed_by="this") == ["Escherichia coli"]
    monkeypatch.setenv("SWSEARCH_TAXONOMY", str(inputs / "nosuch"))
    assert names("db", needed_by="this") == ["Homo sapiens"]
    with pytest.raises(InputError, match=r"SWSEARCH_TAXONOMY .*nosuch: No such file"):
        names("plain.db", needed_by="this")
    (inputs / "dump" / "names.dmp").unlink()
    with pytest.raises(InputError, match=r"needs the names of taxa, .* names\.dmp"):
        names("plain.db", taxonomy=dump, needed_by="this")


def test_what_cannot_be_read_leaves_no_database(inputs):
    cases = [
        ({"taxid_map": inputs / "map"}, "taxid_map=.*: give the taxdump"),
        ({"taxonomy": inputs / "nosuch"}, "nosuch: No such file"),
        ({"taxonomy": inputs / "dump", "taxid_map": inputs / "ten.fa"}, r"ten\.fa, line 1: a line is an identifier"),
    ]
    for given, words in cases:
        with pytest.raises(InputError, match=words):
            build_database(inputs / "ten.fa", inputs / "db", **given)
        assert not list(inputs.glob("*db*"))
    build_database(inputs / "ten.fa", inputs / "db")
    before = sorted(path.name for path in (inputs / "db").iterdir())
    with pytest.raises(InputError, match="line 1: a line is an identifier"):
        set_taxonomy(inputs / "db", inputs / "dump", inputs / "ten.fa")
    assert sorted({path.name for path in (inputs / "db").iterdir()} - {"writer.lock"}) == before


def test_every_changed_byte_of_a_taxonomy_is_found(inputs, problems_of):
    build_database(inputs / "ten.fa", inputs / "db", taxonomy=inputs / "dump", taxid_map=inputs / "map")
    for path in sorted((inputs / "db" / "taxonomy-000001").iterdir()):
        sound = path.read_bytes()
        if sound:
            path.write_bytes(bytes([sound[0] ^ 255]) + sound[1:])
            (problem,) = problems_of(inputs / "db")
            assert path.name in problem
            path.write_bytes(sound)
    assert problems_of(inputs / "db") == []


def test_a_taxonomy_of_a_faulty_writer_is_refused(inputs, tmp_path):
    """The arrays have the sizes of the catalogue and contradict each other."""
    build_database(inputs / "ten.fa", inputs / "db", taxonomy=inputs / "dump", taxid_map=inputs / "map")
    for name, change in (("parents", lambda a: a + 1), ("set_of", lambda a: a + 99), ("set_ends", lambda a: a[::-1])):
        copy = tmp_path / f"{name}.db"
        shutil.copytree(inputs / "db", copy)
        path = copy / "taxonomy-000001" / f"{name}.bin"
        path.write_bytes(np.ascontiguousarray(change(np.fromfile(path, "<u4"))).tobytes())
        with open_database(copy) as database, pytest.raises(DatabaseError, match="is damaged"):
            assert database.taxonomy


@pytest.mark.parametrize(
    ("field", "value"), [("name", "../x"), ("n_taxa", 0), ("n_rows", "9"), ("n_assigned", 11), ("files", {})]
)
def test_a_catalogue_with_a_wrong_taxonomy_is_refused_by_field(inputs, field, value):
    from swsearch.database.catalogue import _checksum

    build_database(inputs / "ten.fa", inputs / "db", taxonomy=inputs / "dump", taxid_map=inputs / "map")
    fields = json.loads((inputs / "db" / CATALOGUE).read_text())
    fields["taxonomy"][field] = value
    del fields["checksum"]
    with pytest.raises(ValueError, match="taxonomy, "):
        read_catalogue(json.dumps({**fields, "checksum": _checksum(fields)}))
