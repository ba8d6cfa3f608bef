"""The report of queries by taxon is Kraken's for the same assignments."""

import random
import subprocess
from dataclasses import replace

import pytest

from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from tests.report.conftest import PROTEIN_QUERIES, SELF
from tests.report.test_lca import write_nodes_of_old
from tests.taxonomy.dumps import EXCERPT, write_dump


def queries_of(tree, taxids):
    """Return a query for each id, with one hit of this organism, and the taxonomy, as arguments of ``written``.

    0 is a hit without organism, None no hit.
    """
    queries = []
    for number, taxid in enumerate(taxids):
        hits = () if taxid is None else (replace(SELF, subject_index=taxid),)
        queries.append(replace(PROTEIN_QUERIES[0], number=number, header=f"q{number}", hits=hits))
    taxonomy = TaxonomyOfSubjects(tree, lambda taxid: (taxid,) if taxid else ())
    return {"queries": queries, "taxonomy": taxonomy}


def test_lines_have_krakens_six_columns(written):
    """By hand."""
    tree = read_dump(EXCERPT)
    found = written("kraken", **queries_of(tree, [562, 562, 561, None, 0, 1, 10497]))
    lines = [line.split("\t") for line in found.splitlines()]
    assert lines[0] == [" 28.57", "2", "2", "U", "0", "unclassified"]
    assert lines[1] == [" 71.43", "5", "1", "R", "1", "root"]
    assert lines[2] == [" 42.86", "3", "0", "R1", "131567", "  cellular organisms"]
    assert lines[3] == [" 42.86", "3", "0", "D", "2", "    Bacteria"]
    assert lines[9] == [" 42.86", "3", "1", "G", "561", "                Escherichia"]
    assert lines[10] == [" 28.57", "2", "2", "S", "562", "                  Escherichia coli"]
    assert lines[11] == [" 14.29", "1", "0", "R1", "10239", "  Viruses"]
    assert lines[-1][3:] == ["S", "10497", "                  African swine fever virus"]
    assert written("kraken", **queries_of(tree, [None])) == "100.00\t1\t1\tU\t0\tunclassified\n"
    assert written("kraken", queries=[]) == ""


def test_ranks_between_krakens_have_the_distance(written, tmp_path):
    """By hand: codes of a superkingdom of older taxdumps, of taxa below it, and of several roots."""
    ranks = {2: "superkingdom", 4: "species", 5: "strain", 7: "genus"}
    tree = read_dump(write_dump(tmp_path, {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 6, 7: 6}, ranks))
    lines = [line.split("\t")[3:] for line in written("kraken", **queries_of(tree, [5, 7])).splitlines()]
    assert lines == [
        ["R", "1", "Taxon 1"], ["D", "2", "  Taxon 2"], ["D1", "3", "    Taxon 3"], ["S", "4", "      Taxon 4"],
        ["S1", "5", "        Taxon 5"], ["R", "6", "Taxon 6"], ["G", "7", "  Taxon 7"],
    ]  # fmt: skip


@pytest.mark.peer("kraken2-build")
def test_the_report_is_krakens(written, tmp_path, monkeypatch):
    """Source: kraken2 with a database of made-up genomes, and reads of them, of what two share, and of none.

    Debian's kraken2 2.1.2 leaves out the letters R and D of the codes.
    """
    draw = random.Random(5)

    def bases(n):
        return "".join(draw.choices("ACGT", k=n))

    shared, of_mammals, genomes, reads = bases(200), bases(200), [], []
    for taxid, n_reads in ((9606, 4), (9598, 1), (10090, 2), (562, 6), (3702, 3), (10497, 1)):
        own = bases(2000)
        reads += [own[start : start + 150] for start in (draw.randrange(1800) for _ in range(n_reads))]
        genome = own + shared * (taxid in (9606, 562)) + of_mammals * (taxid in (9606, 10090))
        genomes.append(f">kraken:taxid|{taxid}|g{taxid}\n{genome}\n")
    reads += [shared[:150], of_mammals[:150], bases(150), bases(150)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "db" / "taxonomy").mkdir(parents=True)
    write_nodes_of_old(tmp_path / "db" / "taxonomy")
    (tmp_path / "genomes.fa").write_text("".join(genomes))
    (tmp_path / "reads.fa").write_text("".join(f">r{number}\n{read}\n" for number, read in enumerate(reads)))
    build = ["kraken2-build", "--db", "db", "--threads", "1"]
    for command in (
        [*build, "--add-to-library", "genomes.fa", "--no-masking"],
        [*build, "--build"],
        ["kraken2", "--db", "db", "reads.fa", "--report", "report", "--output", "assigned"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    taxids = [int(line.split("\t")[2]) for line in (tmp_path / "assigned").read_text().splitlines()]
    assert {0, 9606, 131567, 314146} <= set(taxids)
    tree = read_dump(tmp_path / "db" / "taxonomy")

    def columns(report):
        rows = [line.split("\t") for line in report.splitlines()]
        return [[*row[:3], row[3].translate({ord("R"): None, ord("D"): None}), *row[4:]] for row in rows]

    theirs = columns((tmp_path / "report").read_text())
    ours = columns(written("kraken", **queries_of(tree, taxids)))
    assert ours == theirs
    assert len(ours) > 60
