"""What ``--sensitive`` finds on SCOPe40 beside the plain search, and its false hits among reversed proteins.

    python benchmarks/benchmark_sensitivity.py scop40.fasta.gz proteins.fasta.gz --work build/sensitivity
    python benchmarks/benchmark_sensitivity.py scop40.fasta.gz swissprot.fasta --work build/sensitivity --cost
    python benchmarks/benchmark_sensitivity.py scop40.fasta.gz --work build/sensitivity --contexts context_data.lib

1. A random sample of the domains is searched against all, once with ``--sensitive`` and once without. ``scope.py``
   describes the judgements and figures; ``gain`` is what ``--sensitive`` finds more.
2. Natural proteins of 30 to 2,000 residues are searched against others that are reversed, and against others whose
   residues are shuffled, so that all hits are false: at random, and those of three kinds, by :data:`KINDS`.

``--unrelated-only`` repeats the second part alone. ``--cost`` measures what a search costs instead, and adds it to the
results: of random proteins of 340 to 360 residues, each against all proteins with the usual lists, the processor time
with one thread, the elapsed time with two, and the number of candidates whose Forward scores are computed; this number
for the domains; and how fast a core computes columns and Forward scores, with each set of instructions that it has.
``--contexts`` searches the domains with the program's library of contexts and with that of a file; ``gain`` is what the
latter finds more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from provenance import commit, processor
from scope import JUDGEMENTS, LIMITS, judged, records

import swsearch
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.query.columns import column_model, implied_model
from swsearch.query.contexts import program_contexts
from swsearch.query.estimation import estimated_query
from swsearch.scoring.scheme import default_scheme
from swsearch.search.threshold import RESCORED_EVALUE
from swsearch.sequences.alphabet import PROTEIN

SEED = 39
SEARCHES = {"plain": swsearch.SearchOptions, "sensitive": lambda **more: swsearch.SearchOptions(sensitive=True, **more)}

HYDROPATHY = dict(zip("ARNDCQEGHILKMFPSTWYV", (
    1.8, -4.5, -3.5, -3.5, 2.5, -3.5, -3.5, -0.4, -3.2, 4.5, 3.8, -3.9, 1.9, 2.8, -1.6, -0.8, -0.7, -0.9, -1.3, 4.2,
), strict=True))  # fmt: skip
"""Of Kyte and Doolittle 1982 (doi 10.1016/0022-2836(82)90515-0)."""


def is_membrane(letters: str) -> bool:
    """Whether a protein has four segments of 19 residues with a mean hydropathy of at least 1.6."""
    sums = np.cumsum([0.0, *(HYDROPATHY[letter] for letter in letters)])
    starts = np.flatnonzero(sums[19:] - sums[:-19] >= 1.6 * 19).tolist()
    n_segments, free = 0, 0
    for start in starts:
        if start >= free:
            n_segments, free = n_segments + 1, start + 19
    return n_segments >= 4


def is_coiled_coil(letters: str) -> bool:
    """Whether a protein has eight heptads without P and G, of whose positions a and d 75 % are A, I, L, M or V, and of
    the others 40 % D, E, K, Q or R.
    """
    core = np.isin(list(letters), list("AILMV"))
    charged, broken = np.isin(list(letters), list("DEKQR")), np.isin(list(letters), list("PG"))
    inner = np.tile(np.isin(np.arange(7), (0, 3)), 8)
    for start in range(len(letters) - 55):
        part = slice(start, start + 56)
        if not broken[part].any() and core[part][inner].mean() >= 0.75 and charged[part][~inner].mean() >= 0.4:
            return True
    return False


def is_of_low_complexity(letters: str) -> bool:
    """Whether a fifth of a protein lies in windows of 12 residues with an entropy of at most 2.2 bits, as SEG's do."""
    is_low = np.zeros(len(letters), dtype=bool)
    for start in range(len(letters) - 11):
        shares = np.array([*Counter(letters[start : start + 12]).values()]) / 12
        is_low[start : start + 12] |= -(shares * np.log2(shares)).sum() <= 2.2
    return bool(is_low.mean() >= 0.2)


KINDS: dict[str, Callable[[str], bool]] = {
    "any": lambda letters: True,
    "membrane": is_membrane,
    "coiled coil": is_coiled_coil,
    "low complexity": is_of_low_complexity,
}
"""Kinds of natural proteins."""


def hits(
    queries: Path, database: Path, name: str, threads: int, evalue: float = 10.0, top: int = 100, **more: Any
) -> tuple[list[Any], float]:
    """The results of a search of a file of queries, and its processor time in seconds."""
    began = time.process_time()
    options = SEARCHES[name](top=top, evalue=evalue, **more)
    return list(swsearch.search_database(queries, database, options, engine="cpu", threads=threads)), (
        time.process_time() - began
    )


def database_of(proteins: list[tuple[str, str]], path: Path) -> Path:
    """A FASTA file of proteins and a database of it, which is returned."""
    fasta = path.with_suffix(".fasta")
    fasta.write_text("".join(f">{name}\n{letters}\n" for name, letters in proteins))
    if not path.exists():
        swsearch.build_database(fasta, path)
    return path


def spread(values: list[float]) -> dict[str, float]:
    """The smallest, the median and the largest of some values."""
    return {"least": min(values), "median": float(np.median(values)), "most": max(values)}


def n_candidates(queries: list[tuple[str, str]], database: Path) -> dict[str, float]:
    """The number of subjects of each query whose Forward scores are computed."""
    plain = swsearch.SearchOptions(evalue=RESCORED_EVALUE, composition="none", top=1)
    with swsearch.open_searcher(database, plain, engine="cpu") as searcher:
        records = [swsearch.sequence(letters, "protein", header=name) for name, letters in queries]
        rows = [np.empty((0, len(one)), dtype=np.uint8) for one in records]
        profiles = [
            estimated_query(one, none, searcher.scheme.matrix, contexts=program_contexts())
            for one, none in zip(records, rows, strict=True)
        ]
        return spread([result.n_passed for result in searcher.search(profiles)])


def cost(proteins: list[tuple[str, str]], domains: list[tuple[str, str]], work: Path, n: int) -> dict[str, Any]:
    """What searches of ``n`` proteins cost, one by one."""
    database = database_of(proteins, work / "proteins.db")
    usual = [one for one in proteins if 340 <= len(one[1]) <= 360]
    rng = np.random.default_rng(SEED)
    chosen = [usual[index] for index in rng.choice(len(usual), n, replace=False).tolist()]
    processor_time: dict[str, list[float]] = {name: [] for name in SEARCHES}
    elapsed: dict[str, list[float]] = {name: [] for name in SEARCHES}
    for name, letters in chosen:
        query = work / "query.fasta"
        query.write_text(f">{name}\n{letters}\n")
        for search in SEARCHES:
            processor_time[search].append(hits(query, database, search, 1)[1])
            began = time.perf_counter()
            hits(query, database, search, 2)
            elapsed[search].append(time.perf_counter() - began)
    more = {
        name: spread(np.round(np.subtract(of["sensitive"], of["plain"]), 2).tolist())
        for name, of in (("processor seconds", processor_time), ("seconds with two threads", elapsed))
    }
    return {
        "commit": commit(),
        "processor": processor(),
        "queries": n,
        "proteins": len(proteins),
        "plain, processor seconds": spread(np.round(processor_time["plain"], 2).tolist()),
        "plain, seconds with two threads": spread(np.round(elapsed["plain"], 2).tolist()),
        **{f"sensitive, {name} more": values for name, values in more.items()},
        "candidates": n_candidates(chosen, database),
        "candidates of domains": n_candidates(domains, work / "domains.db"),
        "of a core, columns in 1e6 residues and Forward in 1e9 cells a second": kernel_rates(usual, chosen[0][1]),
    }


def fastest(run: Callable[[], Any], times: int = 5) -> tuple[Any, float]:
    """What a function returns, and the least processor time that it takes, in seconds."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        result = run()
        seconds.append(time.process_time() - began)
    return result, min(seconds)


def kernel_rates(proteins: list[tuple[str, str]], query: str) -> dict[str, dict[str, float]]:
    """Million residues of subjects a second whose columns a core computes, and billion cells of Forward scores, for
    each set of instructions.
    """
    subjects = [PROTEIN.encode(letters) for _, letters in proteins[:3000]]
    residues = np.concatenate(subjects)
    lengths = np.array([len(one) for one in subjects], dtype=np.uint32)
    starts = (np.cumsum(lengths) - lengths).astype(np.uint64)
    matrix = default_scheme(PROTEIN).matrix
    record = swsearch.sequence(query, "protein")
    model = implied_model(
        estimated_query(record, np.empty((0, len(query)), dtype=np.uint8), matrix, contexts=program_contexts()), matrix
    )
    rates = {}
    for name in usable_instruction_sets():
        odds, columns_seconds = fastest(partial(column_model().odds, residues, starts, lengths, 1, name))
        _, forward_seconds = fastest(partial(odds.forward, model, 1, name))
        rates[name] = {
            "columns": round(len(residues) / columns_seconds / 1e6, 2),
            "Forward": round(len(residues) * len(query) / forward_seconds / 1e9, 2),
        }
    return rates


def on_domains(
    queries: Path, database: Path, sccs: dict[str, str], searches: dict[str, tuple[str, dict[str, Any]]], threads: int
) -> dict[str, Any]:
    """What two searches of domains find, each the name of its options and further ones, and the gain of the second."""
    result: dict[str, Any] = {"seconds a query on SCOPe40": {}}
    found = {}
    for name, (usual, more) in searches.items():
        results, seconds = hits(queries, database, usual, threads, 100.0, 100_000, **more)
        lists = {one.header.split()[0]: [(hit.subject_id, hit.evalue) for hit in one.hits] for one in results}
        found[name] = judged(lists, sccs)
        result["seconds a query on SCOPe40"][name] = round(seconds / len(results), 3)
    one, other = found.values()
    for which in JUDGEMENTS:
        result[which] = {name: judgement.figures(which) for name, judgement in found.items()}
        result[which]["gain"] = other.gain(one, which)
    return result


def against_unrelated(path: Path, rng: np.random.Generator, options: argparse.Namespace) -> dict[str, Any]:
    """The false hits of natural proteins of each kind among others that are reversed, or shuffled."""
    natural = [(header.split()[0], letters.upper()) for header, letters in records(path)]
    natural = [one for one in natural if 30 <= len(one[1]) <= 2000 and set(one[1]) <= HYDROPATHY.keys()]
    natural = [natural[index] for index in rng.permutation(len(natural)).tolist()]
    originals = [letters for _, letters in natural[: options.unrelated]]
    subjects = {
        "reversed": [letters[::-1] for letters in originals],
        "shuffled": ["".join(rng.permutation(list(letters))) for letters in originals],
    }
    queries = options.work / "natural.fasta"
    result: dict[str, Any] = {"commit": commit(), "subjects": options.unrelated}
    for change, changed in subjects.items():
        named = [(f"{change}{number}", letters) for number, letters in enumerate(changed)]
        database = database_of(named, options.work / f"{change}.db")
        result[change] = {}
        for kind, is_of_kind in KINDS.items():
            rest = natural[options.unrelated :]
            chosen = list(islice((one for one in rest if is_of_kind(one[1])), options.natural))
            queries.write_text("".join(f">{name}\n{letters}\n" for name, letters in chosen))
            result[change][kind] = {"queries": len(chosen)}
            for name in SEARCHES:
                results, _ = hits(queries, database, name, options.threads, LIMITS[-1], 100_000)
                evalues = np.array([hit.evalue for one in results for hit in one.hits])
                errors = {str(x): round(float((evalues <= x).sum() / len(chosen)), 4) for x in LIMITS}
                result[change][kind][name] = errors
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domains", type=Path, help="FASTA of SCOPe domains, with headers `>domain sccs`")
    parser.add_argument("proteins", type=Path, nargs="?", help="FASTA of natural proteins; not for --contexts")
    parser.add_argument("--work", type=Path, required=True, help="folder for databases")
    parser.add_argument("--queries", type=int, default=512, help="number of domains")
    parser.add_argument("--natural", type=int, default=200, help="number of natural proteins")
    parser.add_argument("--unrelated", type=int, default=3000, help="number of reversed proteins, and of shuffled")
    parser.add_argument("--unrelated-only", action="store_true", help="repeat the second part, and nothing else")
    parser.add_argument("--cost", action="store_true", help="measure the cost with all proteins, and nothing else")
    parser.add_argument("--contexts", type=Path, help="compare with this library of contexts, and nothing else")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.proteins is None and options.contexts is None:
        parser.error("name a FASTA file of natural proteins")
    if options.out is None:
        name = "sensitivity.json" if options.contexts is None else "contexts.json"
        options.out = Path(__file__).parent / "results" / name
    options.work.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    domains = [(header.split()[0], header.split()[1], letters) for header, letters in records(options.domains)]
    sccs = {name: label for name, label, _ in domains}
    letters_of = {name: letters for name, _, letters in domains}
    database = database_of(list(letters_of.items()), options.work / "domains.db")
    chosen = [domains[index][0] for index in rng.permutation(len(domains))[: options.queries].tolist()]
    result: dict[str, Any]
    if options.cost:
        proteins = [(header.split()[0], letters.upper()) for header, letters in records(options.proteins)]
        known = [(name, letters_of[name]) for name in chosen]
        result = json.loads(options.out.read_text()) | {"cost": cost(proteins, known, options.work, n=20)}
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        print(json.dumps(result["cost"], indent=2))
        return
    if options.unrelated_only:
        result = json.loads(options.out.read_text())
        result["unrelated"] = against_unrelated(options.proteins, rng, options)
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        print(json.dumps(result["unrelated"], indent=2))
        return
    queries = options.work / "queries.fasta"
    queries.write_text("".join(f">{name}\n{letters_of[name]}\n" for name in chosen))
    result = {"commit": commit(), "processor": processor(), "domains": len(chosen)}
    searches: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in SEARCHES}
    if options.contexts is not None:
        digest = hashlib.sha256(options.contexts.read_bytes()).hexdigest()
        result["contexts of the file"] = {"name": options.contexts.name, "sha256": digest}
        of_file = {"contexts": str(options.contexts)}
        searches = {"of the program": ("sensitive", {}), "of the file": ("sensitive", of_file)}
    result |= on_domains(queries, database, sccs, searches, options.threads)
    if options.contexts is None:
        result["unrelated"] = against_unrelated(options.proteins, rng, options)
        result["cost"] = json.loads(options.out.read_text()).get("cost") if options.out.exists() else None
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
