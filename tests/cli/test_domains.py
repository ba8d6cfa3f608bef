"""``swsearch domains``: overlaps, formats and failures.

Expected values: Biopython's reader of HMMER's tables, other formats and engines, and hand.
"""

import gzip
import json

import pytest
from Bio import SearchIO

from tests.cli.conftest import DATA

FAMILIES = DATA / "families.hmm.gz"
PROTEINS = DATA / "proteins.fasta.gz"


def test_overlaps_are_resolved_in_proteins_of_related_families(swsearch):
    """Obg's G domain resembles EngB: with --overlaps, both are listed for the same residues."""
    first, every = (
        swsearch(
            "domains", PROTEINS, FAMILIES, "--format", "tsv", "--thresholds", "none", "-q", *more
        ).out.splitlines()[1:]
        for more in ([], ["--overlaps"])
    )
    rows = [line.split("\t") for line in first]
    assert len(every) > len(rows) > 150
    of_obg = [row for row in rows if "OBG_" in row[0]]
    assert {row[2] for row in of_obg} == {"Obg"}
    both = {row[2] for row in (line.split("\t") for line in every) if "OBG_" in row[0]}
    assert both == {"Obg", "EngB"}


def test_engines_and_threads_give_the_same_bytes(swsearch, tmp_path, few_proteins_db):
    few = few_proteins_db.with_suffix(".fasta")
    (tmp_path / "models.hmm").write_bytes(gzip.decompress(FAMILIES.read_bytes()))
    expected = swsearch("domains", few, FAMILIES, "-f", "jsonl", "-q").out
    for engine in ("cpu", "reference"):
        given = ["domains", few, tmp_path / "models.hmm", "-f", "jsonl", "--engine", engine, "-p", "3", "-q"]
        assert swsearch(*given).out == expected
    assert len(expected.splitlines()) == 60
    assert sum(bool(json.loads(line)["domains"]) for line in expected.splitlines()) > 3


def test_the_table_of_hmmscan_is_read_by_others(swsearch, tmp_path):
    """Source: Biopython, and the values of --format jsonl."""
    swsearch("domains", PROTEINS, FAMILIES, "-f", "domtblout", "-o", tmp_path / "x.txt")
    swsearch("domains", PROTEINS, FAMILIES, "-o", tmp_path / "x.jsonl")
    expected = {}
    for line in (tmp_path / "x.jsonl").read_text().splitlines():
        protein = json.loads(line)
        for one in protein["domains"]:
            expected[protein["protein"], one["family"], one["domain"]] = protein, one
    n_read = 0
    for protein in SearchIO.parse(tmp_path / "x.txt", "hmmscan3-domtab"):
        for hit in protein:
            for hsp in hit:
                of_protein, one = expected[protein.id, hit.id, hsp.domain_index]
                n_read += 1
                assert (protein.seq_len, hit.seq_len) == (of_protein["protein_length"], one["family_length"])
                assert hit.accession == (one["accession"] or "-")
                assert (hsp.hit_start + 1, hsp.hit_end) == (one["model_start"], one["model_end"])
                assert (hsp.query_start + 1, hsp.query_end) == (one["start"], one["end"])
                assert (hsp.env_start + 1, hsp.env_end) == (one["envelope_start"], one["envelope_end"])
                assert hsp.bitscore == pytest.approx(one["domain_bits"], abs=0.051)
                assert hsp.bias == pytest.approx(one["domain_bias"], abs=0.051)
                assert hsp.evalue == pytest.approx(one["domain_evalue"], rel=0.06)
                assert hsp.evalue_cond == pytest.approx(one["conditional_evalue"], rel=0.06)
                assert hit.evalue == pytest.approx(one["evalue"], rel=0.06)
                assert hit.bitscore == pytest.approx(one["bits"], abs=0.051)
                assert hsp.acc_avg == pytest.approx(one["accuracy"], abs=0.0051)
                assert hit.description == (one["description"] or "-")
    assert n_read == len(expected) > 150


def test_table_and_page_show_the_proteins_that_have_domains(swsearch, tmp_path):
    records = gzip.decompress(PROTEINS.read_bytes()).decode().split(">")[1:]
    obg = next(one for one in records if "OBG_" in one)
    other = next(one for one in records if "GTP" not in one and "OBG" not in one)
    header = obg.split("\n")[0]
    (tmp_path / "two.fasta").write_text(f">{obg}>nothing <b>\n" + other.split("\n", 1)[1])
    out = swsearch("domains", tmp_path / "two.fasta", FAMILIES).out
    assert out.count("Protein:") == 1
    assert f"Protein:  {header}" in out
    row = next(line for line in out.splitlines() if line.startswith("Obg"))
    assert row.split()[1] == "DEMO1.1"
    assert row.endswith("GTPase Obg")
    swsearch("domains", tmp_path / "two.fasta", FAMILIES, "-o", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    start, end = row.split()[2].split("-")
    assert f'<td class="number">{start}-{end}</td>' in page
    assert page.count('<li><a href="#q1h1"') == 1
    assert 'id="q1h1"' in page
    assert "nothing <b>" not in page
    assert "nothing &lt;b&gt;" not in page
    (tmp_path / "none.fasta").write_text(f">nothing <b>\n{'GPGP' * 20}\n")
    swsearch("domains", tmp_path / "none.fasta", FAMILIES, "-o", tmp_path / "none.html")
    assert "No protein has a domain" in (tmp_path / "none.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((DATA / "lambda_phage.fasta", FAMILIES), "is dna; domains are found in proteins"),
        ((PROTEINS, PROTEINS), "proteins.fasta.gz, line 1: expected 'HMMER3/f'"),
        ((PROTEINS, "no.hmm"), "no.hmm: No such file"),
        ((PROTEINS, FAMILIES, "--evalue", "0"), "--evalue 0: choose a number above 0"),
        ((PROTEINS, FAMILIES, "-o", "x.xlsx"), "there are no reports as .xlsx"),
        (("-", "-"), "<stdin> is named twice"),
        ((PROTEINS, FAMILIES, FAMILIES), "families.hmm.gz is named twice; its models would count twice"),
    ],
)
def test_wrong_input_is_one_line(swsearch, tmp_path, arguments, words):
    found = swsearch("domains", *arguments)
    assert words in found.refusal
    assert not found.out
    assert not list(tmp_path.glob("x.*"))


def test_a_model_without_statistics_is_refused(swsearch, tmp_path):
    text = gzip.decompress(FAMILIES.read_bytes()).decode()
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("STATS LOCAL FORWARD")]
    (tmp_path / "x.hmm").write_text("".join(lines))
    found = swsearch("domains", PROTEINS, tmp_path / "x.hmm", "-o", tmp_path / "x.tsv")
    assert "model 'Obg' has no statistics (STATS LOCAL FORWARD); hmmconvert" in found.refusal
    assert not (tmp_path / "x.tsv").exists()
    (tmp_path / "x.hmm").write_text(text.replace("GA    60.00 60.00", "GA    60.00", 1))
    found = swsearch("domains", PROTEINS, tmp_path / "x.hmm")
    assert "the line GA has '60.00' in place of two numbers" in found.error
