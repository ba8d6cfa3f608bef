"""BLAST databases, which makeblastdb makes and blastdbcmd reads: the imported database is that of the FASTA file.

The expected values are the database of the FASTA file itself and the identifiers that blastp prints.
"""

import os
import subprocess
from pathlib import Path

import pytest

from swsearch.database.blastdb import exported
from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences

pytestmark = pytest.mark.peer("makeblastdb")

PROTEINS = """>sp|P01013|OVAX_CHICK Gene X protein OS=Gallus gallus
QIKDLLVSSSTDLDTTLVLVNAIYFKGMWKTAFNAEDTREMPFHVTKQESKPVQMMCMNNSFNVATLPAE
>own_name of no database
MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW
>last
MKVLAAGIVGUXB
"""


def made(folder: Path, name: str, text: str, *options: str) -> str:
    """Make a BLAST database."""
    (folder / f"{name}.fa").write_text(text)
    command = ["makeblastdb", "-in", f"{name}.fa", "-out", name, "-dbtype", "prot", *options]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return str(folder / name)


@pytest.mark.parametrize("options", [(), ("-parse_seqids",), ("-parse_seqids", "-blastdb_version", "4")])
def test_the_import_is_the_database_of_the_fasta_file(tmp_path: Path, options: tuple[str, ...]) -> None:
    source, alphabet = exported(made(tmp_path, "p", PROTEINS, *options))
    imported = build_database(source, tmp_path / "imported.db", alphabet)
    indexed = build_database(tmp_path / "p.fa", tmp_path / "indexed.db")
    assert imported.catalogue.digest == indexed.catalogue.digest
    assert imported.catalogue.sources == ("p",)


def test_nucleotides_keep_their_ambiguity_codes_and_alphabet(tmp_path: Path) -> None:
    """The letters of a nucleotide database are packed four to a byte, with exceptions for N and R."""
    (tmp_path / "d.fa").write_text(">one\nACGTNNNNACGTRACGT\n>two\nGGGGGGG\n")
    command = ["makeblastdb", "-in", "d.fa", "-out", "d", "-dbtype", "nucl"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    source, alphabet = exported(str(tmp_path / "d"))
    assert alphabet is DNA
    assert [record.letters for record in read_sequences([source])] == ["ACGTNNNNACGTRACGT", "GGGGGGG"]


def test_taxonomy_ids_are_added_where_filters_find_them(tmp_path: Path) -> None:
    (tmp_path / "map").write_text("P01013 9031\nlast 1423\n")
    source, _ = exported(made(tmp_path, "t", PROTEINS, "-parse_seqids", "-taxid_map", str(tmp_path / "map")))
    assert [record.header for record in read_sequences([source])] == [
        "sp|P01013|OVAX_CHICK Gene X protein OS=Gallus gallus OX=9031",
        "own_name of no database",
        "last OX=1423",
    ]


def test_a_sequence_of_several_names_keeps_them_and_has_the_first_taxonomy_id(tmp_path: Path) -> None:
    """blastdbcmd writes the names of one sequence with ' >' between them, and one line of taxonomy ids for each."""
    (tmp_path / "map").write_text("one 9606\ntwo 10090\nother 562\n")
    text = ">other\nWYRHHEDKN\n>one first\x01two second\nMKVLAAGIV\n"
    source, _ = exported(made(tmp_path, "m", text, "-parse_seqids", "-taxid_map", str(tmp_path / "map")))
    headers = [record.header for record in read_sequences([source])]
    assert headers == ["other OX=562", "one first >lcl|two second OX=9606"]


def test_an_identifier_is_that_of_blastp(tmp_path: Path) -> None:
    name = made(tmp_path, "p", PROTEINS, "-parse_seqids")
    command = ["blastp", "-query", "p.fa", "-db", "p", "-outfmt", "6 qseqid sseqid", "-evalue", "1e-9"]
    rows = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    source, _ = exported(name)
    assert {row.split("\t")[1] for row in rows} <= {record.identifier for record in read_sequences([source])}
    assert rows


def test_two_databases_of_one_name_are_told_apart_by_the_alphabet(tmp_path: Path) -> None:
    name = made(tmp_path, "both", PROTEINS)
    (tmp_path / "both.fa").write_text(">d\nACGTACGT\n")
    subprocess.run(["makeblastdb", "-in", "both.fa", "-out", "both", "-dbtype", "nucl"], cwd=tmp_path, check=True)
    for alphabet, n_sequences in ((PROTEIN, 3), (DNA, 1)):
        source, found = exported(name, alphabet)
        assert (found, len(list(read_sequences([source])))) == (alphabet, n_sequences)


def test_a_failure_of_blastdbcmd_is_passed_on(tmp_path: Path) -> None:
    name = made(tmp_path, "p", PROTEINS)
    (tmp_path / "p.psq").unlink()
    with pytest.raises(DatabaseError, match=r"p: blastdbcmd failed \(exit code \d\): .*p\.psq"):
        exported(name)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ('case "$*" in *%f*) echo ">a"; echo MKV; kill -9 $$;; *info*) echo "2 sequences; 6 total residues";; esac',
         r"failed \(signal 9\): it printed no reason"),
        ('case "$*" in *%f*) echo ">a"; echo MKV;; *info*) echo "2 sequences; 6 total residues";; esac',
         "gave 1 of 2 sequences"),
        ("echo", "tells no number of sequences"),
    ],
)  # fmt: skip
def test_a_blastdbcmd_that_ends_early_gives_no_sequences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    """A script stands for the program, because the program cannot be killed at a certain place."""
    (tmp_path / "blastdbcmd").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "blastdbcmd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(DatabaseError, match=problem):
        exported("p")


def test_a_search_of_a_blast_database_tells_the_line_that_imports_it(tmp_path: Path) -> None:
    name = made(tmp_path, "p", PROTEINS)
    for path in (name, f"{name}.pin", f"{name}.psq"):
        with pytest.raises(DatabaseError, match=f"is a BLAST database; import it: `swsearch index --blastdb {name} -o"):
            open_database(path)
