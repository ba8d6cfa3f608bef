"""Hidden Markov models as queries, and the domains of proteins, beside HMMER.

    python benchmarks/benchmark_domains.py scop40.fasta.gz background.fasta.gz proteins.fasta.gz --work build/domains

The models are made by ``hmmbuild`` of alignments that ``swsearch msa`` makes of SCOPe domains and their relatives among
the background proteins.

1. *Relatives.* Each model is searched against all domains, by ``swsearch query`` with and without ``--sensitive`` and
   by ``hmmsearch`` with its filters. ``scope.py`` describes the figures. ``usual gaps`` are those of other queries in
   place of the model's own.
2. *Domains.* ``swsearch domains`` and ``hmmsearch`` find the models in the proteins, with the number of models as the
   number of targets (``-Z``), so that E-values are those of ``hmmscan``. ``hmmscan`` itself, which takes longer, finds
   them in the first tenth of the proteins. A family in a protein counts if its E-value and that of its best domain are
   up to a limit; ``median difference`` is that of the scores of domains in bits.
3. *One protein.* The first protein is searched with a library of 4,000 models, the same ones under other names: by
   ``swsearch domains`` for the first time and again, and by ``hmmscan`` after ``hmmpress``; medians of three runs.

Programs run with ``--threads`` threads; seconds are those of whole commands.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmark_sensitivity import database_of
from provenance import commit, processor
from scope import JUDGEMENTS, judged, records

import swsearch
from swsearch.query.profile import ProfileModel
from swsearch.query.profile_files import read_profiles
from swsearch.scoring.matrix import named_matrix

REPORTED = (1e-5, 1e-3, 1e-2)
LARGE = 4000
"""Number of models of the library with which one protein is searched."""
SEED = 395


def run(*command: object) -> float:
    """Run a command; the seconds that it takes."""
    began = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    return round(time.perf_counter() - began, 2)


def make_models(names: list[str], letters: dict[str, str], background: Path, work: Path) -> Path:
    """The models of some domains, in one file."""
    models = work / "models.hmm"
    if models.exists():
        return models
    database = database_of([(h.split()[0], one.upper()) for h, one in records(background)], work / "background.db")
    with open(work / "models.part", "w") as file:
        for number, name in enumerate(names):
            query, aligned, model = (work / f"one.{suffix}" for suffix in ("fasta", "sto", "hmm"))
            query.write_text(f">{name}\n{letters[name]}\n")
            run("swsearch", "msa", query, database, "--quiet", "--out", aligned)
            run("hmmbuild", "--amino", "-n", f"model{number}", model, aligned)
            file.write(model.read_text().replace(f"NAME  model{number}", f"NAME  {name}", 1))
    return (work / "models.part").rename(models)


def table(path: Path) -> Iterator[list[str]]:
    return (line.split() for line in path.read_text().splitlines() if not line.startswith("#"))


def relatives(models: Path, sccs: dict[str, str], work: Path, threads: int) -> dict[str, Any]:
    """What each search finds among the domains."""
    profiles = read_profiles(models, "hmm", named_matrix("BLOSUM62"))
    names = [one.identifier for one in profiles]
    usual = [
        replace(one, model=ProfileModel.of_columns(one.model.columns)) for one in profiles if one.model is not None
    ]
    searches = {"plain": (profiles, False), "sensitive": (profiles, True), "sensitive, usual gaps": (usual, True)}
    seconds: dict[str, float] = {}
    lists: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for name, (queries, sensitive) in searches.items():
        began = time.perf_counter()
        asked = swsearch.SearchOptions(sensitive=sensitive, evalue=100.0, top=100_000)
        results = swsearch.search_database(queries, work / "domains.db", asked, engine="cpu", threads=threads)
        lists[name] = {one.header.split()[0]: [(hit.subject_id, hit.evalue) for hit in one.hits] for one in results}
        seconds[name] = round(time.perf_counter() - began, 1)
    command = ["hmmsearch", "--cpu", threads, "--noali", "-E", 100, "--domE", 100, "-o", "/dev/null", "--tblout"]
    seconds["hmmsearch"] = run(*command, work / "relatives.txt", models, work / "domains.fasta")
    lists["hmmsearch"] = {name: [] for name in names}
    for fields in table(work / "relatives.txt"):
        lists["hmmsearch"][fields[2]].append((fields[0], float(fields[4])))
    summary: dict[str, Any] = {}
    for name, of_queries in lists.items():
        found = judged(of_queries, sccs)
        summary[name] = {"seconds": seconds[name]} | {which: found.figures(which) for which in JUDGEMENTS}
    return summary


def domains(models: Path, n_models: int, proteins: Path, work: Path, threads: int) -> dict[str, Any]:
    """What is found in the proteins, and how long it takes."""
    sequences = [(header.split()[0], letters.upper()) for header, letters in records(proteins)]
    database = database_of(sequences, work / "proteins.db")
    ours, theirs, scanned = (work / name for name in ("ours.txt", "theirs.txt", "scanned.txt"))
    some = work / "some.fasta"
    some.write_text("".join(f">{name}\n{letters}\n" for name, letters in sequences[: len(sequences) // 10]))
    options = ["--thresholds", "none", "--overlaps", "--format", "domtblout", "--quiet", "--threads", threads]
    hmmer = ["--cpu", threads, "-o", "/dev/null", "--noali", "-E", REPORTED[-1], "--domE", REPORTED[-1], "--domtblout"]
    run("hmmpress", "-f", models)
    seconds = {
        "swsearch domains": run("swsearch", "domains", database, models, *options, "--out", ours),
        "hmmsearch": run(
            "hmmsearch", "-Z", n_models, "--domZ", n_models, *hmmer, theirs, models, work / "proteins.fasta"
        ),
        "hmmscan, a tenth": run("hmmscan", *hmmer, scanned, models, some),
        "swsearch domains, a tenth": run("swsearch", "domains", some, models, *options, "--out", work / "some.txt"),
    }
    best: dict[str, dict[tuple[str, str], tuple[float, float]]] = {"swsearch domains": {}, "hmmsearch": {}}
    for name, path, key in (("swsearch domains", ours, (0, 3)), ("hmmsearch", theirs, (3, 0))):
        for fields in table(path):
            family = fields[key[0]], fields[key[1]]
            one = max(float(fields[6]), float(fields[12])), float(fields[13])
            best[name][family] = min(best[name].get(family, (np.inf, 0.0)), one)
    found = {}
    for limit in REPORTED:
        sets = [{family for family, (evalue, _) in of.items() if evalue <= limit} for of in best.values()]
        both = sets[0] & sets[1]
        differences = [best["swsearch domains"][one][1] - best["hmmsearch"][one][1] for one in both]
        found[str(limit)] = {
            "swsearch domains": len(sets[0]),
            "hmmsearch": len(sets[1]),
            "both": len(both),
            "of hmmsearch, not reported at any E-value": len(sets[1] - best["swsearch domains"].keys()),
            "median difference": round(float(np.median(differences)), 3),
            "differences above 1 bit": round(float(np.mean(np.abs(differences) > 1.0)), 4),
        }
    return {"proteins": len(sequences), "seconds": seconds, "families in proteins": found}


def one_protein(models: Path, proteins: Path, work: Path, threads: int) -> dict[str, Any]:
    """How long a large library takes with one protein."""
    header, letters = next(iter(records(proteins)))
    protein, library, cache = work / "one.fasta", work / "large.hmm", work / "cache"
    protein.write_text(f">{header}\n{letters.upper()}\n")
    several = [text.lstrip() for text in models.read_text().split("//\n") if text.strip()]
    with open(library, "w") as file:
        for number in range(LARGE):
            text = several[number % len(several)]
            file.write(re.sub(r"^NAME .*", f"NAME  model{number}", text, count=1, flags=re.MULTILINE) + "//\n")
    ours = ["env", f"XDG_CACHE_HOME={cache}", "swsearch", "domains", protein, library, "--quiet", "--threads", threads]
    theirs = ["hmmscan", "--cpu", threads, "-o", "/dev/null", "--noali", library, protein]
    first = []
    for _ in range(3):
        shutil.rmtree(cache, ignore_errors=True)
        first.append(run(*ours))
    pressed = run("hmmpress", "-f", library)
    return {
        "models": LARGE,
        "bytes": library.stat().st_size,
        "bytes kept": sum(path.stat().st_size for path in cache.rglob("*.npz")),
        "seconds": {
            "swsearch domains, first": median(first),
            "swsearch domains, again": median(run(*ours) for _ in range(3)),
            "hmmpress": pressed,
            "hmmscan": median(run(*theirs) for _ in range(3)),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domains", type=Path, help="FASTA of SCOPe domains, with headers `>domain sccs`")
    parser.add_argument("background", type=Path, help="FASTA of proteins for the alignments")
    parser.add_argument("proteins", type=Path, help="FASTA of proteins whose domains are found")
    parser.add_argument("--work", type=Path, required=True, help="folder for databases and models")
    parser.add_argument("--models", type=int, default=300, help="number of models")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "domains.json")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    known = [(header.split()[0], header.split()[1], letters) for header, letters in records(options.domains)]
    sccs = {name: label for name, label, _ in known}
    letters_of = {name: letters for name, _, letters in known}
    database_of(list(letters_of.items()), options.work / "domains.db")
    order = np.random.default_rng(SEED).permutation(len(known))[: options.models]
    models = make_models([known[index][0] for index in order.tolist()], letters_of, options.background, options.work)
    result = {
        "commit": commit(),
        "processor": processor(),
        "threads": options.threads,
        "models": options.models,
        "relatives": relatives(models, sccs, options.work, options.threads),
        "domains": domains(models, options.models, options.proteins, options.work, options.threads),
        "one protein": one_protein(models, options.proteins, options.work, options.threads),
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
