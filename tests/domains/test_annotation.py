"""Which domains are reported of which protein, and how overlaps are resolved.

Expected values: the decoded scores of all proteins, formulas, and hand.
"""

import math
from pathlib import Path

import numpy as np
import pytest

import swsearch as package
from swsearch.database.partition import Partition
from swsearch.domains.annotation import Family, FoundDomain, FoundFamily, without_overlaps
from swsearch.domains.decoding import Decoder, Domain
from swsearch.query.hmm import read_families
from swsearch.scoring.matrix import named_matrix

DATA = Path(__file__).parents[2] / "data"
FAMILIES = DATA / "families.hmm.gz"
PROTEINS = DATA / "proteins.fasta.gz"


@pytest.fixture(scope="module")
def decoded():
    """The scores of all proteins with both families: (protein, family) to the family and what is decoded."""
    found = {}
    with package.open_database(PROTEINS) as database:
        records = list(database)
    proteins = Partition.pack([record.codes for record in records])
    for family in read_families(FAMILIES, named_matrix("BLOSUM62")):
        for row, one in enumerate(Decoder(family).decode(proteins)):
            found[records[int(proteins.subject_index[row])].identifier, family.query.identifier] = family, one
    return found


def reported(**limits):
    found = package.find_domains(PROTEINS, FAMILIES, package.DomainLimits(overlaps=True, **limits), engine="cpu")
    return {(protein.header.split()[0], one.family.name): one for protein in found for one in protein.families}


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"thresholds": "TC"},
        {"thresholds": "none"},
        {"thresholds": "none", "evalue": 1e-20},
        {"thresholds": "none", "evalue": 5.0},
    ],
)
@pytest.mark.parametrize("few", [0, 10**6])
def test_every_domain_that_reaches_the_limits_is_reported(decoded, limits, few, monkeypatch):
    """Source: the scores of all proteins, without a search; E = 2 exp(-λ (bits - τ)) of two models."""
    least, most_evalue = {"GA": 60.0, "TC": 150.0}.get(limits.get("thresholds", "GA")), limits.get("evalue", 0.01)
    expected = {}
    for key, (family, one) in decoded.items():
        location, slope = family.forward_statistics

        def passes(bits, has_thresholds=key[1] == "Obg", location=location, slope=slope):
            if has_thresholds and least is not None:
                return bits >= least
            return 2 * min(1.0, math.exp(-slope * (bits - location))) <= most_evalue

        domains = [domain for domain in one.domains if passes(domain.bits)]
        if domains and passes(one.bits):
            expected[key] = (
                one.bits,
                2 * min(1.0, math.exp(-slope * (one.bits - location))),
                [domain.bits for domain in domains],
            )
    monkeypatch.setattr("swsearch.domains.annotation._FEW", few)  # with and without a first estimate
    found = reported(**limits)
    missing = expected.keys() - found.keys()
    assert found.keys() <= expected.keys()
    most_missing = 5 if most_evalue > 2 else 0  # all have this E-value; peptides have larger ones in the search
    assert len(missing) <= most_missing
    assert len(found) > 40
    for key, one in found.items():
        bits, evalue, of_domains = expected[key]
        assert (one.bits, [each.domain.bits for each in one.domains]) == (bits, of_domains)
        assert one.evalue == pytest.approx(evalue)
        assert all(len(each.domain.pairs) for each in one.domains)
        assert [each.number for each in one.domains] == list(range(1, len(of_domains) + 1))
        assert {each.n_domains for each in one.domains} == {len(of_domains)}


def domain_at(residues, bits):
    residues = np.array(residues, np.uint32)
    pairs = np.stack([np.arange(len(residues), dtype=np.uint32), residues], axis=1)
    return FoundDomain(Domain(int(residues[0]), int(residues[-1]) + 1, bits, 0.0, 1.0, pairs), 1e-9)


def test_of_overlapping_domains_the_better_one_stays():
    """By hand. A domain within the insertion of another one does not overlap it; half of the shorter one does not."""
    families = [
        FoundFamily(Family(number, name, "", "", 100), 0.0, 0.0, 1e-9, tuple(domain_at(*one) for one in domains))
        for number, (name, domains) in enumerate({
            "outer": [([*range(20), *range(70, 100)], 50.0), (range(200, 220), 5.0)],
            "inner": [(range(25, 65), 20.0)],
            "half": [(range(90, 110), 30.0)],
            "more": [(range(89, 109), 30.0), (range(205, 215), 5.0), (range(300, 310), 1.0)],
        }.items())
    ]  # fmt: skip
    found = {one.family.name: [each.domain.first for each in one.domains] for one in without_overlaps(families)}
    assert found == {"outer": [0, 200], "inner": [25], "half": [90], "more": [300]}
    assert without_overlaps([]) == []
