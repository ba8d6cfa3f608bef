"""Maskers mask the same residues as the programs of their authors, and the letters show what was masked.

The expected masks come from pytantan, dustmasker and segmasker, or are written by hand.
"""

import re
import subprocess
import sys

import numpy as np
import pytantan
import pytest

from swsearch.errors import InputError
from swsearch.query.masking import Masking, parse_maskers
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from tests.cli.conftest import DATA
from tests.support import random_dna

INTERVAL = re.compile(r"^(\d+) - (\d+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def proteins():
    """The first 300 real proteins of data/."""
    return [record for _, record in zip(range(300), read_sequences([DATA / "proteins.fasta.gz"]), strict=False)]


def lower_case(record, names):
    return Masking(names, "soft", record.alphabet).masked(record).letters


def test_tantan_masks_what_tantan_masks(proteins):
    """Source: pytantan, an independent binding of a separate copy of tantan."""
    expected = [pytantan.mask_repeats(record.letters.upper(), protein=True) for record in proteins]
    assert [lower_case(record, "tantan") for record in proteins] == expected
    assert sum(any(letter.islower() for letter in letters) for letters in expected) > 50


def test_tantan_masks_dna_as_dna():
    """Source: pytantan, on random bases with a repeat of 13 bases."""
    rng = np.random.default_rng(5)
    letters = DNA.decode(random_dna(rng, 300)) + "ACCGTATTGCATG" * 9 + DNA.decode(random_dna(rng, 300))
    record = SequenceRecord("repeat", DNA.encode(letters), DNA)
    assert lower_case(record, "tantan") == pytantan.mask_repeats(letters)
    assert Masking("tantan", "soft", DNA).residues(record.codes)[330:410].all()


@pytest.mark.peer("dustmasker")
def test_dust_masks_what_dustmasker_masks():
    """Source: NCBI's dustmasker, on random bases with simple segments of many periods."""
    rng = np.random.default_rng(6)
    parts = []
    for unit in ("A", "CA", "GGT", "ACGT", "A", "TTAGGG"):
        parts += [DNA.decode(random_dna(rng, 400)), unit * (60 // len(unit))]
    letters = "".join(parts) + DNA.decode(random_dna(rng, 400))
    ran = subprocess.run(["dustmasker"], input=f">q\n{letters}\n", capture_output=True, text=True, check=True)
    expected = np.zeros(len(letters), dtype=bool)
    for first, last in INTERVAL.findall(ran.stdout):
        expected[int(first) : int(last) + 1] = True
    found = Masking("dust", "soft", DNA).residues(DNA.encode(letters))
    assert expected.sum() > 200
    np.testing.assert_array_equal(found, expected)


@pytest.mark.peer("segmasker")
def test_seg_masks_what_segmasker_prints_in_lower_case(proteins):
    """Source: segmasker's other output format, the masked FASTA, of all proteins at once."""
    some = [record for record in proteins if not set(record.letters) & set("UOJ")][:25]
    fasta = "".join(f">{number}\n{record.letters.upper()}\n" for number, record in enumerate(some))
    ran = subprocess.run(["segmasker", "-outfmt", "fasta"], input=fasta, capture_output=True, text=True, check=True)
    expected = ["".join(block.split("\n")[1:]) for block in ran.stdout.split(">")[1:]]
    assert [lower_case(record, "seg") for record in some] == expected
    assert any(letters != letters.upper() for letters in expected)


def test_masks_are_joined_and_only_they_are_in_lower_case():
    """By hand: 20 alanines are a repeat, except the first, which repeats nothing; 'kv' is given in lower case."""
    record = SequenceRecord("q", PROTEIN.encode("MkvLWQ" + "A" * 20 + "DRHCWE"), PROTEIN)
    assert lower_case(record, "lower") == "MkvLWQ" + "A" * 20 + "DRHCWE"
    assert lower_case(record, "tantan") == "MKVLWQA" + "a" * 19 + "DRHCWE"
    assert lower_case(record, "tantan,lower") == "MkvLWQA" + "a" * 19 + "DRHCWE"
    assert Masking("tantan,lower", "hard", PROTEIN).masked(record).letters == "MXXLWQA" + "X" * 19 + "DRHCWE"
    assert Masking("none", "hard", PROTEIN).masked(record) is record


def test_hard_masked_bases_become_n_and_kept_letters_stay():
    """By hand; U is a base like T and is unchanged."""
    record = SequenceRecord("q", DNA.encode("ACgtUUAC"), DNA)
    assert Masking("lower", "hard", DNA).masked(record).letters == "ACNNUUAC"


def test_masked_residues_become_unknown():
    masking = Masking("lower", "soft", PROTEIN)
    assert PROTEIN.decode(masking.hidden(PROTEIN.encode("MkvL"))) == "MXXL"
    assert masking.hidden(PROTEIN.encode("MKVL")) is None


def test_sequences_too_short_to_repeat_are_not_masked():
    for letters in ("A", "AC", "ACG"):
        assert not Masking("dust,tantan", "soft", DNA).residues(DNA.encode(letters)).any()


@pytest.mark.parametrize("text", ["dusty", "", "none,tantan", "tantan,,seg", "soft"])
def test_unknown_maskers_are_refused_with_the_known_ones(text):
    with pytest.raises(InputError, match="choose none, or one or more of tantan, dust, seg, lower"):
        parse_maskers(text)


@pytest.mark.parametrize(
    ("name", "alphabet", "words"),
    [("dust", PROTEIN, "mask='dust' is not for protein; choose tantan, seg or lower"),
     ("seg", DNA, "mask='seg' is not for dna; choose tantan, dust or lower")],
)  # fmt: skip
def test_maskers_of_the_other_alphabet_are_refused(name, alphabet, words):
    with pytest.raises(InputError, match=words):
        Masking(name, "soft", alphabet)


def test_what_is_not_installed_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydustmasker", None)
    with pytest.raises(InputError, match=r"pip install 'swsearch\[mask\]'"):
        Masking("tantan", "soft", PROTEIN)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"segmasker on the PATH; install BLAST\+"):
        Masking("seg", "soft", PROTEIN)
    Masking("lower", "soft", PROTEIN)


def test_a_masker_that_fails_is_an_error_with_its_words(monkeypatch, tmp_path):
    """Source: a failing program that replaces segmasker."""
    program = tmp_path / "segmasker"
    program.write_text("#!/bin/sh\necho 'no memory left' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="exit code 3: no memory left"):
        Masking("seg", "soft", PROTEIN).residues(PROTEIN.encode("MKV"))
