"""Computes and draws the figures of docs/concepts/statistics.md.

    python docs/concepts/figures/plot_statistics.py

Run it in the repository's folder. ``measure`` computes every number that the figures show, by searches of generated and
of real sequences; the numbers are the same on every machine. They are written to ``docs/concepts/statistics.json``,
which a test compares with a new computation.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from theme import BLUE, FOLDER, GREEN, INK, ORANGE, new_figure, save

import swsearch
from swsearch.database.partition import Partition
from swsearch.query.profile import sequence_profile
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import default_scheme
from swsearch.scoring.ungapped import background
from swsearch.search.simulation import random_letters, score_all
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.fasta_text import write_pieces

DATA: Final = Path(__file__).resolve().parents[3] / "data"
N_QUERIES, QUERY_LENGTH = 10, 250
N_SUBJECTS, SUBJECT_LENGTH = 20_000, 350
LIMITS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SPACES: Final = (("653,184 residues", 653_184), ("200 million residues", 2e8), ("50 billion residues", 5e10))
QUERY_SEED, SUBJECT_SEED, SHUFFLE_SEED = 101, 102, 103


def statistics() -> Statistics:
    """The published parameters of BLOSUM62 11/1."""
    found = find_statistics(default_scheme(PROTEIN))
    assert isinstance(found, Statistics)
    return found


def chance() -> dict[str, Any]:
    """Random queries against random subjects: how many subjects reach each score, and how many are expected to."""
    frequencies = background(PROTEIN)
    queries = random_letters(QUERY_SEED, N_QUERIES * QUERY_LENGTH, frequencies).reshape(N_QUERIES, QUERY_LENGTH)
    subjects = random_letters(SUBJECT_SEED, N_SUBJECTS * SUBJECT_LENGTH, frequencies)
    partition = Partition.pack(list(subjects.reshape(N_SUBJECTS, SUBJECT_LENGTH)))
    scores = score_all([sequence_profile(query, default_scheme(PROTEIN)) for query in queries], partition)
    shown = np.arange(40, int(scores.max()) + 1)
    expected = statistics().evalue(shown, QUERY_LENGTH, SUBJECT_LENGTH, N_SUBJECTS * SUBJECT_LENGTH)
    return {
        "scores": shown.tolist(),
        "found": [int((scores >= score).sum()) / N_QUERIES for score in shown],
        "expected": [float(f"{value:.6g}") for value in expected],
    }


def write_shuffled(source: Path, target: Path) -> None:
    """Write a FASTA file of the sequences of another one, the residues of each in a random order."""
    uniform = np.full(2**8, 2.0**-8)
    with target.open("w", encoding="ascii") as file:
        for number, record in enumerate(read_sequences(source, PROTEIN)):
            keys = random_letters(SHUFFLE_SEED + number, 4 * len(record), uniform).view("<u4")
            letters = "".join(record.letters[place] for place in np.argsort(keys, kind="stable"))
            write_pieces(file, record.identifier, [letters])


def real() -> dict[str, Any]:
    """Real queries against real proteins and against the same proteins shuffled: hits with each E-value."""
    counts: dict[str, Any] = {"limits": list(LIMITS)}
    options = swsearch.SearchOptions(top=1500, evalue=max(LIMITS))
    with tempfile.TemporaryDirectory() as folder:
        shuffled = Path(folder) / "shuffled.fasta"
        write_shuffled(DATA / "proteins.fasta.gz", shuffled)
        for name, subjects in (("real", DATA / "proteins.fasta.gz"), ("shuffled", shuffled)):
            database = Path(folder) / f"{name}.db"
            swsearch.build_database([subjects], database)
            results = list(swsearch.search_database(DATA / "queries.fasta", database, options))
            evalues = np.array([hit.evalue for result in results for hit in result.hits])
            counts["queries"] = len(results)
            counts[name] = [int((evalues <= limit).sum()) for limit in LIMITS]
    return counts


def bits() -> dict[str, Any]:
    """The E-value of each raw score in search spaces of different sizes, for a query and subjects of 300 residues."""
    shown = np.arange(40, 251, 5)
    return {
        "bits": [float(f"{value:.6g}") for value in statistics().bits(shown)],
        "evalues": {
            name: [float(f"{value:.6g}") for value in statistics().evalue(shown, 300, 300, int(residues))]
            for name, residues in SPACES
        },
    }


def measure() -> dict[str, Any]:
    """All numbers of the figures."""
    return {"chance": chance(), "real": real(), "bits": bits()}


def draw(numbers: dict[str, Any]) -> None:
    """Write the figures."""
    one = numbers["chance"]
    figure = new_figure(5.6, 3.7)
    axes = figure.add_subplot(yscale="log", xlabel="raw score S", ylabel="subjects that score at least S")
    axes.plot(one["scores"], one["expected"], color=BLUE, label="E-value of S")
    axes.plot(
        one["scores"], one["found"], "o", color=ORANGE, markersize=4, label=f"counted, mean of {N_QUERIES} queries"
    )
    axes.legend()
    save(figure, "chance", "Number of random subjects that reach a score: counted, and predicted by the E-value")

    two = numbers["real"]
    figure = new_figure(5.6, 3.7)
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="E-value limit x", ylabel="hits a query with E ≤ x")
    axes.plot(LIMITS, LIMITS, color=INK, linestyle="--", linewidth=1.2, label="expected by chance")
    for name, colour, mark, label in (
        ("real", GREEN, "s", "1,500 proteins"), ("shuffled", ORANGE, "o", "the same proteins, shuffled"),
    ):  # fmt: skip
        shown = [(limit, count / two["queries"]) for limit, count in zip(LIMITS, two[name], strict=True) if count]
        axes.plot(*zip(*shown, strict=True), mark, color=colour, linestyle="-", markersize=5, label=label)
    axes.legend(loc="lower right")
    save(figure, "relatives", "Hits below an E-value limit among real and among shuffled proteins")

    three = numbers["bits"]
    figure = new_figure(5.6, 3.7)
    axes = figure.add_subplot(yscale="log", xlabel="bit score", ylabel="E-value", ylim=(1e-12, 1e3), xlim=(20, 80))
    for (name, values), colour in zip(three["evalues"].items(), (GREEN, BLUE, ORANGE), strict=True):
        axes.plot(three["bits"], values, color=colour, label=name)
    axes.axhline(0.001, color=INK, linestyle="--", linewidth=1.2)
    axes.text(79.5, 0.0015, "E = 0.001", horizontalalignment="right")
    axes.legend(title="search space", loc="lower left")
    save(figure, "bits", "E-value by bit score in search spaces of three sizes")


def main() -> None:
    """Compute, store and draw."""
    numbers = measure()
    (FOLDER / "statistics.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    draw(numbers)


if __name__ == "__main__":
    main()
