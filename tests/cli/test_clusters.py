"""``swsearch cluster`` and ``swsearch rbh``: their output, their pairs, and resumption.

Expected values: the lines of `swsearch allpairs` and `swsearch query`, networkx, and MMseqs2 for its own format.
"""

import json
import random
import signal
import subprocess

import networkx
import pytest

from swsearch.store.store import Store
from tests.support import protein_records

LINKED = ["--min-identity", "35", "--min-query-coverage", "50", "--min-subject-coverage", "50", "--quiet"]


@pytest.fixture
def fastas(tmp_path):
    """60 GTP-binding proteins, in few.fasta, and in odd.fasta and even.fasta half of them."""
    records = [record for record in protein_records() if "GTP" in record.partition("\n")[0]][:60]
    for name, chosen in {"few": records, "odd": records[::2], "even": records[1::2]}.items():
        (tmp_path / f"{name}.fasta").write_text("".join(chosen))
    return tmp_path


def lines(text):
    return [tuple(line.split("\t")) for line in text.splitlines()]


def clusters(text):
    found = {}
    for representative, member in lines(text):
        found.setdefault(representative, []).append(member)
    return found


# --- clusters ---


def test_components_are_those_of_the_pairs(swsearch, fastas):
    fields = ["--format", "blast6", "--fields", "qseqid sseqid", "--store", "none"]
    graph = networkx.Graph(lines(swsearch("allpairs", "few.fasta", *LINKED, *fields).out))
    outcome = swsearch(
        "cluster", "few.fasta", *LINKED, "--mode", "components", "--representatives", "r.fasta", "--store", "none"
    )
    found = clusters(outcome.out)
    expected = sorted(map(sorted, networkx.connected_components(graph)))
    assert sorted(sorted(members) for members in found.values() if len(members) > 1) == expected
    assert len(expected) > 3
    records = {
        record.split()[0]: record.partition("\n")[2].replace("\n", "")
        for record in (fastas / "few.fasta").read_text().split(">")[1:]
    }
    assert sorted(member for members in found.values() for member in members) == sorted(records)
    written = [record.partition("\n") for record in (fastas / "r.fasta").read_text().split(">")[1:]]
    assert [header.split()[0] for header, _, _ in written] == list(found)
    for header, _, letters in written:
        representative = header.split()[0]
        assert letters.replace("\n", "") == records[representative]
        assert len(records[representative]) == max(len(records[member]) for member in found[representative])


@pytest.mark.thorough
def test_another_mode_takes_the_stored_pairs(swsearch, fastas):
    """A resumed search computes nothing; one that is not resumed gives the same bytes."""
    stored = ["cluster", "few.fasta", *LINKED, "--store", "pairs.sqlite", "--resume", "latest"]
    assert swsearch(*stored, "--mode", "cover").code == 0
    again = {mode: swsearch(*stored, "--mode", mode).out for mode in ("cover", "length", "components")}
    with Store("pairs.sqlite") as store:
        assert [(run.id, run.state, run.n_queries) for run in store.runs.all()] == [(1, "finished", 60)]
    for mode, printed in again.items():
        assert swsearch("cluster", "few.fasta", *LINKED, "--store", "none", "--mode", mode).out == printed
    as_json = swsearch(*stored, "--format", "jsonl").out
    described = [json.loads(line) for line in as_json.splitlines()]
    assert {one["representative"]: one["members"] for one in described} == clusters(again["cover"])
    assert all(one["size"] == len(one["members"]) for one in described)


@pytest.mark.parametrize("command", ["cluster odd.fasta", "rbh odd.fasta even.fasta"])
def test_names_without_a_shard_are_those_that_were_given(swsearch, fastas, command):
    """Neither command has --shard, so that what is checked before the search is what is written."""
    (fastas / "odd.fasta").rename("1-of-1.fasta")
    stored = ["--store", "{shard}.sqlite", "--out", "{shard}.fasta", "--quiet"]
    assert swsearch(*command.replace("odd", "1-of-1").split(), *stored).code == 0
    assert {"1-of-1.fasta", "{shard}.fasta", "{shard}.sqlite"} <= {path.name for path in fastas.iterdir()}


@pytest.mark.thorough
def test_shares_of_the_pairs_are_clustered_together(swsearch, fastas):
    for shard in ("1/2", "2/2"):
        asked = ["--shard", shard, "--store", "{shard}.sqlite", "--format", "none"]
        assert swsearch("allpairs", "few.fasta", *LINKED, *asked).code == 0
    assert swsearch("runs", "merge", "{shard}.sqlite", "--store", "merged.sqlite").code == 0
    merged = swsearch("cluster", "few.fasta", *LINKED, "--store", "merged.sqlite", "--resume", "latest")
    assert merged.out == swsearch("cluster", "few.fasta", *LINKED, "--store", "none").out
    with Store("merged.sqlite") as store:
        assert [run.id for run in store.runs.all()] == [1]


@pytest.mark.thorough
def test_pairs_of_a_killed_search_are_kept(swsearch, spawn_paused, fastas):
    asked = ["cluster", "few.fasta", *LINKED]
    whole = swsearch(*asked, "--store", "none").out
    resumed = [*asked, "--store", "killed.sqlite", "--resume", "latest"]
    process = spawn_paused('Results, "add", 7', *resumed, "--out", "never.tsv")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Store("killed.sqlite") as store:
        assert store.runs.get("latest").n_queries == 7
    assert swsearch(*resumed).out == whole


@pytest.mark.thorough
@pytest.mark.peer("mmseqs")
def test_families_far_apart_are_the_clusters_of_mmseqs2(swsearch, tmp_path):
    """Twelve random families, whose members differ in a tenth of their residues: every method finds them."""
    random.seed(7)
    records = []
    for family in range(12):
        ancestor = random.choices("ARNDCQEGHILKMFPSTWYV", k=150 + 20 * family)
        for member in range(family % 4 + 1):
            letters = [random.choice("ARNDCQEGHILKMFPSTWYV") if random.random() < 0.1 else one for one in ancestor]
            records.append(f">f{family}m{member}\n{''.join(letters)}\n")
    random.shuffle(records)
    (tmp_path / "families.fasta").write_text("".join(records))
    command = ["mmseqs", "easy-cluster", "families.fasta", "out", "tmp", "--min-seq-id", "0.5", "-c", "0.8"]
    # One step with short words: the tables of three steps with words of 6 take a fivefold time for 30 sequences.
    command += ["--single-step-clustering", "-k", "5"]
    subprocess.run([*command, "--threads", "1", "-v", "0"], cwd=tmp_path, check=True)
    theirs = clusters((tmp_path / "out_cluster.tsv").read_text())
    asked = ["--min-identity", "50", "--min-query-coverage", "80", "--min-subject-coverage", "80", "--quiet"]
    for mode in ("cover", "length", "components"):
        ours = clusters(swsearch("cluster", "families.fasta", *asked, "--mode", mode, "--store", "none").out)
        assert sorted(map(sorted, ours.values())) == sorted(map(sorted, theirs.values()))
    assert len(theirs) == 12


# --- reciprocal best hits ---


def best(text):
    """The first line of each query."""
    found = {}
    for row in lines(text):
        found.setdefault(row[0], row)
    return found


@pytest.mark.thorough
def test_reciprocal_best_hits_are_those_of_two_searches(swsearch, fastas):
    found = lines(swsearch("rbh", "odd.fasta", "even.fasta", "--quiet", "--store", "none").out)
    asked = ["--evalue", "0.001", "--format", "blast6", "--quiet", "--store", "none"]
    there = best(swsearch("query", "odd.fasta", "even.fasta", *asked).out)
    back = best(swsearch("query", "even.fasta", "odd.fasta", *asked).out)
    expected = [row for name, row in there.items() if row[1] in back and back[row[1]][1] == name]
    assert found == expected
    assert len(there) > len(expected) > 5
    swapped = lines(swsearch("rbh", "even.fasta", "odd.fasta", "--quiet", "--store", "none").out)
    assert {(a, b) for a, b, *_ in found} == {(a, b) for b, a, *_ in swapped}


@pytest.mark.thorough
def test_both_searches_are_resumed(swsearch, spawn_paused, fastas):
    asked = ["rbh", "odd.fasta", "even.fasta", "--quiet", "--format", "json"]
    whole = swsearch(*asked, "--store", "none").out
    resumed = [*asked, "--store", "killed.sqlite", "--resume", "latest"]
    process = spawn_paused('Results, "add", 37', *resumed)  # in the second search
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert swsearch(*resumed).out == whole
    assert swsearch(*resumed).out == whole
    with Store("killed.sqlite") as store:
        assert [(run.state, run.n_queries) for run in store.runs.all()] == [("finished", 30)] * 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["rbh", "few.fasta", "reads.fasta"], "few.fasta is protein and reads.fasta is dna"),
        (["rbh", "few.fasta", "odd.fasta", "--resume", "1"], "say --resume latest"),
        (["allpairs", "few.fasta", "--lca-top", "5"], "format blast6 with these columns has no taxa of queries"),
        (["allpairs", "few.fasta", "--format", "none", "--lca-top", "5"], "say --format lca"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_stored(swsearch, fastas, arguments, problem):
    (fastas / "reads.fasta").write_text(">r\n" + "ACGTTGCA" * 10 + "\n")
    refused = swsearch(*arguments, "--store", "s.sqlite")
    assert problem in refused.refusal
    assert not (fastas / "s.sqlite").exists()
