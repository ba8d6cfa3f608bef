"""Translated searches, compared with Biopython's translation and alignment, untranslated searches, and NCBI BLAST."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from Bio import Align
from Bio.Align import substitution_matrices

import swsearch
from swsearch.errors import AlphabetMismatch, InputError, ScoringError
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences
from tests.hits.rescore import rescore
from tests.support import Records, indexed
from tests.translated_data import FRAMES, biopython_frame, planted, real_proteins

CODE = 4
MODES = {"query": ("genes", "proteins"), "subject": ("proteins", "genes"), "both": ("genes", "genes")}
"""The files of queries and database, by what is translated."""


@pytest.fixture(scope="module")
def records() -> dict[str, Records]:
    rng = np.random.default_rng(42)
    proteins = real_proteins(8, longest=90)
    short = [("tiny", "ACGTA"), ("codon", "ATG"), ("tryptophans", "TGA" * 20)]
    return {"proteins": proteins, "genes": [*planted(rng, proteins, CODE), *short]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("translated")
    for name, alphabet in (("proteins", PROTEIN), ("genes", DNA)):
        indexed(folder / f"{name}.db", records[name], alphabet)
    return folder


def options(translate: str, **changes: object) -> swsearch.SearchOptions:
    values = {"translate": translate, "genetic_code": CODE, "top": 100, "evalue": float("inf"), **changes}
    return swsearch.SearchOptions(**values)  # type: ignore[arg-type]


def search(folder, translate, **changes):
    """Return the results of searching with the first file of the mode in the database of the second."""
    queries, database = (folder / name for name in MODES[translate])
    with swsearch.open_searcher(
        database.with_suffix(".db"), options(translate, **changes), engine="cpu", threads=2
    ) as searcher:
        return list(searcher.search(list(read_sequences(queries.with_suffix(".fasta"), searcher.query_alphabet))))


def frames_of(letters: str, translated: bool) -> dict[int, str]:
    """Return a sequence's frames by Biopython, or the sequence itself as frame 0."""
    if not translated:
        return {0: letters}
    return {frame: found for frame in FRAMES if (found := biopython_frame(letters, frame, CODE))}


@pytest.mark.parametrize("translate", MODES)
def test_scores_are_the_best_of_all_frames(folder, records, translate):
    """Source: Biopython's PairwiseAligner on Biopython's translations; the first of equal frames is reported."""
    aligner = Align.PairwiseAligner(mode="local", open_gap_score=-12, extend_gap_score=-1)
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    queries, subjects = (records[name] for name in MODES[translate])
    results = search(folder, translate, composition="none")
    assert len(results) == len(queries)
    for (_, query), result in zip(queries, results, strict=True):
        found = {
            hit.subject_index: (hit.score, hit.query_frame, hit.subject_frame) for hit in result.hits if hit.hsp == 1
        }
        expected = {}
        for index, (_, subject) in enumerate(subjects):
            scores = [
                (int(aligner.score(a, b)), query_frame, subject_frame)
                for query_frame, a in frames_of(query, translate != "subject").items()
                for subject_frame, b in frames_of(subject, translate != "query").items()
            ]
            best = max(scores, key=lambda score: score[0], default=(0, 0, 0))
            if best[0] > 0:
                expected[index] = best
        assert found == expected


@pytest.mark.parametrize("translate", MODES)
def test_alignments_are_on_the_bases_and_rescore_to_their_scores(folder, records, translate):
    """Source: Biopython's translation of the bases at the reported coordinates, scored column by column."""
    queries, subjects = (records[name] for name in MODES[translate])
    with swsearch.open_searcher(folder / f"{MODES[translate][1]}.db", options(translate), engine="cpu") as searcher:
        scheme = searcher.scheme
    n_hits = 0
    for (_, query), result in zip(queries, search(folder, translate), strict=True):
        for hit in result.hits:
            alignment, subject = hit.alignment, subjects[hit.subject_index][1]
            query_part = query[alignment.query_start : alignment.query_end]
            subject_part = subject[alignment.subject_start : alignment.subject_end]
            if hit.query_frame:
                query_part = biopython_frame(query_part, 1 if hit.query_frame > 0 else -1, CODE)
                assert alignment.query_letters.upper() == query_part
                offset = alignment.query_start if hit.query_frame > 0 else len(query) - alignment.query_end
                assert offset % 3 == abs(hit.query_frame) - 1
            if hit.subject_frame:
                subject_part = biopython_frame(subject_part, 1 if hit.subject_frame > 0 else -1, CODE)
                offset = alignment.subject_start if hit.subject_frame > 0 else len(subject) - alignment.subject_end
                assert offset % 3 == abs(hit.subject_frame) - 1
            assert alignment.subject_letters.upper() == subject_part
            whole = replace(
                alignment, query_start=0, query_end=len(query_part), subject_start=0, subject_end=len(subject_part),
                subject_letters=subject_part,
            )  # fmt: skip
            assert rescore(PROTEIN.encode(query_part), PROTEIN.encode(subject_part), whole, scheme) == hit.score
            n_hits += 1
    assert n_hits > 50


def test_planted_genes_are_found_in_their_frames(folder, records):
    """Expected: gene i was made from protein i, so each finds the other first, on the strand where it was inserted."""
    for translate in ("query", "subject"):
        for index, result in enumerate(search(folder, translate)[:8]):
            best = result.hits[0]
            assert best.subject_index == index
            assert ((best.query_frame or best.subject_frame) < 0) == (index % 2 == 1)
            assert best.evalue is not None
            assert best.evalue < 1e-5


def test_evalues_count_residues_and_frames(folder, records):
    """Source: the formula of an untranslated search, with a third of the bases and 6 or 36 times the search space."""
    n_bases = sum(len(letters) for _, letters in records["genes"])
    n_residues = sum(len(letters) for _, letters in records["proteins"])
    spaces = {"query": (n_residues, 6), "subject": (n_bases // 3, 6), "both": (n_bases // 3, 36)}
    for translate, (space, chances) in spaces.items():
        queries, subjects = (records[name] for name in MODES[translate])
        database = folder / f"{MODES[translate][1]}.db"
        with swsearch.open_searcher(database, options(translate), engine="cpu") as searcher:
            assert searcher.run_info("test").search_space == space * chances
            statistics = searcher.significance.statistics
        assert isinstance(statistics, Statistics)
        result = search(folder, translate, composition="none")[0]
        query_length = len(queries[0][1]) // (1 if translate == "subject" else 3)
        for hit in result.hits:
            subject_length = max(1, len(subjects[hit.subject_index][1]) // (1 if translate == "query" else 3))
            expected = statistics.evalue(hit.score, query_length, subject_length, space, chances)
            assert hit.evalue == float(expected)


def test_one_strand_of_the_query_is_three_frames(folder):
    """Source: the search of both strands, whose hits on the strand are found again, with three sixths of the space."""
    both = search(folder, "query")
    for strand, sign in (("plus", 1), ("minus", -1)):
        for result, other in zip(search(folder, "query", strand=strand), both, strict=True):
            assert all(hit.query_frame * sign > 0 and hit.strand == strand for hit in result.hits)
            scores = {hit.subject_index: (hit.score, hit.evalue) for hit in result.hits}
            for hit in other.hits:
                if hit.strand == strand:
                    assert hit.evalue is not None
                    assert scores[hit.subject_index] == (hit.score, pytest.approx(hit.evalue / 2))


def test_the_genetic_code_decides(folder, records):
    """Expected: TGA is W in code 4 and a stop in code 1, so tryptophans find a gene of TGA only with code 4."""
    query = swsearch.sequence("W" * 20, "protein")
    subject = [name for name, _ in records["genes"]].index("tryptophans")
    for code, score in ((4, 20 * 11), (1, None)):
        with swsearch.open_searcher(
            folder / "genes.db", options("subject", genetic_code=code), engine="cpu"
        ) as searcher:
            (result,) = searcher.search([query])
        assert {hit.subject_index: hit.score for hit in result.hits if hit.hsp == 1}.get(subject) == score


@pytest.mark.parametrize(
    ("database", "changes", "error", "words"),
    [
        ("genes", {"translate": "query"}, AlphabetMismatch, "translate='query' does not fit it: with queries"),
        (
            "proteins",
            {"translate": "subject"},
            AlphabetMismatch,
            "does not fit it: with queries of protein leave it out",
        ),
        ("proteins", {"translate": "both"}, AlphabetMismatch, "but dna is needed"),
        ("proteins", {"translate": "all"}, InputError, "translate='all': choose query, subject, both"),
        ("proteins", {"genetic_code": 11}, InputError, "say with translate"),
        ("proteins", {"translate": "query", "genetic_code": 8}, InputError, "genetic_code=8: NCBI's codes are"),
        ("proteins", {"translate": "query", "match": 2}, ScoringError, "are for DNA"),
    ],
)
def test_what_does_not_fit_is_refused(folder, database, changes, error, words):
    with (
        pytest.raises(error, match=words),
        swsearch.open_searcher(folder / f"{database}.db", swsearch.SearchOptions(**changes), engine="cpu"),
    ):
        pass


def test_queries_that_do_not_fit_are_refused(folder):
    """Expected by hand: a protein has no frames, and two bases are not a codon."""
    with swsearch.open_searcher(folder / "proteins.db", options("query"), engine="cpu") as searcher:
        with pytest.raises(AlphabetMismatch, match="query p is protein, but dna is needed"):
            searcher.check(swsearch.sequence("MKV", "protein", header="p"))
        with pytest.raises(InputError, match="query short has 2 residues; 3 to"):
            searcher.check(swsearch.sequence("AC", "dna", header="short"))
        with pytest.raises(InputError, match=r"^the query has 2 residues"):
            searcher.check(swsearch.sequence("AC", "dna"))


FIELDS = "qseqid sseqid qstart qend sstart send score qframe sframe"


def blast(program: str, folder, queries: str, database: str, *extra: str) -> dict[tuple[str, str], list[str]]:
    """Return the best alignment of each pair that a BLAST program reports: :data:`FIELDS` and its E-value."""
    kind = "nucl" if database == "genes" else "prot"
    made = ["makeblastdb", "-in", folder / f"{database}.fasta", "-dbtype", kind, "-out", folder / f"blast_{database}"]
    subprocess.run(made, check=True, capture_output=True)
    command = [
        program, "-query", folder / f"{queries}.fasta", "-db", folder / f"blast_{database}", "-evalue", "1e-3",
        "-seg", "no", "-outfmt", f"6 {FIELDS} evalue", *extra,
    ]  # fmt: skip
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    best: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        values = line.split("\t")
        known = best.get((values[0], values[1]))
        if known is None or int(values[6]) > int(known[6]):
            best[values[0], values[1]] = values
    return best


@pytest.mark.peer("blastx")
@pytest.mark.parametrize(
    ("translate", "program", "code"), [("query", "blastx", "-query_gencode"), ("subject", "tblastn", "-db_gencode")]
)
def test_hits_are_blasts(folder, translate, program, code):
    """Source: blastx and tblastn 2.12 without composition correction, masking and sum statistics, code 4.

    Coordinates, frames and scores are equal; the E-value is six times BLAST's, because BLAST counts one frame (and a
    frame of a short sequence may be a residue shorter than a third of it). The score of swsearch may only be higher,
    where BLAST's extension stopped early.
    """
    from swsearch.report.fields import FIELDS as OURS

    queries, database = MODES[translate]
    theirs = blast(program, folder, queries, database, code, "4", "-comp_based_stats", "0", "-sum_stats", "false")
    with swsearch.open_searcher(folder / f"{database}.db", options(translate), engine="cpu") as searcher:
        run = searcher.run_info("test")
    compared = 0
    for result in search(folder, translate, composition="none"):
        for hit in result.hits:
            values = [str(OURS[name].value(run, result, hit)) for name in FIELDS.split()]
            *expected, evalue = theirs.pop((values[0], values[1]), [*values, ""])
            if not evalue:
                continue
            if int(values[6]) == int(expected[6]):
                assert values == expected
                assert hit.evalue == pytest.approx(6 * float(evalue), rel=0.06)
                compared += 1
            else:
                assert int(values[6]) > int(expected[6])
    assert compared >= 7
    assert not theirs  # every hit of BLAST is also a hit of swsearch


@pytest.mark.peer("tblastx")
def test_ungapped_hits_of_two_translations_are_tblastxs(folder):
    """Source: tblastx 2.12, which has no gaps: gaps cost 16,000 here. Both report the same best alignment of a pair."""
    from swsearch.report.fields import FIELDS as OURS

    theirs = blast("tblastx", folder, "genes", "genes", "-query_gencode", "4", "-db_gencode", "4")
    with swsearch.open_searcher(folder / "genes.db", options("both"), engine="cpu") as searcher:
        run = searcher.run_info("test")
    equal = 0
    for result in search(folder, "both", gap_open=16_000, composition="none"):
        for hit in result.hits:
            values = [str(OURS[name].value(run, result, hit)) for name in FIELDS.split()]
            expected = theirs.pop((values[0], values[1]), None)
            if expected is not None:
                assert int(values[6]) >= int(expected[6])
                equal += values == expected[:-1]
    assert equal >= 8
    assert not theirs
