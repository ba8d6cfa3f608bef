"""PSI-BLAST's checkpoints: profiles in text ASN.1, read and written.

The expected values come from NCBI's psiblast, or from files that are composed here by the specification of the format.
"""

import io
import re
import subprocess

import numpy as np
import pytest

import swsearch
from swsearch.errors import InputError
from swsearch.query.asn1 import LETTERS, read_values, write_checkpoint
from swsearch.query.profile_files import detect_query_format, read_profiles
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.scheme import GapPenalty
from swsearch.sequences.alphabet import PROTEIN, SOFT_MASK_BIT
from tests.support import random_protein

BLOSUM62 = named_matrix("BLOSUM62")
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
ROWS = [LETTERS.index(letter) for letter in AMINO_ACIDS]


def checkpoint(letters="MKW", *, rows=28, by_row=False, factor=1, sequence=None, scores=None, extra="", title="q one"):
    """Return a checkpoint with the scores of BLOSUM62, composed by the specification (scoremat.asn)."""
    table = np.full((len(letters), rows), -32768)
    for position, letter in enumerate(letters):
        table[position, ROWS] = [BLOSUM62.score(letter, other) * factor for other in AMINO_ACIDS]
    numbers = (table.T if by_row else table).ravel().tolist()
    digits = bytes(LETTERS.index(letter) for letter in letters).hex().upper()
    sequence = f"ncbistdaa '{digits}'H" if sequence is None else sequence
    listed = ", ".join(map(str, numbers)) if scores is None else scores
    return (
        f"PssmWithParameters ::= {{ pssm {{ isProtein TRUE, numRows {rows}, numColumns {len(letters)}, byRow "
        f'{str(by_row).upper()}, query seq {{ id {{ local str "Query_1" }}, descr {{ title "{title}" }}, inst {{ repr '
        f"raw, mol aa, length {len(letters)}, seq-data {sequence} }} }}, finalData {{ scores {{ {listed} }}, lambda "
        f"{{ 267, 10, -3 }}, kappa {{ 41, 10, -3 }}, h {{ 14, 10, -2 }}, scalingFactor {factor} }} }}{extra} }}\n"
    )


def read(path, text=None):
    if text is not None:
        path.write_text(text)
    assert detect_query_format(path) == "asn1"
    return read_profiles(path, "asn1", BLOSUM62)


# --- reading ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"by_row": True},
        {"rows": 26, "factor": 100},
        {"sequence": 'ncbieaa "MKW"'},
        {"sequence": 'iupacaa "MK\nW"'},
        {"extra": ', params { pseudocount 0, rpsdbparams { matrixName "BLOSUM62", gapOpen 11, gapExtend 1 } }'},
    ],
)
def test_every_layout_of_the_specification_gives_the_same_scores(tmp_path, changes):
    """Source: scoremat.asn. ``.smp`` files of the conserved domain database have 26 or 28 rows and the factor 100."""
    (query,) = read(tmp_path / "q.asn", checkpoint(**changes))
    assert (query.letters, query.header) == ("MKW", "q one")
    for position, letter in enumerate("MKW"):
        assert query.scores[position].tolist() == BLOSUM62.scores[PROTEIN.code(letter)].tolist()


def test_several_checkpoints_in_one_file_are_a_query_each(tmp_path):
    """By hand; strings continue on the next line, and double quotes in them are doubled."""
    text = checkpoint() + "\n" + checkpoint("ACDE", title='5""-end of\n a gene') + checkpoint("WY", title="")
    found = read(tmp_path / "family.asn", text)
    assert [(query.header, query.letters) for query in found] == [
        ("q one", "MKW"),
        ('5"-end of a gene', "ACDE"),
        ("family_3 PSSM", "WY"),
    ]
    accession = checkpoint().replace('local str "Query_1"', 'swissprot { name "X_Y", accession "P1" }')
    assert read(tmp_path / "family.asn", accession)[0].header == "P1 q one"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (checkpoint()[:-3], "has no end; the file may be cut short"),
        ("PssmWithParameters ::= [", r"line 1: '\[' is neither a number"),
        (checkpoint() + "Seq-entry ::= { }", "line 2: expected 'PssmWithParameters ::= {'"),
        (checkpoint().replace("isProtein TRUE", "isProtein FALSE"), "line 1: it is a profile of nucleotides"),
        (checkpoint().replace("numRows 28", "numRows 27"), "scores holds 84 numbers, 81 are due"),
        (checkpoint().replace("numRows 28", "numRows 20"), "a PSSM of proteins has 26 or 28 rows"),
        (
            checkpoint().replace("numColumns 3", "numColumns 999999999999"),
            "the query has 3 letters for 999,999,999,999 positions",
        ),
        (checkpoint().replace("numColumns 3", f"numColumns {'9' * 30}"), "line 1: '9' is neither"),
        (checkpoint().replace("numColumns 3,", ""), "numColumns is not one number"),
        (checkpoint(sequence="ncbistdaa '0CFF16'H"), "not letters of NCBIstdaa"),
        (checkpoint(sequence="ncbistdaa '0C0A'H"), "the query has 2 letters for 3 positions"),
        (checkpoint(sequence="ncbistdaa '000A16'H"), "the query: residue 1: '-' is a gap"),
        (checkpoint(sequence="gap"), "it has no query sequence for 3 positions"),
        (checkpoint(scores="1, NaN"), "scores holds 'NaN', which is not a whole number"),
        (checkpoint(scores="1 2"), "expected ',' or '}' behind a value"),
        (checkpoint(scores=", ".join(["128"] * 84)), "outside -127 … 127"),
        (checkpoint(factor=0), "the scaling factor is 0"),
        (checkpoint().replace("finalData", "otherData"), "neither scores nor frequency ratios"),
        (checkpoint().replace("scores {", "scores {" * 101), "more than 100 blocks inside each other"),
        (checkpoint(title='"'), "expected ',' or '}' behind a value|is neither a number"),
    ],
)
def test_damaged_checkpoints_are_one_clear_line(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path / "bad.asn", text)
    assert "bad.asn" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_checkpoint_that_is_cut_short_anywhere_is_refused(tmp_path):
    text = checkpoint("MK", extra=', params { pseudocount 0, rpsdbparams { matrixName "BLOSUM62" } }').rstrip()
    for length in range(20, len(text), 3):
        with pytest.raises(InputError, match=r"bad\.asn"):
            read(tmp_path / "bad.asn", text[:length])


def test_runs_of_numbers_are_read_as_the_same_numbers_one_by_one(tmp_path):
    """By hand, and: a space before each comma separates the tokens that are otherwise read together."""
    block = "a { b 1, 2, -3, c { 4, 10, -5 }, { 6, 10, 7 }, {8,10,9},\n{ 1, 2 }, { 3, 4, 5 }, 6, d 7 }, e 8, 9, 10"
    wanted = {"a/b": [1], "a": [2, -3, 6, 10, 7, 8, 10, 9, 1, 2, 3, 4, 5, 6], "a/c": [4, 10, -5], "a/d": [7], "e": [8]}
    wanted[""] = [9, 10]
    for text in (block, block.replace(",", " ,"), block.replace(" ", "\n")):
        (tmp_path / "values.asn").write_text(f"T ::= {{ {text} }}")
        assert list(read_values(tmp_path / "values.asn", "T", wanted)) == [(1, wanted)]
    for text, words in (("5 6, 7, 8", "behind a value"), ("{ 1, 2, 3 } 4, 5, 6", "behind a value")):
        (tmp_path / "values.asn").write_text(f"T ::= {{ {text} }}")
        with pytest.raises(InputError, match=words):
            list(read_values(tmp_path / "values.asn", "T", {""}))
    (tmp_path / "values.asn").write_text("T ::= " + "{ " * 100 + "{ 1, 2, 3 }, { 4, 5, 6 }, 7" + " }" * 100)
    with pytest.raises(InputError, match="more than 100 blocks"):
        list(read_values(tmp_path / "values.asn", "T", {""}))


def test_binary_files_are_refused_with_the_program_that_converts_them(tmp_path):
    """By hand: a sequence of indefinite length in BER; the magic number of HMMER 3.3's binary files."""
    for content, words in ((b"\x30\x80\xa0\x80", "binary ASN.1.*datatool"), (b"\xba\xed\xed\xe8", "hmmconvert")):
        (tmp_path / "binary").write_bytes(content)
        with pytest.raises(InputError, match=words):
            detect_query_format(tmp_path / "binary")


# --- writing ---


def written(header, codes, scores):
    stream = io.StringIO()
    write_checkpoint(stream, header, codes, scores, GapPenalty(11, 1), "BLOSUM62", lam=0.267, k=0.041)
    return stream.getvalue()


def test_what_is_written_is_read_unchanged(tmp_path):
    """All letters of proteins, soft-masked or not, extreme scores, and headers with quotes."""
    rng = np.random.default_rng(5)
    codes = PROTEIN.encode("MKVBZXUOJ*W")
    scores = rng.integers(-127, 128, (len(codes), 20)).astype(np.int8)
    masked = codes.copy()
    masked[2] |= SOFT_MASK_BIT
    text = written('sp|P1|X "quoted" protein', masked, scores) + written("", codes, scores)
    first, second = read(tmp_path / "x.asn", text)
    assert (first.header, second.header) == ('sp|P1|X "quoted" protein', "query")
    for query in (first, second):
        assert query.codes.tolist() == codes.tolist()
        assert query.scores[:, :20].tolist() == scores.tolist()
    positive = np.full_like(scores, 3)  # they imply no frequencies
    assert read(tmp_path / "x.asn", written("é x", codes, positive))[0].header == "? x"


needs_psiblast = pytest.mark.peer("psiblast")


@pytest.fixture(scope="module")
def blast(tmp_path_factory):
    """A family of thirty among eighty random proteins, and what psiblast makes of its origin in two rounds."""
    rng = np.random.default_rng(12)
    folder = tmp_path_factory.mktemp("checkpoints")
    query = random_protein(rng, 120)
    records = []
    for number in range(80):
        piece = random_protein(rng, int(rng.integers(60, 200)))
        if number < 30:
            member = query.copy()
            changed = rng.random(120) < rng.uniform(0.2, 0.6)
            member[changed] = random_protein(rng, int(changed.sum()))
            piece = np.concatenate((piece[:20], member, piece[20:40]))
        records.append(f">s{number}\n{PROTEIN.decode(piece)}\n")
    (folder / "proteins.fasta").write_text("".join(records))
    (folder / "query.fasta").write_text(f">query of this test\n{PROTEIN.decode(query)}\n")
    subprocess.run(["makeblastdb", "-in", folder / "proteins.fasta", "-dbtype", "prot", "-out", folder / "blast"],
                   check=True, capture_output=True)  # fmt: skip
    subprocess.run(["psiblast", "-db", folder / "blast", "-query", folder / "query.fasta", "-num_iterations", "2",
                    "-comp_based_stats", "0", "-out_pssm", folder / "q.asn", "-out_ascii_pssm", folder / "q.pssm"],
                   check=True, capture_output=True)  # fmt: skip
    return folder


def psiblast_hits(folder, pssm):
    printed = subprocess.run(
        ["psiblast", "-db", folder / "blast", "-in_pssm", pssm, "-comp_based_stats", "0", "-max_hsps", "1",
         "-outfmt", "6 sseqid score qstart qend sstart send evalue"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    rows = [line.split("\t") for line in printed.stdout.splitlines() if line.count("\t") == 6]
    return {row[0]: ([int(field) for field in row[1:6]], float(row[6])) for row in rows}


@needs_psiblast
def test_a_checkpoint_of_psiblast_has_the_scores_of_its_text_pssm(blast):
    """Source: psiblast -out_ascii_pssm of the same search."""
    (found,) = read(blast / "q.asn")
    (expected,) = read_profiles(blast / "q.pssm", "pssm", BLOSUM62)
    assert (found.header, found.letters) == ("query of this test", expected.letters)
    assert found.scores.tolist() == expected.scores.tolist()


@needs_psiblast
def test_frequencies_alone_give_psiblasts_scores(blast, tmp_path):
    """Source: the scores of the same checkpoint; those between two integers may be rounded to the other one."""
    text = (blast / "q.asn").read_text()
    text = re.sub(r",\s*finalData \{.*?\n    \}\n", "\n", text, flags=re.DOTALL)
    assert "scores" not in text
    (found,) = read(tmp_path / "q.asn", text)
    (expected,) = read(blast / "q.asn")
    difference = np.abs(found.scores[:, :20].astype(int) - expected.scores[:, :20])
    assert difference.max() <= 1
    assert difference.mean() < 0.02
    start = text.index("freqRatios")
    before, matrix = text[:start], text[start:]
    for due, damage in ((", 10, -", ", 2, -"), (", 10, -", ", 10, -9"), ("{ 0, 10, 0 }", "{ 0, 0 }")):
        with pytest.raises(InputError, match="freqRatios holds"):
            read(tmp_path / "q.asn", before + matrix.replace(due, damage, 1))
    for due, damage in ((" 10, -1", " 10, -"), ("{ ", "{ -")):
        with pytest.raises(InputError, match="the frequencies of position 1 are negative or do not sum to 1"):
            read(tmp_path / "q.asn", before + matrix[:12] + matrix[12:].replace(due, damage))


@needs_psiblast
def test_psiblast_finds_with_our_checkpoint_what_we_find(blast, tmp_path):
    """Source: psiblast -in_pssm with our file and with its own; and our search. Its heuristic may score less."""
    (query,) = read(blast / "q.asn")
    (tmp_path / "ours.asn").write_text(written(query.header, query.codes, query.scores[:, :20]))
    found, theirs = (psiblast_hits(blast, path) for path in (tmp_path / "ours.asn", blast / "q.asn"))
    assert len(found) >= 30
    assert {name: row for name, (row, _) in found.items()} == {name: row for name, (row, _) in theirs.items()}
    swsearch.build_database(blast / "proteins.fasta", tmp_path / "proteins.db")
    (result,) = swsearch.search_database(
        tmp_path / "ours.asn", tmp_path / "proteins.db", swsearch.SearchOptions(top=80)
    )
    ours = {hit.subject_id: hit for hit in result.hits}
    assert all(ours[name].score >= row[0] for name, (row, evalue) in found.items() if evalue < 1)
    assert sum(ours[name].score == row[0] for name, (row, _) in found.items() if name in ours) >= 0.85 * len(found)
