"""Sensitivity and errors of iterated profile searches on SCOPe40, beside those of other programs.

    python benchmarks/benchmark_iterations.py scop40.fasta.gz background.fasta.gz --work build/iterations [--tools …]

A random sample of the domains is searched against all domains and the proteins of a background database, from which the
profiles of the second and third round learn. Only hits in SCOPe40 are judged, by ``scope.py``, which describes the
figures.

The E-values of the tools refer to the complete database. For the errors, they are multiplied by the share of SCOPe40 in
it: by residues, or by sequences for HMMER and hhblits, whose E-values count sequences. A calibrated tool then has x
false hits a query at E <= x. Profiles include hits up to an E-value of ``--inclusion`` in the complete database;
those of swsearch, up to its default.

jackhmmer's filters end its lists at an E-value of about 0.3. Its profiles of each round are made with these filters;
the list that is judged comes from ``hmmsearch`` with these profiles on SCOPe40 and with wider filters
(``--F1 0.3 --F2 0.1 --F3 0.02``). Its first round is the search of phmmer.

hhblits of HH-suite compares profiles; each sequence of its database is an alignment of its own (``hhsuite.py``). It
runs with its defaults; the list is that of ``-blasttab``, which has every subject that was aligned.

Finished parts of the sample are kept under ``--work``, so a run that was stopped goes on. The results are judged on the
parts that every named tool has finished, and written to ``--out``, where the results of other tools on the same queries
remain. Samples of different sizes have different domains. Each round of a tool has its figures, those of the clean
judgement, and for tools other than ``--reference`` by how much the reference finds more in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hhsuite
import numpy as np
from provenance import commit, processor
from scope import JUDGEMENTS, Judged, judged, records

import swsearch

ROUNDS = (1, 2, 3)
SEED = 18
DEEPEST_EVALUE = 1000.0
"""Largest E-value of the lists, in the complete database, so that they contain 10 false hits per query."""
LIST_SIZE = 30_000
INCLUSION = 0.001
PART = 25
"""Number of queries in a part of the sample."""
BACKGROUND = "background_"
"""Beginning of the names of the background's proteins."""

Lists = list[dict[str, list[tuple[str, float]]]]
"""For each round of a tool, the hits of each query: domain and E-value."""


@dataclass(frozen=True)
class Data:
    """Files of a measurement, and the labels of the domains.

    Attributes
    ----------
    work : Path
        Folder of the files: ``domains.fasta``, ``all.fasta`` (with the background), ``blast.*``, ``mmseqs*``.
    letters : dict
        The sequence of each domain.
    sccs : dict
        The class of each domain.
    residues, sequences : tuple of int
        Of the domains, and of the complete database.
    inclusion : float
        Largest E-value of what other tools include in profiles.
    """

    work: Path
    letters: dict[str, str]
    sccs: dict[str, str]
    residues: tuple[int, int]
    sequences: tuple[int, int]
    inclusion: float = INCLUSION

    @property
    def all_fasta(self) -> Path:
        return self.work / "all.fasta"

    def queries(self, names: list[str], path: Path) -> Path:
        """Write a FASTA file of domains."""
        path.write_text("".join(f">{name}\n{self.letters[name]}\n" for name in names))
        return path


def prepare(domains: Path, background: Path | None, work: Path, inclusion: float = INCLUSION) -> Data:
    """The data, whose files are written unless they are there."""
    work.mkdir(parents=True, exist_ok=True)
    letters, sccs = {}, {}
    for header, sequence in records(domains):
        name, label = header.split()[:2]
        letters[name], sccs[name] = sequence, label
    others = [] if background is None else [sequence for _, sequence in records(background)]
    residues = sum(map(len, letters.values()))
    data = Data(
        work,
        letters,
        sccs,
        (residues, residues + sum(map(len, others))),
        (len(letters), len(letters) + len(others)),
        inclusion,
    )
    if not data.all_fasta.exists():
        data.queries(list(letters), work / "domains.fasta")
        with open(work / "writing.fasta", "w") as file:
            file.write((work / "domains.fasta").read_text())
            file.writelines(f">{BACKGROUND}{number}\n{sequence}\n" for number, sequence in enumerate(others))
        os.replace(work / "writing.fasta", data.all_fasta)
    return data


def call(*command: object) -> str:
    """Standard output of a program."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


# --- the tools: each returns the lists of some queries ---


def psiblast(data: Data, names: list[str], folder: Path) -> Lists:
    """PSI-BLAST, with its default composition-based statistics. Converged queries keep the list of the last round."""
    if not (data.work / "blast.pdb").exists():
        call("makeblastdb", "-in", data.all_fasta, "-dbtype", "prot", "-out", data.work / "blast")
    query = data.queries(names, folder / "query.fasta")
    text = call(
        "psiblast", "-query", query, "-db", data.work / "blast", "-num_iterations", ROUNDS[-1], "-num_threads", 1,
        "-inclusion_ethresh", data.inclusion, "-evalue", DEEPEST_EVALUE, "-max_target_seqs", LIST_SIZE,
        "-outfmt", "7 qseqid sseqid evalue",
    )  # fmt: skip
    lists: Lists = [{name: [] for name in names} for _ in ROUNDS]
    name, number = "", 0
    for line in text.splitlines():
        if line.startswith("# Iteration: "):
            number = int(line.split(": ")[1])
        elif line.startswith("# Query: "):
            name = line.split(": ")[1].split()[0]
            for later in lists[number - 1 :]:
                later[name] = []
        elif line and not line.startswith(("#", "Search has")):
            for later in lists[number - 1 :]:
                fields = line.split("\t")
                later[name].append((fields[1], float(fields[2])))
    return lists


def jackhmmer(data: Data, names: list[str], folder: Path) -> Lists:
    """jackhmmer's profiles of each round, and hmmsearch with wider filters on the domains."""
    lists: Lists = [{} for _ in ROUNDS]
    for name in names:
        query = data.queries([name], folder / "query.fasta")
        for old in folder.glob("profile-*.hmm"):
            old.unlink()
        call(
            "jackhmmer", "-N", ROUNDS[-1], "--incE", data.inclusion, "--noali", "--cpu", 0,
            "--chkhmm", folder / "profile", "-o", "/dev/null", query, data.all_fasta,
        )  # fmt: skip
        for number in ROUNDS:
            profile = folder / f"profile-{number}.hmm"
            if not profile.exists():  # converged in the round before
                lists[number - 1][name] = lists[number - 2][name]
                continue
            table = folder / "table"
            call(
                "hmmsearch", "--F1", 0.3, "--F2", 0.1, "--F3", 0.02, "-E", DEEPEST_EVALUE, "-Z", data.sequences[1],
                "--noali", "--cpu", 0, "-o", "/dev/null", "--tblout", table, profile, data.work / "domains.fasta",
            )  # fmt: skip
            rows = [line.split() for line in table.read_text().splitlines() if not line.startswith("#")]
            lists[number - 1][name] = [(row[0], float(row[4])) for row in rows]
    return lists


def mmseqs(data: Data, names: list[str], folder: Path) -> Lists:
    """MMseqs2 at its highest sensitivity."""
    if not (data.work / "mmseqs.dbtype").exists():
        call("mmseqs", "createdb", data.all_fasta, data.work / "mmseqs")
    call("mmseqs", "createdb", data.queries(names, folder / "query.fasta"), folder / "query")
    lists: Lists = []
    for number in ROUNDS:
        for old in folder.glob("result*"):
            old.unlink()
        shutil.rmtree(folder / "temporary", ignore_errors=True)
        call(
            "mmseqs", "search", folder / "query", data.work / "mmseqs", folder / "result", folder / "temporary",
            "-s", 7.5, "--num-iterations", number, "-e", DEEPEST_EVALUE, "--e-profile", data.inclusion,
            "--max-seqs", LIST_SIZE, "--threads", 1,
        )  # fmt: skip
        call("mmseqs", "convertalis", folder / "query", data.work / "mmseqs", folder / "result", folder / "table",
             "--format-output", "query,target,evalue", "--threads", 1)  # fmt: skip
        lists.append(_table((folder / "table").read_text(), names))
    return lists


def hhblits(data: Data, names: list[str], folder: Path) -> Lists:
    """hhblits with its defaults, on a database of single sequences."""
    database = data.work / "hhsuite" / "db"
    lists: Lists = [{} for _ in ROUNDS]
    for name in names:
        query, table = data.queries([name], folder / "query.fasta"), folder / "table"
        last = ROUNDS[-1]
        while last:
            command = ["hhblits", "-i", query, "-d", database, "-n", last, "-e", data.inclusion, "-cpu", 1]
            command += ["-o", "/dev/null", "-blasttab", table]
            log = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
            converged = re.search(r"No new hits found in iteration (\d+)", log.stdout + log.stderr)
            rows = [line.split("\t") for line in table.read_text().splitlines()]
            hits = [(row[1], float(row[10])) for row in rows if float(row[10]) <= DEEPEST_EVALUE]
            first = int(converged[1]) if converged else last
            for number in range(first, last + 1):  # a round without new hits is the last
                lists[number - 1][name] = hits
            last = first - 1
    return lists


def ssearch(data: Data, names: list[str], folder: Path) -> Lists:
    """FASTA's exhaustive search, which has one round. Its E-values come from the scores of all subjects of a query."""
    query = data.queries(names, folder / "query.fasta")
    text = call("ssearch36", "-q", "-T", 1, "-m", 8, "-E", DEEPEST_EVALUE, query, data.all_fasta)
    rows = [line.split("\t") for line in text.splitlines()]
    return [_table("".join(f"{row[0]}\t{row[1]}\t{row[10]}\n" for row in rows), names)]


def _table(text: str, names: list[str]) -> dict[str, list[tuple[str, float]]]:
    """The lists of lines of query, subject and E-value, separated by tabulators."""
    found: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    for line in text.splitlines():
        query, subject, evalue = line.split("\t")
        found[query].append((subject, float(evalue)))
    return found


def ours(**changes: Any) -> Callable[[Data, list[str], Path], Lists]:
    """swsearch on the CPU engine with one thread."""

    def search(data: Data, names: list[str], folder: Path) -> Lists:
        database = data.work / "swsearch.db"
        if not database.exists():
            swsearch.build_database(data.all_fasta, database)
        query = data.queries(names, folder / "query.fasta")
        lists: Lists = []
        for number in ROUNDS:
            rounds = {} if number == 1 else {"iterations": number}
            options = swsearch.SearchOptions(top=LIST_SIZE, evalue=DEEPEST_EVALUE, **rounds, **changes)
            found: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
            for result in swsearch.search_database(query, database, options, engine="cpu", threads=1):
                for hit in result.hits:
                    found[hit.query_id].append((hit.subject_id, hit.evalue))
            lists.append(found)
        return lists

    return search


TOOLS: dict[str, Callable[[Data, list[str], Path], Lists]] = {
    "psiblast": psiblast,
    "jackhmmer": jackhmmer,
    "mmseqs": mmseqs,
    "swsearch": ours(),
    "swsearch none": ours(composition="none"),
    "swsearch bias": ours(composition="bias"),
    "swsearch sensitive": ours(sensitive=True),
    "hhblits": hhblits,
    "ssearch": ssearch,
}
COUNTS_SEQUENCES = ("jackhmmer", "hhblits")


def versions() -> dict[str, str]:
    """The versions of the programs that are installed."""
    commands = {
        "psiblast": (("psiblast", "-version"), r"psiblast: (\S+)"),
        "jackhmmer": (("jackhmmer", "-h"), r"HMMER (\S+)"),
        "mmseqs": (("mmseqs", "version"), r"(\S+)"),
        "hhblits": (("hhblits", "-h"), r"HHblits (\S+)"),
        "ssearch": (("ssearch36", "-h"), r"version: (\S+)"),
    }
    found = {"swsearch": swsearch.__version__}
    for tool, (command, pattern) in commands.items():
        if shutil.which(command[0]):
            printed = subprocess.run(command, capture_output=True, text=True, check=False)
            match = re.search(pattern, printed.stdout + printed.stderr)
            found[tool] = match[1].rstrip(":") if match else "unknown"
    return found


def search_part(tool: str, data: Data, names: list[str], number: int) -> dict[str, Any]:
    """The lists of a part of the sample, from ``--work`` or from a search."""
    kept = data.work / f"{tool.replace(' ', '_')}-{number}.json"
    if not kept.exists():
        folder = data.work / f"run-{tool.replace(' ', '_')}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if tool == "hhblits":  # takes longer than the searches of a part
            hhsuite.build(data.all_fasta, data.work / "hhsuite" / "db")
        began = _cpu_seconds()
        lists = [
            {query: [row for row in hits if row[0] in data.sccs] for query, hits in found.items()}
            for found in TOOLS[tool](data, names, folder)
        ]
        new = {"seconds": _cpu_seconds() - began, "cpu": processor(), "lists": lists}
        kept.with_suffix(".new").write_text(json.dumps(new))
        os.replace(kept.with_suffix(".new"), kept)
    part: dict[str, Any] = json.loads(kept.read_text())
    return part


def judged_rounds(parts: list[dict[str, Any]], sccs: dict[str, str], share: float) -> list[Judged]:
    """The judgement of each round of all parts; E-values are multiplied by ``share``."""
    return [
        judged({q: [(name, x * share) for name, x in hits] for one in lists for q, hits in one.items()}, sccs)
        for lists in zip(*(part["lists"] for part in parts), strict=True)
    ]


def figures(found: Judged) -> dict[str, Any]:
    """The figures of a round."""
    return found.figures("all") | {"clean": found.figures("clean")}


def _cpu_seconds() -> float:
    """CPU time of this process and of the programs that it has called."""
    called = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + called.ru_utime + called.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domains", type=Path, help="FASTA of SCOPe domains, with headers `>domain sccs`")
    parser.add_argument("background", type=Path, nargs="?", help="FASTA from which profiles learn")
    parser.add_argument("--work", type=Path, required=True, help="folder for the files of the tools")
    parser.add_argument("--queries", type=int, default=300, help="size of the sample; each needs its own --work")
    parser.add_argument("--seed", type=int, default=SEED, help="of the sample; each needs its own --work")
    parser.add_argument(
        "--inclusion", type=float, default=INCLUSION, help="of the other tools' profiles; each needs its own --work"
    )
    parser.add_argument("--tools", default=",".join(TOOLS), help="some of these, with commas")
    parser.add_argument("--reference", default="swsearch sensitive", help="the tool with which others are compared")
    parser.add_argument("--judge", action="store_true", help="search nothing; judge the parts that are finished")
    out = Path(__file__).parent / "results" / "iterations.json"
    parser.add_argument("--out", type=Path, default=out, help="the result, as JSON")
    options = parser.parse_args()
    data = prepare(options.domains, options.background, options.work, options.inclusion)
    rng = np.random.default_rng(options.seed)
    sample = [list(data.sccs)[index] for index in rng.choice(len(data.sccs), options.queries, replace=False).tolist()]
    parts = [sample[start : start + PART] for start in range(0, len(sample), PART)]
    tools = options.tools.split(",")
    finished = 0
    for number, names in enumerate(parts):
        if options.judge:
            if not all((data.work / f"{tool.replace(' ', '_')}-{number}.json").exists() for tool in tools):
                break
        else:
            for tool in tools:
                seconds = search_part(tool, data, names, number)["seconds"]
                print(f"part {number + 1} of {len(parts)}: {tool} {seconds:.0f} s of CPU time", flush=True)
        finished = number + 1
    found: dict[str, list[Judged]] = {}
    rows: dict[str, Any] = {}
    for tool in tools:
        held = [search_part(tool, data, parts[number], number) for number in range(finished)]
        counted = data.sequences if tool in COUNTS_SEQUENCES else data.residues
        found[tool] = judged_rounds(held, data.sccs, counted[0] / counted[1])
        rows[tool] = {
            "rounds": {str(number): figures(one) for number, one in zip(ROUNDS, found[tool], strict=False)},
            "cpu_seconds": round(sum(part["seconds"] for part in held)),
            "inclusion": swsearch.SearchOptions().inclusion_evalue if tool.startswith("swsearch") else data.inclusion,
            "cpu": ", ".join(sorted({part["cpu"] for part in held})),
            "commit": commit(),
        }
    for tool in found.keys() - {options.reference} if options.reference in found else ():
        pairs = zip(rows[tool]["rounds"].values(), found[options.reference], found[tool], strict=False)
        for of_round, reference, one in pairs:
            of_round[f"gain of {options.reference}"] = {name: reference.gain(one, name) for name in JUDGEMENTS}
    print(json.dumps(rows, indent=2))
    background = "" if options.background is None else f" and {options.background.name}"
    searched = sum(map(len, parts[:finished]))
    result: dict[str, Any] = {
        "data": f"{options.domains.name}{background}: {data.sequences[0]:,} of {data.sequences[1]:,} sequences and "
        f"{data.residues[0]:,} of {data.residues[1]:,} residues are of SCOPe40",
        "queries": f"the first {searched} of {options.queries} random domains, seed {options.seed}",
        "versions": versions(),
        "tools": rows,
    }
    if options.out.exists():
        earlier = json.loads(options.out.read_text())
        if all(earlier[key] == result[key] for key in ("data", "queries")):
            for key in ("versions", "tools"):
                result[key] = earlier[key] | result[key]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
