"""Rows, weights and scores of estimated profiles, compared with the documented formulas in plain Python."""

import math

import numpy as np
import pytest

from swsearch.errors import InputError
from swsearch.hits.hit import Alignment, Hit
from swsearch.query.contexts import program_contexts
from swsearch.query.estimation import column_frequencies, estimated_query, scores_of
from swsearch.query.multiple_alignment import GAP, OUTSIDE, anchored_rows, distinct_rows, rows_of_alignment
from swsearch.query.scale import query_lambda
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.support import random_protein

BLOSUM62 = named_matrix("BLOSUM62")
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
SIGNS = {"-": GAP, ".": OUTSIDE}


def rows_of(*texts: str) -> np.ndarray:
    """Rows of letters; ``-`` is a gap and ``.`` is outside."""
    return np.array([[SIGNS[a] if a in SIGNS else PROTEIN.code(a) for a in text] for text in texts], dtype=np.uint8)


def estimated_scores(
    rows: np.ndarray, codes: np.ndarray, n_threads: int = 1, *, by_context: bool = False
) -> np.ndarray:
    """The scores of a query with these rows, of which the first is its own."""
    columns = column_frequencies(distinct_rows(rows), n_threads)
    contexts = program_contexts() if by_context else None
    return scores_of(columns, codes, BLOSUM62, n_threads, contexts=contexts)


def hit(letters: str, cigar: str, query_start: int) -> Hit:
    alignment = Alignment(query_start, 0, 0, len(letters), cigar, 0, 0, 1, 0, 0, letters)
    return Hit(1, 0, "s", 100, 50, 30.0, 1e-5, "plus", alignment)


# --- rows ---


def test_rows_have_the_columns_of_the_query():
    """By hand: a gap of the subject stays, residues between two positions do not."""
    hits = [hit("MKWV", "2=2I2=", 1), hit("MKWVTT", "1=3D1X1=", 0), hit("xK", "2X", 6)]
    expected = rows_of(".MK--WV.", "MTT.....", "......XK")
    assert (anchored_rows(8, hits) == expected).all()
    assert anchored_rows(8, []).shape == (0, 8)


@pytest.mark.parametrize(
    "broken",
    [hit("MK", "3=", 0), hit("MKV", "2=", 0), hit("MKV", "3=", 6), hit("MKV", "3", 0), hit("MKV", "3=0", 0),
     hit("MKV", "3M", 0), hit("MKV", "99999999999999999999=", 0), hit("MKV", "3=", -1), hit("MKV", "3=", 9)],
)  # fmt: skip
def test_an_alignment_that_does_not_fit_is_refused(broken):
    with pytest.raises(InputError, match="the alignment with s does not fit its letters"):
        anchored_rows(8, [hit("MKV", "3=", 0), broken])


def test_gaps_at_the_ends_of_a_file_are_outside():
    assert (rows_of_alignment(rows_of("--MK-V-", "MKVLAAG")) == rows_of("..MK-V.", "MKVLAAG")).all()


def test_rows_that_add_nothing_are_left_out():
    """By hand: identity refers to the residues of the later row; with the query, it must be complete."""
    query = "MKVLAAGIVGLLLAQWERTY"
    rows = rows_of(
        query,
        "..VLAAG.............",  # equals the query
        "MKVLAAGIVGLLLAQWERTW",  # 95 % of the query: remains
        "MKVLAAGIVGLLLAQWERTW",  # equals the row before
        "....AAGIVGLLLAQWERTA",  # 15 of 16 equal: 93.75 %
        "WWWWWWWWWWWWWWWWWWWW",
        "....WWW-WWW.........",  # contained in the row before
        "....................",
    )
    assert (distinct_rows(rows) == rows[[0, 2, 4, 5]]).all()


# --- weights and scores ---


def plain_frequencies(texts: list[str], min_width: int = 25) -> tuple[list[dict[str, float]], list[float]]:
    """Frequencies and observations of each column, by the documented formulas."""
    p = dict(zip(AMINO_ACIDS, background(PROTEIN).tolist(), strict=True))
    length = len(texts[0])
    inside = [[i for i, a in enumerate(text) if a != "."] for text in texts]
    parts = [(min(columns), max(columns) + 1) for columns in inside]
    frequencies, observations = [], []
    for column in range(length):
        rows = [n for n, (first, stop) in enumerate(parts) if first <= column < stop]
        first, stop = max(parts[n][0] for n in rows), min(parts[n][1] for n in rows)
        width = min(min_width, length)
        if stop - first < width:
            first = min(max(first - (width - stop + first) // 2, 0), length - width)
            stop = first + width
        block = [[texts[n][c] for n in rows] for c in range(first, stop)]
        kinds = [len({a for a in letters if a in p}) for letters in block]
        weights = []
        for row in range(len(rows)):
            shares = [
                1 / (k * letters.count(letters[row]))
                for k, letters in zip(kinds, block, strict=True)
                if letters[row] in p
            ]
            weights.append(sum(shares) / len(shares) if shares else 1 / len(rows))
        weights = [weight / sum(weights) for weight in weights]
        f = dict.fromkeys(p, 0.0)
        for n, weight in zip(rows, weights, strict=True):
            for a, usual in p.items():
                f[a] += weight * (usual if texts[n][column] not in p else texts[n][column] == a)
        frequencies.append(f)
        diverse = sorted(kinds)[len(kinds) // 2 :]
        wanted = sum(diverse) / len(diverse)
        expected = [sum(1 - (1 - x) ** n for x in p.values()) for n in range(401)]
        upper = next((n for n in range(1, 401) if expected[n] >= wanted), 400)
        between = (wanted - expected[upper - 1]) / (expected[upper] - expected[upper - 1])
        observations.append(max(0.0, min(upper - 1 + min(between, 1.0), len(rows)) - 1))
    return frequencies, observations


def plain_scores(
    frequencies: list[dict[str, float]], observations: list[float], lam: float, *, by_context: bool
) -> list[list[float]]:
    """ln(Q / p) / λ of each column and letter; the columns of contexts have a test of their own."""
    p = dict(zip(AMINO_ACIDS, background(PROTEIN).tolist(), strict=True))
    counts = np.array([[f[a] * (n + 1) for a in p] for f, n in zip(frequencies, observations, strict=True)])
    scores = []
    weight = 0.6 if any(observations) else 0.7
    for f, counted, predicted in zip(frequencies, observations, program_contexts().predicted(counts), strict=True):
        n = counted
        smooth = {a: (n * f[a] + 5.5 * p[a]) / (n + 5.5) for a in p}
        entropy = max(sum(q * math.log(q / p[a]) for a, q in smooth.items()), 1e-4)
        c = 0.0457 / entropy**0.8
        m = 500 * c / (1 - c)
        if c >= 1 - 1e-4:
            n, m = 0.0, 30.0
        expected = {a: sum(f[b] * math.exp(lam * BLOSUM62.score(b, a)) for b in p) for a in p}
        if by_context:
            mixed = {a: t**weight * (p[a] * expected[a]) ** (1 - weight) for a, t in zip(p, predicted, strict=True)}
            expected = {a: mixed[a] / sum(mixed.values()) / p[a] for a in p}
        scores.append([math.log((n * f[a] / p[a] + m * expected[a]) / (n + m)) / lam for a in p])
    return scores


def family(rng: np.random.Generator, n_rows: int, length: int) -> list[str]:
    """A query and fragments of its relatives, with gaps and an unknown residue each."""
    base = random_protein(rng, length)
    texts = [PROTEIN.decode(base)]
    for _ in range(n_rows - 1):
        row = base.copy()
        changed = rng.random(length) < rng.uniform(0.2, 0.7)
        row[changed] = random_protein(rng, int(changed.sum()))
        letters = list(PROTEIN.decode(row))
        for position in rng.choice(length, length // 8, replace=False):
            letters[position] = "-"
        letters[int(rng.integers(length))] = "X"
        first = int(rng.integers(0, length // 2))
        stop = int(rng.integers(first + 8, length + 1))
        letters[first], letters[stop - 1] = "M", "K"
        texts.append("." * first + "".join(letters[first:stop]) + "." * (length - stop))
    return texts


@pytest.mark.parametrize(("seed", "n_rows", "length"), [(1, 2, 12), (2, 9, 60), (3, 40, 90), (4, 25, 30), (6, 1, 40)])
@pytest.mark.parametrize("by_context", [False, True])
def test_frequencies_and_scores_are_those_of_the_formulas(seed, n_rows, length, by_context):
    """Source: the documented formulas, implemented separately without arrays."""
    rng = np.random.default_rng(seed)
    texts = family(rng, n_rows, length)
    found = column_frequencies(rows_of(*texts))
    frequencies, observations = plain_frequencies(texts)
    assert found.observations == pytest.approx(observations)
    expected = np.array([[f[a] for a in AMINO_ACIDS] for f in frequencies])
    assert found.frequencies == pytest.approx(expected)
    codes = PROTEIN.encode(texts[0])
    scores = estimated_scores(rows_of(*texts), codes, by_context=by_context)
    exact = np.array(plain_scores(frequencies, observations, matrix_lambda(BLOSUM62), by_context=by_context))
    factor = float((scores * exact).sum() / (exact * exact).sum())
    assert 0.5 <= factor <= 2.0
    assert np.abs(scores - factor * exact).max() < 0.6
    assert query_lambda(scores.astype(np.int8)) == pytest.approx(0.3176, rel=0.03)


def test_threads_and_their_number_change_nothing():
    rng = np.random.default_rng(5)
    rows = rows_of(*family(rng, 120, 150))
    codes = rows[0].copy()
    alone = column_frequencies(rows)
    for n_threads in (2, 3, 7):
        several = column_frequencies(rows, n_threads)
        assert (several.frequencies == alone.frequencies).all()
        assert (several.observations == alone.observations).all()
        assert (estimated_scores(rows, codes, n_threads) == estimated_scores(rows, codes)).all()


def test_a_query_without_relatives_keeps_the_scores_of_the_matrix():
    codes = PROTEIN.encode("MKVLAAGIVGXWWWWCCBERTY")
    assert (estimated_scores(codes[None, :], codes) == BLOSUM62.scores[codes, :20]).all()
    for rows, expected in ((codes[None, :0], False), (codes[None, :], False), (codes[None, ::-1], True)):
        query = SequenceRecord("q", codes, PROTEIN)
        assert estimated_query(query, rows.reshape(-1, len(codes)), BLOSUM62).has_relatives is expected


def test_a_position_of_the_query_that_is_unknown_keeps_its_scores():
    """A masked position stays masked, whatever the relatives have there."""
    rows = rows_of("MKXLAAGIVGLLLAQWERTY", "MRVLSAGLVGMLLSQWDRTY", "LKVIAAGIVALLIAEWERSF")
    scores = estimated_scores(rows, rows[0])
    assert (scores[2] == BLOSUM62.scores[PROTEIN.code("X"), :20]).all()
    assert (scores[1] != BLOSUM62.scores[PROTEIN.code("K"), :20]).any()
