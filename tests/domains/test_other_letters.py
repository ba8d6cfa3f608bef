"""Letters that are no amino acid in the domains of proteins: X, B, Z, J, U, O and ``*``.

Expected values: HMMER, a plain computation, and hand.
"""

import gzip
import math
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch.database.partition import Partition
from swsearch.domains.annotation import DomainLimits
from swsearch.domains.decoding import COMPOSITION, MAY_BE, Decoder, with_mean_scores
from swsearch.query.hmm import read_families
from swsearch.scoring.matrix import named_matrix
from swsearch.sequences.alphabet import AMINO_ACIDS, PROTEIN
from tests.domains.test_decoding import MEANINGS, family_of, in_turn
from tests.query.test_columns import random_codes

DATA = Path(__file__).parents[2] / "data"
LETTERS = "BZJXUO*"


def replaced(rng, codes, letters, share):
    """The codes, a share of which are those of one of the letters."""
    chosen = np.array([PROTEIN.code(letter) for letter in letters], np.uint8)[rng.integers(0, len(letters), len(codes))]
    return np.where(rng.random(len(codes)) < share, chosen, codes)


def in_doubt(codes, letters):
    """The codes, in which each amino acid that one of the letters may be is that letter."""
    found = codes.copy()
    for letter in letters:
        found[np.isin(codes, PROTEIN.encode(MEANINGS[letter]))] = PROTEIN.code(letter)
    return found


def only(family, codes):
    (found,) = Decoder(family).decode(Partition.pack([codes]))
    return found


def test_the_letters_are_all_that_are_no_amino_acid():
    assert {*MAY_BE, "*"} == set(PROTEIN.letters) - set(AMINO_ACIDS)
    assert {letter: several for letter, several in MEANINGS.items() if several} == MAY_BE


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("letters", [*LETTERS, LETTERS])
def test_biases_are_those_of_the_mean_odds(seed, letters):
    """Source: the formula, residue by residue; the sums and the compositions are compared in test_decoding.py."""
    rng = np.random.default_rng(seed)
    family, consensus = family_of(rng, 30)
    codes = np.concatenate([random_codes(rng, 9), replaced(rng, consensus, letters, 0.3), random_codes(rng, 9)])
    ((_, _, domains),) = in_turn(family, [codes])
    found = only(family, codes)
    assert len(domains) == len(found.domains) >= 1
    for (first, last, *_, composition, _), domain in zip(domains, found.domains, strict=True):
        product = 1.0
        for letter in PROTEIN.decode(codes[first:last]):
            several = MEANINGS.get(letter, letter)
            odds = [composition[AMINO_ACIDS.index(one)] for one in several]
            product *= sum(odds) / len(odds) if odds else 1.0
        assert domain.bias == pytest.approx(math.log2(1.0 + product / 256.0), abs=1e-9)


def test_selenocysteine_and_pyrrolysine_are_read_as_cysteine_and_lysine():
    rng = np.random.default_rng(3)
    family, consensus = family_of(rng, 60)
    codes = np.concatenate([random_codes(rng, 5), consensus, random_codes(rng, 20)])
    for letter, other in ("UC", "OK"):
        with_letter = np.where(codes == PROTEIN.code(other), np.uint8(PROTEIN.code(letter)), codes)
        assert (with_letter != codes).any()
        assert only(family, with_letter).bits == pytest.approx(only(family, codes).bits, abs=1e-9)


def test_a_stop_is_in_no_pair():
    """By hand: one within a domain is inserted or divides it; a protein of nothing else has no domain."""
    rng = np.random.default_rng(4)
    family, consensus = family_of(rng, 40)
    stop = np.uint8(PROTEIN.code("*"))
    for place in range(40):
        codes = consensus.copy()
        codes[place] = stop
        found = only(family, codes)
        assert all(place not in domain.pairs[:, 1] for domain in found.domains)
        assert found.bits < only(family, consensus).bits
    assert only(family, np.full(30, stop)).domains == ()
    assert only(family, np.full(30, stop)).bits < -100


def test_scores_of_the_search_are_rounded_means():
    """By hand. The scores against ``*`` and padding stay those of the matrix."""
    table = np.full((2, 32), -128, np.int8)
    table[:, :27] = -1
    table[0, [PROTEIN.code(one) for one in "NDQEILCK"]] = [6, 2, 5, -4, 4, -3, 9, 7]
    found = with_mean_scores(table)
    shares = dict(zip(AMINO_ACIDS, COMPOSITION, strict=True))
    expected = {
        "B": (6 * shares["N"] + 2 * shares["D"]) / (shares["N"] + shares["D"]),  # 3.7
        "Z": (5 * shares["Q"] - 4 * shares["E"]) / (shares["Q"] + shares["E"]),  # -0.7
        "J": (4 * shares["I"] - 3 * shares["L"]) / (shares["I"] + shares["L"]),  # -0.3
        "X": sum(float(table[0, code]) * share for code, share in enumerate(COMPOSITION)),
        "U": 9,
        "O": 7,
        "*": -1,
    }
    assert {letter: int(found[0, PROTEIN.code(letter)]) for letter in expected} == {
        letter: round(score) for letter, score in expected.items()
    }
    np.testing.assert_array_equal(found[:, :20], table[:, :20])
    np.testing.assert_array_equal(found[1], table[1])
    np.testing.assert_array_equal(found[:, 27:], table[:, 27:])


def members():
    """The models of the data, and proteins that have one of them."""
    families = list(read_families(DATA / "families.hmm.gz", named_matrix("BLOSUM62")))
    with swsearch.open_database(DATA / "proteins.fasta.gz") as database:
        return families, [one for one in database if "GTPase Obg" in one.header or "EngB" in one.header]


@pytest.mark.parametrize("letter", LETTERS)
def test_the_first_estimate_of_a_letter_is_the_mean_of_those_of_amino_acids(letter):
    """By hand: one residue is once in each product of a sum. The mean of odds is not less than that of scores."""
    families, records = members()
    for family in families:
        for record, place in zip(records[:12], range(30, 150, 10), strict=True):
            several = []
            for code in [*range(20), PROTEIN.code(letter)]:
                several.append(record.codes.copy())
                several[-1][place] = code
            *bits, found = Decoder(family).expected_bits(Partition.pack(several)).tolist()
            chosen = PROTEIN.encode(MEANINGS[letter])
            if letter == "*":
                assert found < min(bits) + 0.001
            else:
                mean = np.average(2.0 ** (np.array(bits)[chosen] - found), weights=np.array(COMPOSITION)[chosen])
                assert mean == pytest.approx(1.0, rel=0.01)


def hmmer(program, folder, sequences):
    """The score of each protein by each model, that of its best domain, their biases, and the number of its regions
    that may have several domains, by a program of HMMER without its filters.
    """
    models, fasta, table = folder / "families.hmm", folder / "proteins.fasta", folder / "table.txt"
    models.write_bytes(gzip.decompress((DATA / "families.hmm.gz").read_bytes()))
    fasta.write_text("".join(f">{name}\n{PROTEIN.decode(codes)}\n" for name, codes in sequences.items()))
    subprocess.run(["hmmpress", "-f", models], check=True, capture_output=True)
    command = [program, "--max", "--noali", "-Z", "2", "-o", "/dev/null", "--tblout", table, models, fasta]
    subprocess.run(command, check=True)
    found = {}
    for line in table.read_text().splitlines():
        if not line.startswith("#"):
            fields = line.split()
            model, protein = (fields[2], fields[0]) if program == "hmmsearch" else (fields[0], fields[2])
            found[model, protein] = [float(fields[column]) for column in (5, 6, 8, 9, 12)]
    return found


@pytest.mark.peer("hmmbuild")
@pytest.mark.parametrize("program", ["hmmsearch", "hmmscan"])
def test_scores_are_those_of_hmmer(tmp_path, program):
    """Source: both programs, on random placements; they round to 0.1 bits.

    Where a region may have several domains, they draw random paths.
    """
    rng = np.random.default_rng(6)
    families, records = members()
    sequences = {
        f"p{number}_{letters}_{share}": replaced(rng, record.codes, letters, share)
        for number, record in enumerate(rng.permutation(np.array(records, dtype=object))[:12])
        for letters in (*LETTERS, LETTERS)
        for share in (0.01, 0.05, 0.2)
    }
    expected = hmmer(program, tmp_path, sequences)
    names, proteins = list(sequences), Partition.pack(list(sequences.values()))
    compared = Counter()
    for family in families:
        for row, found in enumerate(Decoder(family).decode(proteins)):
            name = names[int(proteins.subject_index[row])]
            *theirs, several = expected.get((family.query.identifier, name), [1.0])
            if several == 0.0:
                best = max(found.domains, key=lambda one: one.bits)
                assert [found.bits, found.bias, best.bits, best.bias] == pytest.approx(theirs, abs=0.06), name
                compared[name.split("_")[1]] += 1
    assert set(compared) == {*LETTERS, LETTERS}
    assert min(compared.values()) > 40


@pytest.mark.peer("hmmbuild")
@pytest.mark.parametrize("letters", ["B", "Z", "J", "O", "BZJUO", "X", "*"])
def test_no_protein_of_hmmer_is_lost(tmp_path, letters):
    """Source: hmmsearch without its filters, of parts of proteins, many of which have low scores."""
    rng = np.random.default_rng(7)
    _, records = members()
    sequences = {
        f"p{number}_{length}": codes
        for number, record in enumerate(records)
        for length in (30, 45, 60, 90, 160)
        for codes in [record.codes[30 : 30 + length]]
    }
    for name, codes in sequences.items():
        sequences[name] = replaced(rng, codes, letters, 0.3) if letters in "X*" else in_doubt(codes, letters)
    expected = hmmer("hmmsearch", tmp_path, sequences)
    limits = DomainLimits(evalue=1e-5, thresholds="none", overlaps=True)
    proteins = swsearch.find_domains(tmp_path / "proteins.fasta", tmp_path / "families.hmm", limits, engine="cpu")
    found = {(one.family.name, protein.header) for protein in proteins for one in protein.families}
    models = {one.query.identifier: one.forward_statistics for one in members()[0]}

    def evalue(model, bits):
        location, slope = models[model]
        return 2 * math.exp(-slope * (bits - location))

    theirs = {key: bits for key, (bits, *_) in expected.items() if evalue(key[0], bits) < 1e-6}
    assert theirs.keys() <= found
