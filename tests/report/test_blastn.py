"""DNA hits compared with those of the real blastn: bit scores and E-values, for odd and even scores."""

import math
import random
import re
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import pytest

from swsearch.cli.app import main
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import DNA
from tests.cli.conftest import DATA

GENOME = DATA / "lambda_phage.fasta"
needs_blastn = pytest.mark.peer("blastn")


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


@needs_blastn
@pytest.mark.parametrize(
    "scoring", [(2, -3, 5, 2), (2, -5, 2, 4), (2, -7, 2, 4), (3, -4, 6, 3), (4, -6, 10, 4), (1, -3, 2, 2)]
)
def test_bit_scores_are_blastns_for_odd_and_even_scores(tmp_path, capfd, genome_db, scoring):
    """Source: blastn. For all but the last pair NCBI's parameters hold for even scores; it rounds for E-values only."""
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
        "query", str(tmp_path / "pieces.fasta"), str(genome_db), *store, "--quiet", "--max-hsps", "1",
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


def blastn_xml(
    query: Path, task: str, match: int, mismatch: int, gap_open: int, gap_extend: int
) -> ElementTree.Element:
    """Return blastn's XML report of the queries against the genome, with the best alignment of each."""
    command = [
        "blastn", "-task", task, "-query", query, "-subject", GENOME, "-dust", "no", "-max_hsps", "1", "-outfmt", "5",
        "-reward", match, "-penalty", mismatch, "-gapopen", gap_open, "-gapextend", gap_extend,
    ]  # fmt: skip
    return ElementTree.fromstring(subprocess.run(list(map(str, command)), capture_output=True, check=True).stdout)


def scorings_of_the_table() -> Iterator[tuple[int, int, int, int, str]]:
    """Yield match, mismatch, open and extend of each row for DNA, and its kind, also doubled (2/-3 also tripled).

    A row is ``gapped``; ``linear``, for greedy alignments of megablast; or ``ungapped``, from the thresholds on.
    """
    for line in resources.files("swsearch.scoring").joinpath("karlin_altschul.tsv").read_text().splitlines():
        pair, opening, extend, *_ = line.split("\t") if "/-" in line[:5] else ("", "", "")
        if not pair:
            continue
        match, mismatch = map(int, pair.split("/"))
        costs = float(opening.rstrip("+")), float(extend.rstrip("+"))
        linear = costs == (0, match / 2 - mismatch) and pair != "2/-3"  # 2/-3 has a gapped row of these costs as well
        kind = "ungapped" if opening.endswith("+") else "linear" if linear else "gapped"
        for factor in (1, 2, 3) if pair == "2/-3" else (1, 2):
            if (costs[1] * factor).is_integer():
                yield match * factor, mismatch * factor, int(costs[0] * factor), int(costs[1] * factor), kind


@needs_blastn
def test_parameters_and_rounding_are_blastns_for_all_pairs_of_scores(tmp_path):
    """Source: blastn's bit scores, E-values, λ, K and effective search spaces, for the raw scores that it prints.

    blastn sums the series of K without gaps to about four digits, which are up to 0.003 of K off. For multiples of a
    pair at its thresholds, it has another K than for the pair itself, several times as large, though these are the same
    scores in another unit; ours is that of the pair, so only λ and the ratios of E-values are compared.
    """
    (tmp_path / "pieces.fasta").write_text("\n".join(pieces_of_the_genome().split("\n")[:40]) + "\n")
    n_rounded = 0
    for match, mismatch, opening, extend, kind in scorings_of_the_table():
        options = SearchOptions(match=match, mismatch=mismatch, gap_open=opening, gap_extend=extend)
        ours = find_statistics(options.scheme(DNA))
        assert isinstance(ours, Statistics)
        task, gaps = ("megablast", (0, 0)) if kind == "linear" else ("blastn", (opening, extend))
        root = blastn_xml(tmp_path / "pieces.fasta", task, match, mismatch, *gaps)
        case = (match, mismatch, opening, extend)
        other_k = kind == "ungapped" and math.gcd(match, mismatch) > 1
        n_hits = 0
        for query in root.iter("Iteration"):
            lam, k, space = (
                float(query.findtext(f".//Statistics_{name}")) for name in ("lambda", "kappa", "eff-space")
            )
            assert lam == pytest.approx(ours.lam, rel=1e-9), case
            if not other_k:
                assert k == pytest.approx(ours.k, rel=3e-3 if kind == "ungapped" else 1e-9), case
            for hit in query.iter("Hsp"):
                score, bits, evalue = (float(hit.findtext(f"Hsp_{name}")) for name in ("score", "bit-score", "evalue"))
                if kind == "linear":
                    continue  # greedy scores are sums of halves, printed as whole numbers
                n_hits += 1
                rounded = int(score) // ours.score_step * ours.score_step
                n_rounded += rounded != score
                assert bits == pytest.approx(float(ours.bits(int(score))) - math.log2(k / ours.k), rel=1e-5), case
                assert evalue == pytest.approx(k * space * math.exp(-ours.lam * rounded), rel=1e-4), case
        assert n_hits == 20 or kind == "linear", case
    assert n_rounded > 200


@needs_blastn
def test_evalues_of_long_sequences_are_blastns_for_one_strand(tmp_path):
    """Source: blastn's effective search space, K and λ; it counts one strand, and long sequences have few ends."""
    genome = "".join(line for line in GENOME.read_text().splitlines() if not line.startswith(">"))
    (tmp_path / "long.fasta").write_text(f">long\n{genome[:10_000]}\n")
    root = blastn_xml(tmp_path / "long.fasta", "blastn", 2, -3, 5, 2)
    lam, k, space = (float(root.findtext(f".//Statistics_{name}")) for name in ("lambda", "kappa", "eff-space"))
    ours = find_statistics(SearchOptions(match=2, mismatch=-3).scheme(DNA))
    assert isinstance(ours, Statistics)
    for score in (30, 60, 100, 200):
        theirs = k * space * math.exp(-lam * score)
        assert float(ours.evalue(score, 10_000, len(genome), len(genome), strands=1)) == pytest.approx(theirs, rel=0.02)
