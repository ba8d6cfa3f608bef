"""HMMER3's profile hidden Markov models as profiles.

The expected values come from Debian's HMMER (hmmbuild, hmmconvert) and from formulas that are implemented separately.
"""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch import _native
from swsearch.errors import InputError
from swsearch.query.hmm import read_families
from swsearch.query.profile_files import detect_query_format, read_profiles
from swsearch.query.scale import query_lambda, scaled_scores
from swsearch.scoring.matrix import SubstitutionMatrix, named_matrix
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import PROTEIN

DATA = Path(__file__).parents[2] / "data"
BLOSUM62 = named_matrix("BLOSUM62")
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
COLUMNS = "ACDEFGHIKLMNPQRSTVWY"
"""HMMER's order."""


GAPS = "0.10000  2.70805  3.55535  0.69315  0.69315  0.35667  1.20397"
"""Probabilities 0.905, 0.067 and 0.029, twice 0.5, 0.7 and 0.3."""


def emissions(favoured, number):
    """Return the negative logarithms of probabilities that favour one amino acid, more or less by position."""
    share = 0.3 + 0.4 * (number * 37 % 101) / 101
    rest = (1 - share) / (len(COLUMNS) - 1)
    return [-math.log(share if letter == favoured else rest) for letter in COLUMNS]


def model(letters="MKW", *, version="3/f", alphabet="amino", length=None, cons="yes", nodes=None, compo=True):
    """Return a model in the format of HMMER's guide, chapter "profile HMM files"."""
    row = "  ".join("2.99573" for _ in COLUMNS)
    lines = [
        f"HMMER{version} [3.3.2 | Nov 2020]",
        "NAME  family",
        "DESC  proteins of  a family",
        f"LENG  {len(letters) if length is None else length}",
        f"ALPH  {alphabet}",
        f"CONS  {cons}",
        f"HMM          {'        '.join(COLUMNS)}   ",
        "            m->m     m->i     m->d     i->m     i->i     d->m     d->d",
        *([f"  COMPO   {row}"] if compo else []),
        f"          {row}",
        f"          {GAPS}",
    ]
    for number, letter in enumerate(letters, 1):
        values = "  ".join(f"{value:.5f}" for value in emissions(letter, number))
        node = f"{number:7}   {values}" if nodes is None else nodes
        lines += [f"{node}  {number} {letter.lower()} - - -", f"          {row}", f"  {GAPS}"]
    return "\n".join([*lines, "//", ""])


def read(path, text):
    path.write_text(text)
    assert detect_query_format(path) == "hmm"
    return read_profiles(path, "hmm", BLOSUM62)


def test_scores_are_the_log_odds_of_the_match_states(tmp_path):
    """Source: ln(e / p) / λ with the λ of BLOSUM62, times the factor that gives the whole profile this λ."""
    letters = "MKWACDEFGHILNPQRSTVY" * 3
    for text in (model(letters), model(letters, version="3/a", cons="no", compo=False)):
        (found,) = read(tmp_path / "x.hmm", text)
        assert (found.letters, found.header) == (letters, "family proteins of a family")
        p = dict(zip(AMINO_ACIDS, background(PROTEIN).tolist(), strict=True))
        exact = [
            [(-emissions(letter, number)[COLUMNS.index(other)] - math.log(p[other])) / 0.31761 for other in AMINO_ACIDS]
            for number, letter in enumerate(letters, 1)
        ]
        factor = (found.scores[:, :20] * np.array(exact)).sum() / (np.array(exact) ** 2).sum()
        assert 0.5 < factor < 2
        assert np.abs(found.scores[:, :20] - factor * np.array(exact)).max() <= 0.5 + 0.05
        assert query_lambda(found.scores[:, :20]) == pytest.approx(0.3176, rel=0.03)
        x = PROTEIN.code("X")
        assert found.scores[:, x].tolist() == [BLOSUM62.score(letter, "X") for letter in letters]


def test_columns_and_transitions_are_those_of_the_file(tmp_path):
    """Source: the logarithms in the file; ``*`` is a probability of 0."""
    last = "0.06899  2.70805  *  0.69315  0.69315  0.00000  *"
    text = model("MKW").replace(f"{GAPS}\n//", f"{last}\n//")
    (found,) = read(tmp_path / "x.hmm", text)
    here, at_end = [0.9048, 0.0667, 0.0286, 0.5, 0.5, 0.7, 0.3], [0.9333, 0.0667, 0, 0.5, 0.5, 1, 0]
    assert found.model.transitions == pytest.approx(np.array([here, here, at_end]), abs=1e-4)
    columns = [
        [math.exp(-emissions(letter, n)[COLUMNS.index(a)]) for a in AMINO_ACIDS]
        for n, letter in ((1, "M"), (2, "K"), (3, "W"))
    ]
    assert found.model.columns == pytest.approx(np.array(columns), abs=1e-5)
    (other,) = read(tmp_path / "x.hmm", model("MKW"))
    assert (other.scores == found.scores).all()
    assert other.content != found.content  # so that a stored run does not go on with other transitions


def test_a_probability_of_zero_is_the_lowest_score(tmp_path):
    """By hand: ``*`` is the logarithm of 0 in the format."""
    values = " ".join("0.00000" if letter == "W" else "*" for letter in COLUMNS)
    (query,) = read(tmp_path / "x.hmm", model("W", nodes=f"1 {values}"))
    w = AMINO_ACIDS.index("W")
    assert query.scores[0, w] > 5
    assert set(np.delete(query.scores[0, :20], w).tolist()) == {-127}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HMMER2.0  [2.3.2]\nNAME x\n//\n", "line 1: expected 'HMMER3/f'.*hmmconvert"),
        ("HMMER3/z [9.0]\n", "line 1: version 'HMMER3/z' of the format is not known"),
        (model(alphabet="DNA"), "line 5: the model has the alphabet 'DNA'; queries are profiles of proteins"),
        (model().replace("NAME  family", "NAME"), "line 7: the model has no NAME"),
        (
            model().replace("HMM  ", "STATS LOCAL FORWARD -5.0 0.0\nHMM  "),
            "line 7: the slope of STATS .* is 0, not",
        ),
        (model().replace("        Y   ", "        J   "), "does not name the twenty amino acids"),
        (model()[:-3], "has no end"),
        (model().replace("//", "//\nHMM"), "expected 'HMMER3/f' at the beginning of a model, found 'HMM'"),
        (model(length=4), "the model ends after 3 nodes, LENG is '4'"),
        (model(letters=""), "line 12: the model ends after 0 nodes, LENG is '0'"),
        (model(nodes="1 0.5 0.5"), "line 12: expected node 1 with 20 emissions"),
        (model(nodes="2 " + "2.99573 " * 20), "line 12: expected node 1 with 20 emissions"),
        (model().replace("\n      3 ", "\n      4 "), "line 18: expected node 3 with 20 emissions, found '4 "),
        (model().replace("\n      2 ", "\n \n      2 "), "line 15: expected node 2 with 20 emissions, found ''"),
        (model("M", nodes="1 " + "0.00000 " * 20), "line 12: the emissions of node 1 sum to 20, not to 1"),
        (model("M").replace("//", "//\n//"), "line 16: expected 'HMMER3/f'"),
        (model().replace(GAPS, GAPS[:-9]), "line 11: expected the 7 transitions of node 0, found '0.10000 "),
        (model().replace(f"{GAPS}\n//", f"{GAPS[:9]}\n//"), "line 20: expected the 7 transitions of node 3"),
        (model().replace(GAPS, GAPS.replace("0.35667", "0.10000")), "from a deletion of node 1 sum to 1.2, not to 1"),
        (model().replace(GAPS, GAPS.replace("0.69315", "0.10000")), "from an insertion of node 1 sum to 1.81, not"),
        (model().replace(GAPS, GAPS.replace("0.10000", "0.20000")), "from a match of node 1 sum to 0.914, not to 1"),
        (model().split("HMM  ")[0] + "//\n", "line 6: the line HMM does not name the twenty amino acids"),
    ],
)
def test_damaged_models_are_one_clear_line(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path / "bad.hmm", text)
    assert "bad.hmm" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_file_without_models_says_so(tmp_path):
    (tmp_path / "empty.hmm").write_text("\n")
    with pytest.raises(InputError, match=r"empty\.hmm holds no model"):
        read_profiles(tmp_path / "empty.hmm", "hmm", BLOSUM62)
    flat = SubstitutionMatrix("flat", PROTEIN, np.ones((32, 32), np.int8))
    (tmp_path / "x.hmm").write_text(model())
    with pytest.raises(InputError, match="matrix flat has no scale"):
        list(read_families(tmp_path / "x.hmm", flat))


@pytest.mark.parametrize("n_bytes", [1, 50, 300])
def test_models_are_read_in_blocks_with_any_line_ends(tmp_path, monkeypatch, n_bytes):
    """Source: each model in a file of its own; errors name the line of the whole file."""
    monkeypatch.setattr("swsearch.query.hmm._BLOCK_BYTES", n_bytes)
    texts = [model("MKW"), model("A" * 10), model("WWY", version="3/b")]
    alone = [read(tmp_path / "one.hmm", text)[0] for text in texts]
    for joined in ("".join(texts), "\n\n".join(texts).replace("\n", "\r\n"), "\n" + "".join(texts)[:-1]):
        assert [one.content for one in read(tmp_path / "three.hmm", joined)] == [one.content for one in alone]
    broken = texts[0] + "\n" + texts[1].replace("\n      4 ", "\n      5 ")
    line = broken[: broken.index("\n      5 ")].count("\n") + 2
    with pytest.raises(InputError, match=f"three.hmm, line {line}: expected node 4"):
        read(tmp_path / "three.hmm", broken)


def test_a_file_of_another_format_is_refused_before_all_of_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("swsearch.query.hmm._BLOCK_BYTES", 100)
    monkeypatch.setattr("swsearch.query.hmm.MAX_LINE_BYTES", 1000)
    for text, words in (
        ("\n>one\n", "line 2: expected 'HMMER3/f' at the beginning of a model, found '>one'"),
        (model().replace("//", ""), "more than 1,000 bytes of a model; the file is damaged"),
    ):
        (tmp_path / "x.hmm").write_text(text + "MKV\n" * 1000)
        with pytest.raises(InputError, match=words):
            list(read_families(tmp_path / "x.hmm", BLOSUM62))


def test_numbers_of_lines_are_those_of_python():
    """Source: ``float``, which rounds correctly."""
    rng = np.random.default_rng(4)
    words = [f"{1000 * rng.random():.{digits}f}" for digits in rng.integers(0, 9, 400)]
    words += ["0", "007", ".5", "5.", "0.30000000000000", "123456789012345", "99999999.9999999", "1e-3"]
    rows = [words[first : first + 3] for first in range(0, len(words) - 2, 3)]
    lines = [" \t".join([*row, "17", letter]) for row, letter in zip(rows, "MKvw-" * 40, strict=False)]
    text = "\r\n".join(["HMM 1 2 3", *lines]).encode()
    values, letters = _native.leading_numbers(text, 1, 1, 3, 1, 100.0)
    assert values.tolist() == [[float(word) for word in row] for row in rows]
    assert letters.decode() == ("MKvw-" * 40)[: len(rows)]
    values, letters = _native.leading_numbers(text + b"\n", 2, 5, 2, 0, 100.0)
    assert values.tolist() == [[float(word) for word in row[:2]] for row in rows[1::5]]
    assert letters.decode() == "".join(row[2][0] for row in rows[1::5])


@pytest.mark.parametrize("word", ["nan", "-1", "+1", "1,5", ".", "1.2.3", "x", "", "0x1"])
def test_what_is_not_a_number_of_at_least_zero_is_none(word):
    text = f"1 {word}\n*\t1\n".encode()
    assert np.array_equal(_native.leading_numbers(text, 0, 1, 2, 0, 9.0)[0], [[1, np.nan], [9, 1]], equal_nan=True)
    with pytest.raises(ValueError, match="must be at least 1"):
        _native.leading_numbers(b"1", 0, 0, 2, 0, 100.0)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_scores_have_the_largest_factor_whose_mean_odds_are_at_most_one(seed, share):
    """Source: bisection as the module's docstring says it, with plain sums."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 90))
    log_odds = rng.normal(rng.uniform(-2.0, 0.5), rng.uniform(0.2, 3.0), (length, 20))
    codes = rng.integers(0, 23, length).astype(np.uint8)
    present = rng.random(length) < share
    lam = matrix_lambda(BLOSUM62)

    def scores_by(factor):
        scaled = np.clip(np.rint(factor * log_odds / lam), -127, 127).astype(np.int64)
        return np.where(present[:, None], scaled, BLOSUM62.scores[codes, :20])

    low, high = 0.5, 2.0
    for _ in range(13):
        middle = (low + high) / 2
        mean = math.fsum((np.exp(lam * scores_by(middle)) * background(PROTEIN)).ravel()) / length
        low, high = (low, middle) if mean > 1 else (middle, high)
    assert scaled_scores(log_odds, present, codes, BLOSUM62).tolist() == scores_by(low).tolist()


def test_a_model_that_is_cut_short_anywhere_is_refused(tmp_path):
    text = model("MK")
    for length in range(10, len(text) - 4, 7):
        with pytest.raises(InputError, match=r"bad\.hmm"):
            read(tmp_path / "bad.hmm", text[:length])


# --- HMMER's own files ---

needs_hmmer = pytest.mark.peer("hmmbuild")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The model that hmmbuild makes of the family in data/."""
    path = tmp_path_factory.mktemp("models") / "obg.hmm"
    subprocess.run(["hmmbuild", "-n", "Obg", path, DATA / "obg.sto"], check=True, capture_output=True)
    return path


@needs_hmmer
def test_every_version_of_hmmers_format_gives_the_same_profile(built, tmp_path):
    """Source: hmmconvert, which writes the older versions; Biopython has no reader of models."""
    (query,) = read_profiles(built, "hmm", BLOSUM62)
    assert query.identifier == "Obg"
    # Its conserved columns have few different emissions, so the rounded scores of many change at the same factor.
    assert query_lambda(query.scores[:, :20]) == pytest.approx(0.3176, rel=0.03)
    several = built.read_text()
    for version in "abcde":
        converted = subprocess.run(["hmmconvert", "--outfmt", f"3/{version}", built], check=True, capture_output=True)
        several += converted.stdout.decode()
    for other in read(tmp_path / "several.hmm", several):
        assert other.scores[:, :20].tolist() == query.scores[:, :20].tolist()
    # The match states are hmmbuild's own choice of columns; most of them have the same amino acid as ours.
    (estimated,) = read_profiles(DATA / "obg.sto", "stockholm", BLOSUM62)
    assert abs(len(query) - len(estimated)) < 20


@needs_hmmer
def test_a_model_finds_the_family_that_its_alignment_finds(built, tmp_path):
    """Source: the search with the alignment from which hmmbuild made the model."""
    database = swsearch.build_database(DATA / "proteins.fasta.gz", tmp_path / "proteins.db")
    assert database
    options = swsearch.SearchOptions(top=200, evalue=1e-10)
    found, expected = (
        {hit.subject_id for hit in next(iter(swsearch.search_database(path, tmp_path / "proteins.db", options))).hits}
        for path in (built, DATA / "obg.sto")
    )
    assert len(expected) >= 10
    assert len(found & expected) >= 0.8 * len(expected)
    assert len(found) <= 1.25 * len(expected)
