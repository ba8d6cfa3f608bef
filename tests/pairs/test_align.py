"""``swsearch align`` and its library: modes, texts, formats, the plot, and refused requests.

The expected values come from rescoring, parasail and rapidfuzz, or from calculation by hand.
"""

import gzip
import json
import re

import numpy as np
import parasail
import pytest
from rapidfuzz.distance import Levenshtein

from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.errors import EngineUnavailable, InputError
from swsearch.pairs.pair_alignment import COST_SETS, align_pair, scheme_scoring
from swsearch.pairs.pair_matrices import common_words
from swsearch.pairs.pair_report import common_letters, edits
from swsearch.pairs.sequence import PairSequence, from_record, number_texts
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.hits.rescore import counted

PROTEIN_SCORING = scheme_scoring(default_scheme(PROTEIN))
DNA_SCORING = scheme_scoring(default_scheme(DNA))
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


@pytest.fixture
def dna_files(tmp_path):
    """Two files of two DNA records each."""
    (tmp_path / "q.fa").write_text(">q1 one\nACGTTTGACCA\n>q2\nGGGGGCCCCC\n")
    (tmp_path / "s.fa").write_text(">s1\nACGTTGACCATTT\n>s2\nGGGGCCCCC\n")
    return tmp_path / "q.fa", tmp_path / "s.fa"


def side(letters, alphabet=None, header="x"):
    if alphabet is None:
        return PairSequence(header, letters)
    return from_record(SequenceRecord(header, alphabet.encode(letters), alphabet))


def rescored(pair):
    """Return the score of an alignment from its letters and CIGAR alone, column by column."""
    query, subject = (text.upper().replace("U", "T") if pair.query.record else text for text in pair.aligned)
    scoring = pair.scoring

    def pair_score(i, j):
        if scoring.matrix is not None:
            return scoring.matrix.score(query[i], subject[j])
        return scoring.match if query[i] == subject[j] else scoring.mismatch

    score = counted(pair.cigar, query, subject, pair_score, scoring.gap_open, scoring.gap_extend).score
    return -score if pair.mode == "edit" else score


def random_pair(seed, letters, length):
    rng = np.random.default_rng(seed)
    query = rng.choice(list(letters), length)
    subject = np.where(rng.random(length) < 0.25, rng.choice(list(letters), length), query)[rng.random(length) > 0.05]
    return "".join(query), "".join(subject)


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal", "edit", "lcs"])
@pytest.mark.parametrize(("alphabet", "letters"), [(PROTEIN, AMINO_ACIDS), (DNA, "ACGT"), (DNA, "ACGTUNacgtRY")])
def test_every_alignment_has_the_score_that_is_reported(mode, alphabet, letters):
    """Expected values: the score counted from letters and CIGAR."""
    for seed, length in enumerate([1, 3, 40, 700]):
        query, subject = random_pair(seed, letters, length)
        of_text = mode in ("edit", "lcs")
        scoring = None if of_text else PROTEIN_SCORING if alphabet is PROTEIN else DNA_SCORING
        sides = [side(text, None if of_text else alphabet) for text in (query, subject)]
        pair = align_pair(*sides, mode, scoring, backend=CpuPairs(2))
        assert rescored(pair) == pair.score
        score_only = align_pair(*sides, mode, scoring, path=False)
        assert (score_only.score, score_only.query_end, score_only.subject_end) == (
            pair.score, pair.query_end, pair.subject_end,
        )  # fmt: skip


@pytest.mark.parametrize(("mode", "function"), [("local", "sw"), ("global", "nw"), ("semiglobal", "sg")])
def test_protein_scores_agree_with_parasail(mode, function):
    """Expected values: parasail's 32-bit scan kernels with BLOSUM62 and 12/1, which is 11/1 here."""
    for seed in range(6):
        query, subject = random_pair(seed, AMINO_ACIDS, 50 + 100 * seed)
        expected = getattr(parasail, function + "_scan_32")(query, subject, 12, 1, parasail.blosum62).score
        assert align_pair(side(query, PROTEIN), side(subject, PROTEIN), mode, PROTEIN_SCORING).score == expected


def test_risotto_becomes_presto_in_four_edits(run):
    """Expected: 4, and one of the possible edit sequences, by hand."""
    code, out, _ = run("--mode", "edit", "--text", "RISOTTO", "PRESTO")
    assert code == 0
    assert "Edit distance: 4\n" in out
    assert out.endswith("insert P\nsubstitute I with E\ndelete O\ndelete T\n")


def test_edits_turn_the_query_into_the_subject():
    """Expected value: the subject itself, built by applying the listed edits."""
    query, subject = random_pair(5, "abcd ", 200)
    pair = align_pair(side(query), side(subject), "edit")
    words = list(edits(*pair.aligned, pair.cigar))
    assert len(words) == pair.score
    built, i, pending = [], 0, iter(words)
    for digits, operation in re.findall(r"(\d+)(.)", pair.cigar):
        for _ in range(int(digits)):
            if operation == "=":
                built.append(query[i])
            else:
                word = next(pending)
                if operation != "I":
                    letter = word.rsplit(" ", 1)[1] if not word.endswith("' '") else " "
                    built.append(letter)
            i += operation != "D"
    assert "".join(built) == subject


def test_a_common_subsequence_is_one_of_both():
    query, subject = random_pair(6, "abcdefgh", 300)
    pair = align_pair(side(query), side(subject), "lcs")
    common = common_letters(pair.aligned[0], pair.cigar)
    assert len(common) == pair.score
    for text in (query, subject):
        rest = iter(text)
        assert all(letter in rest for letter in common)
    assert "X" not in pair.cigar


def test_texts_are_compared_as_they_are_written(run, tmp_path):
    """By hand: case is significant, non-ASCII characters are one letter each, the last line ending is not a letter."""
    (tmp_path / "a.txt").write_text("Straße\n日本 1\n", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wb") as file:
        file.write("straſe\n日木 1".encode())
    code, out, _ = run("a.txt", "b.txt.gz", "--mode", "edit", "--format", "jsonl")
    assert code == 0
    document = json.loads(out)
    assert (document["score"], document["qlen"], document["cigar"]) == (3, 11, "1X3=1X3=1X2=")
    assert document["edits"] == ["substitute S with s", "substitute ß with ſ", "substitute 本 with 木"]


def test_an_empty_text_is_a_text(run):
    """By hand: three insertions."""
    assert json.loads(run("--mode", "edit", "--text", "", "abc", "--format", "jsonl")[1])["cigar"] == "3D"
    assert json.loads(run("--mode", "lcs", "--text", "", "", "--format", "jsonl")[1])["score"] == 0


def test_files_are_aligned_pair_by_pair(run, dna_files):
    """By hand: ten matches and one gap of one (7); nine matches, and the tenth letter is an overhang."""
    code, out, _ = run(*dna_files, "--mode", "semiglobal", "--format", "tsv")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0][:4] == ["qseqid", "sseqid", "mode", "score"]
    assert [row[:4] for row in rows[1:]] == [["q1", "s1", "semiglobal", "13"], ["q2", "s2", "semiglobal", "18"]]


def test_formats_tell_the_same(run, dna_files):
    """Expected values: json and tsv of the same pairs agree."""
    document = json.loads(run(*dna_files, "--format", "json")[1])
    lines = [json.loads(line) for line in run(*dna_files, "--format", "jsonl")[1].splitlines()]
    assert document == {"schema_version": 1, "pairs": lines}
    header, *rows = (line.split("\t") for line in run(*dna_files, "--format", "tsv")[1].splitlines())
    assert [dict(zip(header, row, strict=True))["cigar"] for row in rows] == [pair["cigar"] for pair in lines]


def test_pairwise_rows_are_the_aligned_letters(run, dna_files):
    """By hand."""
    out = run(*dna_files, "--mode", "global", "--format", "pairwise")[1]
    assert "Query  1   GGGGGCCCCC  10\n           ||||| ||||\nSbjct" not in out
    rows = re.findall(r"^(Query|Sbjct)  \d+ +(\S+)  \d+$", out, re.MULTILINE)
    assert [letters.replace("-", "") for _, letters in rows] == [
        "ACGTTTGACCA",
        "ACGTTGACCATTT",
        "GGGGGCCCCC",
        "GGGGCCCCC",
    ]


def test_the_score_alone_names_no_start(run, dna_files):
    out = run(*dna_files, "--score-only", "--format", "jsonl")[1].splitlines()
    pair = json.loads(out[0])
    assert (pair["score"], pair["qstart"], pair["cigar"]) == (14, None, None)


def test_cost_sets_have_names(run, dna_files):
    """Expected values: rapidfuzz with weights 3 for an insertion, 3 for a deletion, 1 for a substitution."""
    assert set(COST_SETS) == {"nw2009", "sw2023"}
    rows = run(*dna_files, "--mode", "global", "--costs", "nw2009", "--format", "jsonl")[1].splitlines()
    texts = [("ACGTTTGACCA", "ACGTTGACCATTT"), ("GGGGGCCCCC", "GGGGCCCCC")]
    expected = [-Levenshtein.distance(*pair, weights=(3, 3, 1)) for pair in texts]
    assert [json.loads(row)["score"] for row in rows] == expected


def test_long_pairs_give_their_path_only_on_request(run, tmp_path):
    (tmp_path / "long.fa").write_text(">x\n" + "ACGTTGCA" * 700 + "\n")
    assert json.loads(run("long.fa", "long.fa", "--format", "jsonl")[1])["cigar"] is None
    assert json.loads(run("long.fa", "long.fa", "--cigar", "--format", "jsonl")[1])["cigar"] == "5600="


def test_a_dot_plot_is_a_picture(run, dna_files, tmp_path):
    for path in dna_files:
        path.write_text(path.read_text().split("\n>")[0] + "\n")
    assert run(*dna_files, "--plot", "plot.png")[0] == 0
    assert (tmp_path / "plot.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert list(tmp_path.glob(".*")) == []


def test_dots_are_the_words_that_both_have():
    """Expected values: every pair of positions, compared one by one."""
    sides = number_texts(random_pair(8, "ab", 90))
    for most in (10**6, 2_000, 200):
        k, rows, columns = common_words(*sides, max_dots=most)
        query, subject = (text.tolist() for text in sides)
        expected = {
            (i, j)
            for i in range(len(query) - k + 1)
            for j in range(len(subject) - k + 1)
            if query[i : i + k] == subject[j : j + k]
        }
        assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == expected
        assert len(rows) == len(expected) <= most


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--costs", "nw1970"], "--costs 'nw1970'"),
        (["--costs", "nw2009"], "nothing aligns locally"),
        (["--mode", "lcs", "--costs", "nw2009"], "costs of its own"),
        (["--threads", "0"], "--threads 0"),
        (["--plot", "x.gif"], "--plot x.gif"),
        (["--plot", "nowhere/x.png"], "there is no folder"),
        (["--plot", "-"], "--plot -: a plot is a file"),
        (["--plot", "x.png"], "--plot draws one pair"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(run, dna_files, arguments, message):
    code, out, err = run(*dna_files, *arguments)
    assert code == 1
    assert out == ""
    assert len(err.splitlines()) == 1
    assert message in err


def test_a_record_without_a_header_is_unnamed(run, dna_files, tmp_path):
    (tmp_path / "one.fa").write_text(">\nACGTACGTACGTA\n")
    assert run("one.fa", "one.fa", "--format", "tsv")[1].splitlines()[-1].split("\t")[:2] == ["unnamed", "unnamed"]


def test_files_that_do_not_pair_are_refused(run, dna_files, tmp_path):
    (tmp_path / "one.fa").write_text(">x\nACGT\n")
    (tmp_path / "protein.fa").write_text(">x\nMKVLAW\n>y\nMKVLAW\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "three.fa").write_text(">x\nACGT\n" * 3)
    assert "has 2 records, three.fa has 3; they are aligned pair by pair" in run(dna_files[0], "three.fa")[2]
    assert "give --alphabet" in run(dna_files[0], "protein.fa")[2]
    assert "byte 4 is not UTF-8" in run("latin.txt", "latin.txt", "--mode", "edit")[2]
    assert "No such file" in run("none.txt", "none.txt", "--mode", "edit")[2]
    assert "can be read only once" in run("-", "-", "--mode", "edit")[2]
    damaged = bytearray(gzip.compress(b"a text" * 20))
    damaged[20] ^= 0xFF
    for content in (bytes(damaged), damaged[:-9], b"\x28\xb5\x2f\xfdgarbage"):
        (tmp_path / "archive").write_bytes(content)
        assert run("archive", "latin.txt", "--mode", "edit")[2].startswith(
            "swsearch: error: archive: the archive is damaged or cut short ("
        )


def test_residues_are_not_scored_in_texts():
    with pytest.raises(InputError, match="scores residues"):
        align_pair(side("ACGT"), side("ACGT"), "local", DNA_SCORING)


def test_an_engine_is_chosen_by_name(run, dna_files):
    """Every engine prints the same output; an unknown one is refused."""
    plain = run(*dna_files)
    assert run(*dna_files, "--engine", "cpu")[:2] == (0, plain[1])
    assert run(*dna_files, "--engine", "reference")[:2] == (0, plain[1])
    code, out, err = run(*dna_files, "--engine", "fpga")
    assert (code, out) == (1, "")
    assert "choose auto, cuda, cpu, reference" in err


def test_a_gpu_that_is_missing_is_an_error_only_where_it_was_asked_for(run, dna_files, monkeypatch):
    def missing():
        raise EngineUnavailable("cuda", "there is no device 0; choose another")

    plain = run(*dna_files)
    monkeypatch.setattr("swsearch.pairs.aligner.first_gpu", missing)
    code, out, err = run(*dna_files, "--engine", "cuda")
    assert (code, out) == (1, "")
    assert "there is no device 0; choose another" in err
    monkeypatch.setattr("swsearch.pairs.aligner.GPU_PAIR_CELLS", 1)
    monkeypatch.setattr("swsearch.pairs.aligner.GPU_BATCH_CELLS", 1)
    assert run(*dna_files)[:2] == (0, plain[1])


@pytest.mark.parametrize("mode", ["local", "edit"])
def test_one_sequence_is_aligned_with_each_of_a_file(run, tmp_path, mode):
    """As pair by pair with copies of the one sequence, on either side."""
    (tmp_path / "one.fa").write_text(">q\nACGTTGCAAC\n")
    (tmp_path / "thrice.fa").write_text(">q\nACGTTGCAAC\n" * 3)
    (tmp_path / "three.fa").write_text(">a\nACGTTGC\n>b\nTTGCAAC\n>c\nGGACGTAA\n")
    for each, copies in (("one three", "thrice three"), ("three one", "three thrice")):
        (code, found, _), (_, expected, _) = (
            run(*(f"{name}.fa" for name in names.split()), "--mode", mode, "--format", "tsv")
            for names in (each, copies)
        )
        assert code == 0
        assert found == expected
        assert found.count("\n") == 4
