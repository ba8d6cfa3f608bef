"""Matrices by name on the command line. Expected values: Biopython's names, and the same matrix given as a file."""

import json

import pytest
from rapidfuzz.distance import Levenshtein

from tests.cli.conftest import DATA


@pytest.mark.parametrize(("name", "gap"), [("blosum45", (14, 2)), ("PAM30", (9, 1))])
def test_a_printed_matrix_is_a_file_that_gives_the_same_hits(swsearch, protein_db, tmp_path, name, gap):
    (tmp_path / "mine.txt").write_text(swsearch("matrices", name).out)
    search = ["query", DATA / "queries.fasta", protein_db, "--store", "none", "--format", "blast6", "--top", "5"]
    by_name = swsearch(*search, "--matrix", name)
    assert by_name.code == 0
    gaps = ["--gap-open", gap[0], "--gap-extend", gap[1]]
    assert swsearch(*search, "--matrix", "mine.txt", *gaps).out == by_name.out != ""


def test_scores_may_count_costs_only_where_alignments_are_not_local(swsearch, tmp_path):
    """Source: Levenshtein distances of rapidfuzz, for scores and for a matrix file without a positive score."""
    texts = [("ACGTTTGACCA", "ACGTTGACCATTT"), ("GGGGGCCCCC", "GGGGCCCCC")]
    records = [f">{number}\n{text}\n" for number, pair in enumerate(texts) for text in pair]
    (tmp_path / "pairs.fa").write_text("".join(records))
    rows = ["   A  C  G  T  N", *(f"{a} {' '.join('0' if a == b else '-1' for b in 'ACGTN')}" for a in "ACGTN")]
    (tmp_path / "costs.txt").write_text("\n".join(rows))
    gaps = ["--gap-open", "0", "--gap-extend", "1"]
    for scores in (["--match", "0", "--mismatch", "-1"], ["--matrix", "costs.txt"]):
        align = ["align", "pairs.fa", "--pairs", *scores, *gaps, "--format", "jsonl"]
        found = [json.loads(line)["score"] for line in swsearch(*align, "--mode", "global").out.splitlines()]
        assert found == [-Levenshtein.distance(*pair) for pair in texts]
        assert "nothing aligns locally" in swsearch(*align).error
        assert swsearch(*align, "--mode", "semiglobal").code == 0
