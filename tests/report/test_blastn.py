"""DNA hits compared with those of the real blastn: equal scores have equal bit scores, for odd and even scores."""

import random
import re
import shutil
import subprocess

import pytest

from swsearch.cli.app import main
from tests.cli.conftest import DATA

GENOME = DATA / "lambda_phage.fasta"


def pieces_of_the_genome() -> str:
    """Return 60 segments of phage lambda as FASTA, with substitutions or a deletion, for odd and even scores."""
    generator = random.Random(5)
    genome = "".join(line.strip() for line in GENOME.read_text().splitlines() if not line.startswith(">"))
    records = []
    for number in range(60):
        length = generator.randint(40, 160)
        start = generator.randint(0, len(genome) - length)
        letters = list(genome[start : start + length])
        for position in generator.sample(range(12, length - 12), number % 4):
            letters[position] = generator.choice("ACGT".replace(letters[position], ""))
        if number % 3 == 2:
            del letters[length // 2]
        records.append(f">piece{number}\n{''.join(letters)}\n")
    return "".join(records)


@pytest.fixture(scope="module")
def genome_db(tmp_path_factory):
    """A database of the genome, for all scorings."""
    path = tmp_path_factory.mktemp("blastn") / "l.db"
    assert main(["index", str(GENOME), "-o", str(path), "--quiet"]) == 0
    return path


@pytest.mark.skipif(shutil.which("blastn") is None, reason="blastn is not installed (Debian package ncbi-blast+)")
@pytest.mark.parametrize("scoring", [(2, -3, 5, 2), (2, -5, 2, 4), (2, -7, 2, 4), (4, -6, 10, 4), (1, -3, 2, 2)])
def test_bit_scores_are_blastns_for_odd_and_even_scores(tmp_path, capfd, genome_db, scoring):
    """Source: blastn. For the first four pairs NCBI's parameters hold for even scores; it rounds only for E-values."""
    match, mismatch, gap_open, gap_extend = map(str, scoring)
    (tmp_path / "pieces.fasta").write_text(pieces_of_the_genome())
    command = [
        "blastn", "-task", "blastn", "-query", tmp_path / "pieces.fasta", "-subject", GENOME, "-dust", "no",
        "-reward", match, "-penalty", mismatch, "-gapopen", gap_open, "-gapextend", gap_extend,
        "-max_hsps", "1",
    ]  # fmt: skip
    wanted = {}
    for form in ("6 qseqid score bitscore", "5"):
        done = subprocess.run([*command, "-outfmt", form], capture_output=True, text=True, check=True)
        wanted[form[0]] = done.stdout
    store = ["--store", str(tmp_path / "hits.sqlite")]
    search = [
        "query", str(tmp_path / "pieces.fasta"), str(genome_db), *store, "--quiet",
        "--match", match, "--mismatch", mismatch, "--gap-open", gap_open, "--gap-extend", gap_extend,
    ]  # fmt: skip

    def found(*command: str) -> str:
        capfd.readouterr()
        assert main([*command]) == 0
        return capfd.readouterr().out

    theirs = wanted["6"].splitlines()
    ours = found(*search, "--format", "blast6", "--fields", "qseqid,score,bitscore").splitlines()
    assert ours == theirs
    factor = 2 if scoring[0] == 4 else 1
    assert {int(line.split()[1]) // factor % 2 for line in ours} == {0, 1}
    in_xml = re.compile(r"<Hsp_bit-score>(.*)</Hsp_bit-score>")
    assert in_xml.findall(found("report", "latest", *store, "--format", "xml")) == in_xml.findall(wanted["5"])
