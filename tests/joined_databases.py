"""Databases that are searched together, and the one database of all their sequences with which they are compared."""

from pathlib import Path

from swsearch.database.builder import build_database
from swsearch.database.export import export
from swsearch.database.opening import open_database
from tests.sliced_databases import sliced_databases
from tests.support import indexed

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"
MEMBERS = {
    "proteins": ["dealt_proteins", "few_proteins", "proteins"],
    "bases": ["bases", "few_bases", "dealt_bases"],
}
"""The databases of each alphabet: three slices of one segment with removed subjects, a segment, and three segments with
removed subjects. Most sequences are in two of them, so that there are ties at all ranks."""


def joined_databases(folder: Path) -> Path:
    """Databases of :data:`MEMBERS`, and :func:`together` of each alphabet."""
    sliced_databases(folder)
    indexed(folder / "few_proteins.db", [("few1 the first", LETTERS), ("few2", f"{LETTERS[5:]}WYWY")])
    indexed(folder / "few_bases.db", [("few1", "GGGCGGCGACCTCGCGGGTTTTCGCTATTTATGAAAATTTTCCGG"), ("few2", "AC")])
    for alphabet, names in MEMBERS.items():
        with open(folder / f"all_{alphabet}.fasta", "w", encoding="utf-8", errors="surrogateescape") as file:
            for path in paths(folder, alphabet):
                with open_database(path) as database:
                    export(database, file)
        (folder / "together").mkdir(exist_ok=True)
        assert len(names) == 3
        build_database(folder / f"all_{alphabet}.fasta", together(folder, alphabet))
    return folder


def paths(folder: Path, alphabet: str) -> list[Path]:
    """The databases that are searched together."""
    return [folder / f"{name}.db" for name in MEMBERS[alphabet]]


def together(folder: Path, alphabet: str) -> Path:
    """The database of their concatenated FASTA files; its name is that which reports print for all of them."""
    return folder / "together" / " ".join(f"{name}.db" for name in MEMBERS[alphabet])
