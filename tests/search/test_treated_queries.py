"""Masked and corrected queries find, score and align as documented, on both strands.

The expected scores come from parasail, or from the columns of the alignments.
"""

import numpy as np
import parasail
import pytest

from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.registry import Machine
from swsearch.errors import InputError
from swsearch.hits.cigar import parse
from swsearch.query.masking import Masking
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.sequences.record import SequenceRecord
from tests.support import indexed, random_dna, random_protein

RNG = np.random.default_rng(12)
POLY = "EKEKKEEEKKEKEEKKEKEKKEEKEKKEEEKKEK"
DOMAIN = PROTEIN.decode(random_protein(RNG, 90))
QUERY = DOMAIN + POLY.lower()
SUBJECTS = {
    "repeat": PROTEIN.decode(random_protein(RNG, 80)) + POLY + PROTEIN.decode(random_protein(RNG, 60)),
    "domain": PROTEIN.decode(random_protein(RNG, 50)) + DOMAIN + PROTEIN.decode(random_protein(RNG, 40)),
    "both": PROTEIN.decode(random_protein(RNG, 20)) + QUERY.upper(),
    **{f"other{number}": PROTEIN.decode(random_protein(RNG, 150)) for number in range(30)},
}


@pytest.fixture(scope="module")
def proteins(tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("treated") / "s.db", SUBJECTS.items())


def search(path, letters, alphabet=PROTEIN, **options):
    """Return the result of one query."""
    with open_database(path) as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, SearchOptions(**{"evalue": 0.001, **options}))
        (result,) = searcher.search([SequenceRecord("query", alphabet.encode(letters), alphabet)])
    return result


def scores_of(result):
    return {hit.subject_header: hit.score for hit in result.hits}


def oracle(query, subject):
    """Return the score by parasail, which charges open + (k - 1) * extend."""
    return parasail.sw_striped_16(query, subject, 12, 1, parasail.blosum62).score


def test_a_soft_mask_finds_by_the_rest_and_scores_the_whole(proteins):
    """Source: parasail's scores of the unmasked query, for the subjects whose masked query reaches the E-value."""
    plain, soft = search(proteins, QUERY), search(proteins, QUERY, mask="lower")
    assert set(scores_of(plain)) == {"both", "domain", "repeat"}
    assert scores_of(soft) == {name: oracle(QUERY.upper(), SUBJECTS[name]) for name in ("both", "domain")}
    assert soft.n_passed == 2
    assert soft.letters == QUERY
    assert soft.hits[0].alignment == plain.hits[0].alignment
    assert soft.stats.cells == 2 * plain.stats.cells


def test_a_hard_mask_scores_and_shows_x(proteins):
    """Source: parasail's scores of the query with X written into it."""
    hard = search(proteins, QUERY, mask="lower", mask_mode="hard")
    written = DOMAIN + "X" * len(POLY)
    assert hard.letters == written
    assert scores_of(hard) == {name: oracle(written, SUBJECTS[name]) for name in ("both", "domain")}


@pytest.mark.parametrize("options", [{"mask": "lower"}, {"mask": "tantan", "mask_mode": "hard"}], ids=str)
def test_progress_adds_up_to_the_cells_without_the_mask(proteins, options):
    with open_database(proteins) as database, CpuEngine(2) as engine:
        machine = Machine(threads=2, partition_residues=500)
        searcher = Searcher(database, engine, SearchOptions(**options), machine=machine)
        seen: list[int] = []
        record = SequenceRecord("query", PROTEIN.encode(QUERY), PROTEIN)
        assert list(searcher.search([record], seen.append))
        assert sum(seen) == searcher.cells(record) == len(QUERY) * database.n_residues


def test_a_soft_mask_on_both_strands_of_dna(tmp_path):
    """One subject has the masked half, another one the other half, reversed. By hand: only the second is found, on the
    minus strand, with positions on the query as given."""
    rng = np.random.default_rng(3)
    first, second = random_dna(rng, 60), random_dna(rng, 80)
    subjects = {
        "masked": DNA.decode(np.concatenate((random_dna(rng, 50), first))),
        "kept": DNA.decode(np.concatenate((random_dna(rng, 30), reverse_complement(second)))),
        "other": DNA.decode(random_dna(rng, 300)),
    }
    path = indexed(tmp_path / "s.db", subjects.items())
    query = DNA.decode(first).lower() + DNA.decode(second)
    result = search(path, query, DNA, mask="lower")
    assert set(scores_of(search(path, query, DNA))) == {"masked", "kept"}
    (hit,) = result.hits
    assert (hit.subject_header, hit.strand, hit.score) == ("kept", "minus", 160)
    assert (hit.alignment.query_start, hit.alignment.query_end, hit.alignment.cigar) == (60, 140, "80=")


def test_a_query_masked_from_end_to_end_finds_nothing(proteins):
    assert search(proteins, QUERY.lower(), mask="lower", evalue=10.0).hits == ()
    assert search(proteins, QUERY.lower(), mask="lower", mask_mode="hard", evalue=10.0).hits == ()


def test_corrected_scores_are_those_of_their_alignments(proteins):
    """Source: the alignment's columns, scored one by one with the documented profile; positives by the matrix."""
    options = SearchOptions(evalue=10.0, composition="bias")
    with open_database(proteins) as database, CpuEngine(1) as engine:
        searcher = Searcher(database, engine, options)
        query = PROTEIN.encode(QUERY)
        (result,) = searcher.search([SequenceRecord("query", query, PROTEIN)])
        profile, matrix = searcher.preparer.profile(query), searcher.scheme.matrix
    plain = scores_of(search(proteins, QUERY, evalue=10.0))
    assert len(result.hits) >= 3
    assert any(hit.score < plain.get(hit.subject_header, 0) for hit in result.hits)
    for hit in result.hits:
        subject = PROTEIN.encode(SUBJECTS[hit.subject_header])
        i, j, score, positives = hit.alignment.query_start, hit.alignment.subject_start, 0, 0
        for length, operation in parse(hit.alignment.cigar):
            for _ in range(length):
                if operation in "=X":
                    score += int(profile.table[profile.rows[i], subject[j]])
                    positives += matrix.score(QUERY[i].upper(), SUBJECTS[hit.subject_header][j]) > 0
                i, j = i + (operation != "D"), j + (operation != "I")
            score -= searcher.scheme.gap.cost(length) if operation in "ID" else 0
        assert (score, positives) == (hit.score, hit.alignment.positives)


def test_correction_lowers_what_composition_alone_explains(proteins):
    """The subject that shares only the biased tail loses its E-value; the one that shares the domain retains it."""
    plain = {hit.subject_header: hit.evalue for hit in search(proteins, QUERY, composition="none").hits}
    corrected = {hit.subject_header: hit.evalue for hit in search(proteins, QUERY, composition="bias").hits}
    assert corrected["repeat"] > 1e4 * plain["repeat"]
    assert corrected["domain"] < 1e-20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mask": "simple"}, "mask='simple': choose none"),
        ({"mask_mode": "softly"}, "mask_mode='softly': choose soft or hard"),
        ({"composition": "yes"}, "composition='yes': choose adjust, bias, none"),
    ],
)
def test_unknown_treatments_are_refused_by_name(options, words):
    with pytest.raises(InputError, match=words):
        SearchOptions(**options)


def test_composition_is_not_corrected_for_dna(tmp_path):
    path = indexed(tmp_path / "s.db", [("s", "ACGTACGTGGGACTATAC" * 3)])
    with pytest.raises(InputError, match="composition='bias' is for protein, not for dna"):
        search(path, "ACGTACGTGG", DNA, composition="bias")


def test_records_are_masked_once():
    """Masking a masked record may give another mask; the searcher masks queries from the letters as given."""
    record = SequenceRecord("q", PROTEIN.encode("MKV" + "A" * 12 + "LWDRHCWE"), PROTEIN)
    hard = Masking("tantan", "hard", PROTEIN).masked(record)
    assert "X" in hard.letters
    assert "X" not in record.letters
