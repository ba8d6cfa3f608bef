"""Proteins in genomes beside tblastn and exonerate: what each finds, and the processor time of it.

    python benchmarks/benchmark_genomes.py --ecoli ecoli.fasta.gz --queries data/queries.fasta --fly chr2R.2M-7M.fa \\
        --proteins chr2R.2M-7M.aa --genes scipio.yaml --genes-gff scipio.gff \\
        --relatives swissprot.fasta.gz --n-genes 16 --out benchmarks/results/genomes.json

*E. coli*: the places of each query with E <= 10 of swsearch and of tblastn, without composition correction, masks and
sum statistics; a place is found by both if two alignments overlap on one strand.

*Drosophila* (augustus-doc of Debian: ``tutorial/data`` and ``tutorial/results``): proteins of genes with two exons or
more whose structure Scipio found completely, one for each gene, at equal distances in their order. Of each program the
best match counts: the chain with the smallest E-value (swsearch, tblastn), or the best alignment (exonerate). An exon
is found if half of its bases are aligned on its strand; a part of a match is wrong if no base of it is in an exon of
the gene. The same with the best relative of each protein in a sample of Swiss-Prot, with less than 90 % identity.
Seconds are of processor time, of one thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from provenance import commit, device_of

MAX_INTRON = 20_000
LIMIT = "1e-3"


class Interval(NamedTuple):
    """A part of a strand, 0-based and half-open."""

    start: int
    end: int
    strand: str

    def common(self, other: Interval) -> int:
        """Number of common bases."""
        if self.strand != other.strand:
            return 0
        return max(0, min(self.end, other.end) - max(self.start, other.start))


def run(*command: object) -> tuple[str, float]:
    """What a program prints, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def swsearch(*arguments: object) -> tuple[str, float]:
    """The same for a command of swsearch, on one thread and without a store."""
    common = ("--translate", "subject", "--threads", "1", "--store", "none", "--quiet")
    return run(Path(sys.executable).with_name("swsearch"), "query", *arguments, *common)


def read_fasta(path: Path) -> dict[str, str]:
    """The records of a FASTA file by identifier."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    records = [record.partition("\n") for record in text.split(">")[1:]]
    return {title.split()[0]: letters.replace("\n", "") for title, _, letters in records}


# --- E. coli ---


def places(table: str) -> dict[str, list[Interval]]:
    """The places of each query in a table of BLAST."""
    found: dict[str, list[Interval]] = {}
    for line in table.splitlines():
        columns = line.split("\t")
        first, last = int(columns[8]), int(columns[9])
        strand = "+" if first <= last else "-"
        found.setdefault(columns[0], []).append(Interval(min(first, last) - 1, max(first, last), strand))
    return found


def n_found(places: Iterable[Interval], others: list[Interval]) -> int:
    """Number of places that one of the others overlaps."""
    return sum(any(place.common(other) for other in others) for place in places)


def compare_in_ecoli(genome: Path, queries: Path, folder: Path) -> dict[str, Any]:
    """The places that swsearch and tblastn find."""
    fasta = folder / "ecoli.fasta"
    fasta.write_text("".join(f">{name}\n{letters}\n" for name, letters in read_fasta(genome).items()))
    run(Path(sys.executable).with_name("swsearch"), "index", fasta, "-o", folder / "ecoli.db", "--quiet")
    run("makeblastdb", "-in", fasta, "-dbtype", "nucl", "-out", folder / "ecoli")
    table, seconds = swsearch(queries, folder / "ecoli.db", "--format", "blast6", "--composition", "none")
    theirs, their_seconds = run(
        "tblastn", "-query", queries, "-db", folder / "ecoli", "-outfmt", "6", "-evalue", "10", "-seg", "no",
        "-comp_based_stats", "0", "-sum_stats", "false", "-num_threads", "1",
    )  # fmt: skip
    ours, blast = places(table), places(theirs)
    strong = places(_up_to(theirs, 1e-3))
    names = sorted({*ours, *blast})
    return {
        "queries": len(read_fasta(queries)),
        "swsearch": {"places": len(table.splitlines()), "seconds": round(seconds, 1)},
        "tblastn": {"places": len(theirs.splitlines()), "seconds": round(their_seconds, 1)},
        "of tblastn's, by swsearch": sum(n_found(blast.get(one, []), ours.get(one, [])) for one in names),
        "of swsearch's, by tblastn": sum(n_found(ours.get(one, []), blast.get(one, [])) for one in names),
        "of tblastn's with E <= 1e-3, by swsearch": [
            sum(n_found(of, ours.get(one, [])) for one, of in strong.items()),
            sum(map(len, strong.values())),
        ],
    }


def _up_to(table: str, evalue: float) -> str:
    return "\n".join(line for line in table.splitlines() if float(line.split("\t")[10]) <= evalue)


# --- Drosophila ---


def genes_of(yaml: Path, gff: Path) -> dict[str, list[Interval]]:
    """The exons of each protein whose gene Scipio found completely, by the protein's identifier."""
    exons: dict[str, list[Interval]] = {}
    for line in gff.read_text().splitlines():
        columns = line.split("\t")
        number = re.search(r'transcript_id "(\d+)"', line)
        if number is not None:
            interval = Interval(int(columns[3]) - 1, int(columns[4]), columns[6])
            exons.setdefault(number[1], []).append(interval)
    text = yaml.read_text(errors="replace")
    found = re.findall(r"^(\S+):\n  - ID: (\d+)\n    status: (\S+)\n", text, re.MULTILINE)
    return {name: exons[number] for name, number, status in found if status == "auto" and number in exons}


def chosen_genes(genes: dict[str, list[Interval]], n_genes: int) -> dict[str, list[Interval]]:
    """One protein for each gene with two exons or more, at equal distances in their order."""
    of_gene: dict[str, str] = {}
    for name in sorted(genes):
        if len(genes[name]) > 1:
            of_gene.setdefault(name.partition("-")[0], name)
    names = sorted(of_gene.values())
    step = max(1, len(names) // n_genes)
    return {name: genes[name] for name in names[::step][:n_genes]}


def of_swsearch(query: Path, folder: Path) -> tuple[list[Interval], float]:
    """The parts of the best match of swsearch."""
    out, seconds = swsearch(query, folder / "fly.db", "--max-intron", MAX_INTRON, "--evalue", LIMIT, "--format", "gff3")
    lines = [line.split("\t") for line in out.splitlines() if not line.startswith("#")]
    if not lines:
        return [], seconds
    best = lines[0][8].partition(";")[0].removeprefix("ID=")
    parts = [line for line in lines[1:] if f"Parent={best};" in line[8]] or lines[:1]
    return [Interval(int(line[3]) - 1, int(line[4]), line[6]) for line in parts], seconds


def of_tblastn(query: Path, folder: Path) -> tuple[list[Interval], float]:
    """The alignments with the best E-value of tblastn, which has chains by sum statistics."""
    out, seconds = run(
        "tblastn", "-query", query, "-db", folder / "fly", "-outfmt", "6 sstart send evalue", "-evalue", LIMIT,
        "-max_intron_length", MAX_INTRON, "-num_threads", "1",
    )  # fmt: skip
    lines = [line.split("\t") for line in out.splitlines()]
    best = [line for line in lines if line[2] == lines[0][2]]
    pairs = [(int(line[0]), int(line[1])) for line in best]
    found = [Interval(min(pair) - 1, max(pair), "+" if pair[0] <= pair[1] else "-") for pair in pairs]
    # Of several chains with the same E-value, such as 0.0, that with the first alignment counts.
    chain = found[:1]
    for one in sorted(found[1:], key=lambda one: abs(one.start - found[0].start)):
        near = min(max(one.start - other.end, other.start - one.end) for other in chain)
        if one.strand == chain[0].strand and near <= MAX_INTRON:
            chain.append(one)
    return chain, seconds


def of_exonerate(query: Path, folder: Path) -> tuple[list[Interval], float]:
    """The exons of the best alignment of exonerate with the model ``protein2genome``."""
    out, seconds = run(
        "exonerate", "--model", "protein2genome", "--query", query, "--target", folder / "fly.fasta",
        "--showtargetgff", "yes", "--showvulgar", "no", "--showalignment", "no", "--bestn", "1",
        "--maxintron", MAX_INTRON,
    )  # fmt: skip
    lines = [line.split("\t") for line in out.splitlines() if "\texon\t" in line]
    return [Interval(int(line[3]) - 1, int(line[4]), line[6]) for line in lines], seconds


PROGRAMS: dict[str, Callable[[Path, Path], tuple[list[Interval], float]]] = {
    "swsearch": of_swsearch,
    "tblastn": of_tblastn,
    "exonerate": of_exonerate,
}


def index_fly(genome: Path, folder: Path) -> None:
    """The databases of the chromosome."""
    fasta = folder / "fly.fasta"
    fasta.write_text(genome.read_text())
    run(Path(sys.executable).with_name("swsearch"), "index", fasta, "-o", folder / "fly.db", "--quiet")
    run("makeblastdb", "-in", fasta, "-dbtype", "nucl", "-out", folder / "fly")


def relatives_of(queries: dict[str, str], proteins: Path, folder: Path) -> dict[str, str]:
    """The best relative of each query that covers half of it and is less than 90 % identical, if it has one."""
    (folder / "queries.fasta").write_text("".join(f">{name}\n{letters}\n" for name, letters in queries.items()))
    records = read_fasta(proteins)
    (folder / "proteins.fasta").write_text("".join(f">{name}\n{letters}\n" for name, letters in records.items()))
    out, _ = run(
        Path(sys.executable).with_name("swsearch"), "query", folder / "queries.fasta", folder / "proteins.fasta",
        "--evalue", "1e-20", "--min-query-coverage", "50", "--format", "blast6", "--store", "none", "--quiet",
    )  # fmt: skip
    found: dict[str, str] = {}
    for line in out.splitlines():
        query, subject, identity = line.split("\t")[:3]
        if float(identity) < 90:
            found.setdefault(query, records[subject])
    return found


def compare_in_fly(letters: dict[str, str], genes: dict[str, list[Interval]], folder: Path) -> dict[str, Any]:
    """What each program finds of genes with the proteins ``letters``, which have their names."""
    genes = {name: genes[name] for name in letters}
    found: dict[str, Any] = {"genes": len(genes), "exons": sum(map(len, genes.values()))}
    for program, search in PROGRAMS.items():
        counts = {"genes": 0, "exons": 0, "exact exons": 0, "parts": 0, "wrong parts": 0}
        seconds = 0.0
        for name, exons in genes.items():
            query = folder / "query.fasta"
            query.write_text(f">{name}\n{letters[name]}\n")
            parts, time = search(query, folder)
            seconds += time
            covered = [sum(exon.common(part) for part in parts) for exon in exons]
            counts["genes"] += any(covered)
            counts["exons"] += sum(
                2 * bases >= exon.end - exon.start for exon, bases in zip(exons, covered, strict=True)
            )
            counts["exact exons"] += len({*exons} & {*parts})
            counts["parts"] += len(parts)
            counts["wrong parts"] += sum(not any(part.common(exon) for exon in exons) for part in parts)
        found[program] = {**counts, "seconds": round(seconds, 1)}
        print(program, found[program], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ecoli", "queries", "fly", "proteins", "genes", "genes-gff", "relatives"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--n-genes", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        genes = chosen_genes(genes_of(options.genes, options.genes_gff), options.n_genes)
        index_fly(options.fly, folder)
        letters = read_fasta(options.proteins)
        own = {name: letters[name] for name in genes}
        result = {
            "commit": commit(),
            **device_of("cpu"),
            "data": "E. coli K-12 MG1655 (NC_000913.3); chr2R:2M-7M of Drosophila with Scipio's genes (augustus-doc)",
            "ecoli": compare_in_ecoli(options.ecoli, options.queries, folder),
            "drosophila": compare_in_fly(own, genes, folder),
            "relatives": compare_in_fly(relatives_of(own, options.relatives, folder), genes, folder),
        }
    text = json.dumps(result, indent=2) + "\n"
    print(text)
    if options.out is not None:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
