"""Profile queries: how they are read and estimated.

The expected values come from NCBI's programs, from Biopython, or from the documented formulas, implemented separately.
"""

import gzip
import math
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import swsearch
from swsearch.errors import InputError, ScoringError
from swsearch.query.estimation import column_frequencies, position_specific_query
from swsearch.query.multiple_alignment import read_aligned_fasta, read_stockholm
from swsearch.query.profile_files import detect_query_format, read_profiles
from swsearch.query.scale import query_lambda, scale_note
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.scheme import default_scheme
from swsearch.search.options import SearchOptions
from swsearch.search.queries import QueryFiles
from swsearch.sequences.alphabet import PAD_CODE, PROTEIN
from tests.hits.rescore import rescore
from tests.support import indexed, random_protein, write_fasta

BLOSUM62 = named_matrix("BLOSUM62")
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"

STOCKHOLM = """# STOCKHOLM 1.0
#=GF ID   globin-like
#=GF AC   PF00000.1
#=GS one/1-9 AC P1
one/1-9          MKVL-AAG
#=GR one/1-9 SS  HHHH.HHH
two              MKIL.aAG
three            --VLWA-B
#=GC SS_cons     HHHHHHHH

one/1-9          WY
two              W-
#=GR one/1-9 SS  HH
three            WX
#=GC SS_cons     HH
//
# STOCKHOLM 1.0
alone MKV
//
"""


def rows_of(codes: np.ndarray) -> list[str]:
    return ["".join("-" if code == PAD_CODE else PROTEIN.letters[code] for code in row) for row in codes]


# --- reading ---


def test_stockholm_is_read_as_biopython_reads_it(tmp_path):
    """Source: Bio.AlignIO."""
    from Bio import AlignIO

    (tmp_path / "family.sto").write_text(STOCKHOLM)
    found = list(read_stockholm(tmp_path / "family.sto"))
    expected = list(AlignIO.parse(tmp_path / "family.sto", "stockholm"))
    assert [rows_of(alignment.codes) for alignment in found] == [
        [str(record.seq).upper().replace(".", "-") for record in alignment] for alignment in expected
    ]
    assert [alignment.name for alignment in found] == ["globin-like", ""]


def test_insertions_of_a3m_are_dropped_and_aligned_fasta_keeps_lower_case(tmp_path):
    """By hand."""
    (tmp_path / "x.a3m").write_text("#name\n>query words\nMK-VL\n>hit\nMkkK.W\nVaL\n")
    (tmp_path / "x.fa").write_text(">query words\nMK-VL\n>hit\nmk.vL\n")
    (a3m,) = read_aligned_fasta(tmp_path / "x.a3m", insertions=True)
    assert (rows_of(a3m.codes), a3m.name, a3m.all_columns) == (["MK-VL", "MKWVL"], "query words", True)
    (plain,) = read_aligned_fasta(tmp_path / "x.fa", insertions=False)
    assert (rows_of(plain.codes), plain.name, plain.all_columns) == (["MK-VL", "MK-VL"], "", False)


def test_several_alignments_are_separated_by_nul_bytes(tmp_path):
    """By hand; a file of ColabFold's server also ends with one."""
    for text in (">q1\nMK\n>h\nMkK\n\0>q2\nWCW\n", ">q1\nMK\n>h\nMkK\n\0>q2\nWCW\n\0"):
        (tmp_path / "x.a3m").write_text(text)
        found = [(one.name, rows_of(one.codes)) for one in read_aligned_fasta(tmp_path / "x.a3m", insertions=True)]
        assert found == [("q1", ["MK", "MK"]), ("q2", ["WCW"])]
    (tmp_path / "y.a3m").write_text(">q1\nMK\n\0>q2\nWCW\n>h\nW\n")
    with pytest.raises(InputError, match=r"y\.a3m, alignment 2, sequence 2 \(h\): 1 column, the first sequence has 3"):
        list(read_aligned_fasta(tmp_path / "y.a3m", insertions=True))


@pytest.mark.parametrize(
    ("query_format", "text", "words"),
    [
        ("aligned", ">a\nMKV\n>b\nMK\n", r"sequence 2 \(b\): 2 columns, the first sequence has 3"),
        ("aligned", ">a\nMK1\n>b\nMKV\n", r"sequence 1 \(a\), column 3: '1' is not in alphabet protein"),
        ("aligned", "MKV\n", "line 1: expected '>'"),
        ("aligned", "", "holds no aligned sequence"),
        ("aligned", ">a\n\n", "there is no aligned sequence"),
        ("a3m", ">a\nMKV\n>b\nMKVa-\n", "4 columns, the first sequence has 3"),
        ("stockholm", ">a\nMKV\n", "line 1: expected '# STOCKHOLM 1.0'"),
        ("stockholm", "# STOCKHOLM 1.0\na MKV\n", "has no end"),
        ("stockholm", "# STOCKHOLM 1.0\na MKV x\n//\n", "line 2: expected a name and its row"),
        ("stockholm", "# STOCKHOLM 1.0\n//\n", "alignment 1: there is no aligned sequence"),
        ("pssm", "nothing\n", "is not a PSSM"),
        ("pssm", "\n" + " ".join(AMINO_ACIDS) + "\n1 M 1 2 3\n", "line 3: 3 scores, 20 are needed"),
        ("pssm", "\n" + " ".join(AMINO_ACIDS) + "\n2 M " + "1 " * 20 + "\n", "line 3: position 2 where 1 is due"),
        ("pssm", "\n" + " ".join(AMINO_ACIDS) + "\n1 M " + "1 " * 19 + "999\n", "outside -127 … 127"),
        ("pssm", "\n" + " ".join(AMINO_ACIDS) + "\n1 ? " + "1 " * 20 + "\n", "the second column is not the query"),
        ("pssm", "\n" + " ".join(AMINO_ACIDS) + "\n1 M " + "1 " * 19 + "1_0\n", "line 3: a score is wrong"),
        ("pssm", "\n" + " ".join(AMINO_ACIDS) + f"\n{'9' * 5000} M\n", "line 3: position 9{20} where 1 is due"),
        ("stockholm", None, "No such file"),
    ],
)
def test_files_that_are_no_profiles_are_one_clear_line(tmp_path, query_format, text, words):
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=words) as error:
        read_profiles(path, query_format, BLOSUM62)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 300


def test_auto_knows_profiles_by_their_first_line(tmp_path):
    """By hand: the first lines of files from psiblast and Pfam; the FASTA reader decides about any other file."""
    for name, text, expected in (
        ("a.sto", STOCKHOLM, "stockholm"),
        ("b.pssm", "\nLast position-specific scoring matrix computed, weighted\n", "pssm"),
        ("c.fa", ">a\nMKV\n", "fasta"),
        ("d", "", "fasta"),
        ("e.asn", "PssmWithParameters ::= {\n", "asn1"),
        ("f.hmm", "HMMER3/f [3.3.2 | Nov 2020]\n", "hmm"),
    ):
        (tmp_path / name).write_text(text)
        assert detect_query_format(tmp_path / name) == expected
    with gzip.open(tmp_path / "a.sto.gz", "wt") as file:
        file.write(STOCKHOLM)
    assert detect_query_format(tmp_path / "a.sto.gz") == "stockholm"
    in_parts = gzip.compress(STOCKHOLM[:3].encode()) + gzip.compress(STOCKHOLM[3:].encode())
    (tmp_path / "a.sto.gz").write_bytes(in_parts)
    assert detect_query_format(tmp_path / "a.sto.gz") == "stockholm"
    (query, alone) = read_profiles(tmp_path / "a.sto.gz", "stockholm", BLOSUM62)
    assert (query.header, alone.header) == (
        "globin-like profile of 3 aligned sequences",
        "a_2 profile of 1 aligned sequence",
    )
    for name in ("nosuch", "."):
        assert detect_query_format(tmp_path / name) == "fasta"


# --- scale and estimation ---


def test_scores_without_a_scale_have_none():
    assert query_lambda(np.full((3, 20), -1, np.int8)) is None
    assert query_lambda(np.full((3, 20), 1, np.int8)) is None


def alignment_of(rows: list[str], tmp_path, query_format="aligned"):
    (tmp_path / "rows").write_text("".join(f">s{n}\n{row}\n" for n, row in enumerate(rows)))
    (alignment,) = read_aligned_fasta(tmp_path / "rows", insertions=query_format == "a3m")
    return alignment


def test_position_based_weights_are_those_of_the_paper(tmp_path):
    """Source: Henikoff and Henikoff 1994, figure of GYVGS/GFDGF/GYDGF/GYQGG: weights 4/15, 4/15, 3/15, 4/15."""
    alignment = alignment_of(["GYVGS", "GFDGF", "GYDGF", "GYQGG"], tmp_path)
    frequencies = column_frequencies(alignment.codes).frequencies
    expected = {
        (1, "Y"): 4 / 15 + 3 / 15 + 4 / 15,
        (1, "F"): 4 / 15,
        (2, "V"): 4 / 15,
        (2, "D"): 7 / 15,
        (4, "F"): 7 / 15,
    }
    for (column, letter), share in expected.items():
        assert frequencies[column, AMINO_ACIDS.index(letter)] == pytest.approx(share)
    assert frequencies.sum(axis=1) == pytest.approx(np.ones(5))


def test_a_position_without_amino_acids_is_x_and_a3m_keeps_every_column(tmp_path):
    """By hand."""
    rows = ["MXAW", "MX-W", "M--W"]
    assert position_specific_query(alignment_of(rows, tmp_path), BLOSUM62, "q").letters == "MXW"
    a3m = position_specific_query(alignment_of(rows, tmp_path, "a3m"), BLOSUM62, "q")
    assert a3m.letters == "MXAW"
    assert (a3m.scores[1] == BLOSUM62.scores[PROTEIN.code("X")]).all()
    with pytest.raises(InputError, match="no column is filled"):
        position_specific_query(alignment_of(["M--", "-K-", "--V"], tmp_path), BLOSUM62, "q")


def test_a_matrix_without_a_scale_makes_no_profile(tmp_path):
    from swsearch.scoring.matrix import SubstitutionMatrix

    flat = SubstitutionMatrix("flat", PROTEIN, np.ones((32, 32), np.int8))
    with pytest.raises(ScoringError, match="matrix flat has no scale"):
        position_specific_query(alignment_of(["MKV"], tmp_path), flat, "q")


# --- searching ---


@pytest.fixture(scope="module")
def proteins(tmp_path_factory):
    """A family of forty among two hundred random proteins, as FASTA and as a database, and the query of its origin."""
    rng = np.random.default_rng(11)
    folder = tmp_path_factory.mktemp("profiles")
    query = random_protein(rng, 150)
    records = []
    for number in range(240):
        piece = random_protein(rng, int(rng.integers(60, 300)))
        if number < 40:
            member = query.copy()
            changed = rng.random(150) < rng.uniform(0.2, 0.75)
            member[changed] = random_protein(rng, int(changed.sum()))
            cut = int(rng.integers(20, 130))
            piece = np.concatenate((piece[:40], member[:cut], piece[40 : 40 + number % 4], member[cut:], piece[50:80]))
        records.append((f"s{number} OS=x", PROTEIN.decode(piece)))
    write_fasta(folder / "query.fasta", [("query", PROTEIN.decode(query))])
    indexed(folder / "proteins.db", records)
    return folder


def search(folder, path, query_format="auto", engine="cpu", **options):
    options = SearchOptions(**{"top": 240, "evalue": math.inf, **options})
    with swsearch.open_searcher(folder / "proteins.db", options, engine=engine, threads=2) as searcher:
        files = QueryFiles.of([path], query_format)
        return list(searcher.search(list(files.records(searcher))))


def matrix_as_pssm(letters: str) -> str:
    """Return the rows of BLOSUM62 for a sequence, in the layout of psiblast's output."""
    lines = [
        "",
        "Last position-specific scoring matrix computed, weighted observed percentages",
        "   " + "  ".join(AMINO_ACIDS),
    ]
    for number, letter in enumerate(letters, 1):
        lines.append(
            f"{number:5} {letter} " + " ".join(f"{BLOSUM62.score(letter, a):3}" for a in AMINO_ACIDS) + "   0 0.5"
        )
    return "\n".join(
        [*lines, "", "                      K         Lambda", "Standard Ungapped    0.1353     0.3148", ""]
    )


@pytest.mark.parametrize("form", ["pssm", "aligned", "a3m"])
def test_a_profile_that_repeats_the_matrix_finds_what_the_sequence_finds(proteins, tmp_path, form):
    """Source: the plain query; an alignment of one sequence also has the matrix's scores."""
    (plain,) = search(proteins, proteins / "query.fasta", composition="none")
    path = tmp_path / "query.txt"
    path.write_text(matrix_as_pssm(plain.letters) if form == "pssm" else f">query\n{plain.letters}\n")
    (found,) = search(proteins, path, form)
    assert len(found.hits) == 240
    assert found.hits == plain.hits
    assert found.letters == plain.letters


@pytest.fixture
def family(proteins, tmp_path):
    """An alignment of the query's mutated copies, without their insertions."""
    rng = np.random.default_rng(5)
    query = PROTEIN.encode((proteins / "query.fasta").read_text().splitlines()[1])
    rows = []
    for _ in range(12):
        row = query.copy()
        changed = rng.random(150) < 0.5
        row[changed] = random_protein(rng, int(changed.sum()))
        rows.append(PROTEIN.decode(row))
    (tmp_path / "family.sto").write_text(
        "# STOCKHOLM 1.0\n#=GF ID family\n" + "".join(f"s{n} {row}\n" for n, row in enumerate(rows)) + "//\n"
    )
    return tmp_path / "family.sto"


def test_profiles_score_the_same_on_every_engine_and_rescore(proteins, family):
    """Source: the reference engine, and the sum over the columns of each alignment."""
    found = {engine: search(proteins, family, engine=engine) for engine in ("reference", "cpu")}
    (result,) = found["cpu"]
    assert result.hits == found["reference"][0].hits
    assert result.header == "family profile of 12 aligned sequences"
    (profile,) = read_profiles(family, "stockholm", BLOSUM62)
    database = swsearch.open_database(proteins / "proteins.db")
    for hit in result.hits:
        subject = database.codes(hit.subject_index)
        score = rescore(profile.codes, subject, hit.alignment, default_scheme(PROTEIN), "plus", profile.scores)
        assert score == hit.score
    assert sum(hit.evalue < 1e-3 for hit in result.hits) >= 38


needs_psiblast = pytest.mark.peer("psiblast")


@needs_psiblast
def test_a_pssm_of_psiblast_gives_psiblasts_scores(proteins, tmp_path):
    """Source: psiblast -in_pssm on the same PSSM, without composition statistics. Its heuristic may score less."""
    subprocess.run(["makeblastdb", "-in", proteins / "proteins.fasta", "-dbtype", "prot", "-out", tmp_path / "blast"],
                   check=True, capture_output=True)  # fmt: skip
    blast = ["psiblast", "-db", tmp_path / "blast", "-comp_based_stats", "0"]
    subprocess.run(
        [*blast, "-query", proteins / "query.fasta", "-num_iterations", "2", "-out_pssm", tmp_path / "q.asn",
         "-out_ascii_pssm", tmp_path / "q.pssm", "-outfmt", "6"],
        check=True, capture_output=True,
    )  # fmt: skip
    printed = subprocess.run(
        [*blast, "-in_pssm", tmp_path / "q.asn", "-max_target_seqs", "240", "-max_hsps", "1", "-evalue", "10",
         "-outfmt", "6 sseqid score qstart qend sstart send evalue"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    expected = {}
    for line in printed.splitlines():
        fields = line.split("\t")
        if len(fields) == 7:
            expected.setdefault(fields[0], (int(fields[1]), [int(field) for field in fields[2:6]], float(fields[6])))
    (result,) = search(proteins, tmp_path / "q.pssm")
    ours = {hit.subject_header.split()[0]: hit for hit in result.hits}
    assert len(expected) >= 40
    same = 0
    for name, (score, positions, evalue) in expected.items():
        hit = ours[name]
        assert hit.score >= score
        if hit.score == score:
            alignment = hit.alignment
            found = [alignment.query_start + 1, alignment.query_end, alignment.subject_start + 1, alignment.subject_end]
            same += found == positions
            if 1e-170 < evalue < 1e-3:
                assert 0.2 < hit.evalue / evalue < 5
    assert same >= len(expected) * 0.85


def test_the_scale_of_a_foreign_pssm_is_told(proteins, tmp_path):
    """By hand: scores of twice the size have half the λ."""
    letters = (proteins / "query.fasta").read_text().splitlines()[1]
    (tmp_path / "q.pssm").write_text(matrix_as_pssm(letters))
    (query,) = read_profiles(tmp_path / "q.pssm", "pssm", BLOSUM62)
    assert scale_note(query, BLOSUM62) is None
    doubled = replace(
        query, scores=np.where(query.scores == -128, -128, query.scores.clip(-60, 60) * 2).astype(np.int8)
    )
    note = scale_note(doubled, BLOSUM62)
    assert note is not None
    lam = re.search(r"a scale \(λ\) of ([0-9.]+), BLOSUM62 has 0.318", note)
    assert lam is not None
    assert float(lam[1]) == pytest.approx(0.3176 / 2, rel=0.05)
    positive = replace(query, scores=np.full_like(query.scores, 3))
    assert "are positive on the whole" in str(scale_note(positive, BLOSUM62))


# --- invalid files ---


def test_rows_that_do_not_fit_take_no_memory(tmp_path):
    """A first row of 2 MB precedes 200,000 rows of one column: a table of 400 GB was requested before the check."""
    path = tmp_path / "wide.fa"
    path.write_text(">a\n" + "M" * 2_000_000 + "\n" + ">b\nM\n" * 200_000)
    with pytest.raises(InputError, match=r"wide\.fa, sequence 2 \(b\): 1 column, the first sequence has 2000000"):
        list(read_aligned_fasta(path, insertions=False))


def test_the_format_of_a_damaged_archive_is_left_to_its_reader(tmp_path):
    """zstd raises an exception of its own class."""
    path = tmp_path / "query.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfdgarbage")
    assert detect_query_format(path) == "fasta"
