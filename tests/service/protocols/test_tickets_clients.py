"""Unmodified clients of ColabFold's server: their functions, with only the address of the server changed.

Expected values: `swsearch query` with the E-values and numbers of hits of ``docs/service/protocols.md``.
"""

import csv
import io
import re
import subprocess

import pytest

from tests.peers import module
from tests.service.protocols.ticket_service import ENGB, OBG, S6, report_of_query, ticket_service

colabfold = module("colabfold.colabfold")
boltz = module("boltz.data.msa.mmseqs2")
pytestmark = [
    pytest.mark.peer("colabfold", "boltz", "hhfilter"),
    # Both clients leave the files that they read to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]
MSA = ("--evalue", "0.1", "--top", "10000", "--iterations", "3")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with ticket_service(tmp_path_factory.mktemp("tickets")) as running:
        yield running


def rows(a3m: str) -> list[tuple[str, str]]:
    """First word of the header, and letters, of each row."""
    lines = a3m.splitlines()
    return [(header[1:].split()[0], row) for header, row in zip(lines[::2], lines[1::2], strict=True)]


def expected_rows(service, folder, database, sequences, place):
    """The rows of one sequence, made from the aligned letters of the tabular report."""
    fields = ("--format", "tsv", "--fields", "qseqid sseqid qstart qend qseq sseq")
    report = report_of_query(service.settings, folder, database, sequences, *MSA, *fields).decode()
    query = sequences[place]
    found = [(str(101 + place), query)]
    for hit in csv.DictReader(io.StringIO(report), delimiter="\t"):
        if hit["qseqid"] == str(101 + place):
            pairs = zip(hit["qseq"], hit["sseq"], strict=True)
            row = "".join(b.lower() if a == "-" else b for a, b in pairs)
            before, after = int(hit["qstart"]) - 1, len(query) - int(hit["qend"])
            found.append((hit["sseqid"], "-" * before + row + "-" * after))
    return found


def rows_of_hhsuite(a3m: str, folder) -> list[tuple[str, str]]:
    """The rows that HH-suite reads and writes again."""
    (folder / "read.a3m").write_text(a3m)
    files = ["-i", folder / "read.a3m", "-o", folder / "written.a3m"]
    subprocess.run(["hhfilter", *files, "-id", "100", "-v", "0"], check=True)
    return rows((folder / "written.a3m").read_text())


def test_colabfold_gets_the_hits_of_a_query_in_both_databases(service, tmp_path):
    """Several sequences, one of them twice, as for a homodimer with another chain."""
    found = colabfold.run_mmseqs2(
        [ENGB, OBG, ENGB], str(tmp_path / "a"), use_env=True, host_url=service.plain.url, user_agent="test"
    )
    assert found[0] == found[2]
    for place, a3m in enumerate(found[:2]):
        wanted = [
            expected_rows(service, tmp_path, database, [ENGB, OBG], place) for database in ("first.db", "second.db")
        ]
        assert rows(a3m) == [*wanted[0], *wanted[1]]
        assert min(map(len, wanted)) > 10
        assert rows_of_hhsuite(a3m, tmp_path) == rows(a3m)
        assert {len(re.sub("[a-z]", "", row)) for _, row in rows(a3m)} == {len((ENGB, OBG)[place])}


def test_colabfold_without_environment_and_without_templates_found(service, tmp_path):
    found, templates = colabfold.run_mmseqs2(
        ENGB, str(tmp_path / "b"), use_env=False, use_templates=True, host_url=service.plain.url, user_agent="test"
    )
    assert rows(found[0]) == expected_rows(service, tmp_path, "first.db", [ENGB], 0)
    assert templates == [None]


def paired_names(service, folder, database, chains, needed) -> set[tuple[str, ...]]:
    """The identifiers of one row of all chains, from the best hits of each organism in the tabular report."""
    options = ["--evalue", "0.001", "--top", "10000", "--iterations", "3"]
    options += ["--format", "tsv", "--fields", "qseqid sseqid ssciname"]
    report = report_of_query(service.settings, folder, database, chains, *options).decode()
    best: list[dict[str, str]] = [{} for _ in chains]
    for hit in csv.DictReader(io.StringIO(report), delimiter="\t"):
        best[int(hit["qseqid"]) - 101].setdefault(hit["ssciname"], hit["sseqid"])
    return {
        tuple(of_chain.get(organism, "DUMMY") for of_chain in best)
        for organism in set().union(*best)
        if sum(organism in of_chain for of_chain in best) >= needed
    }


@pytest.mark.parametrize(("strategy", "chains"), [("greedy", [ENGB, OBG, S6]), ("complete", [ENGB, OBG])])
def test_colabfold_pairs_by_organism(service, tmp_path, strategy, chains):
    """Of an organism with hits for two of three chains, the third row is a gap. The second database follows."""
    use_env = strategy == "complete"
    found = colabfold.run_mmseqs2(
        chains, str(tmp_path / "c"), use_env=use_env, use_pairing=True, pairing_strategy=strategy,
        host_url=service.plain.url, user_agent="test",
    )  # fmt: skip
    chain_rows = [rows(a3m) for a3m in found]
    names = [tuple(name for name, _ in aligned) for aligned in zip(*chain_rows, strict=True)]
    queries = tuple(str(number) for number in range(101, 101 + len(chains)))
    ends = [place for place, aligned in enumerate(names) if aligned == queries] + [len(names)]
    databases = ["first.db", "second.db"] if use_env else ["first.db"]
    assert (ends[0], len(ends)) == (0, len(databases) + 1)
    for database, start, end in zip(databases, ends[:-1], ends[1:], strict=True):
        wanted = paired_names(service, tmp_path, database, chains, 2)
        assert wanted
        assert set(names[start + 1 : end]) == wanted
        assert end - start - 1 == len(wanted)
    assert any("DUMMY" in aligned for aligned in names) == (strategy == "greedy")
    for chain, its_rows in zip(chains, chain_rows, strict=True):
        assert all((set(row) == {"-"}) == (name == "DUMMY") and len(row) >= len(chain) for name, row in its_rows)


def test_boltz_gets_the_hits_with_basic_and_with_a_key(service, tmp_path):
    url, token = service.guarded.url, service.guarded.tokens["ann"]
    wanted = expected_rows(service, tmp_path, "first.db", [OBG], 0)
    for place, access in enumerate(
        ({"msa_server_username": "ann", "msa_server_password": token}, {"auth_headers": {"X-API-Key": token}})
    ):
        (found,) = boltz.run_mmseqs2(OBG, str(tmp_path / str(place)), use_env=False, host_url=url, **access)
        assert rows(found) == wanted


def test_boltz_without_a_token_stops_at_once(service, tmp_path):
    """The status of the refusal is final, so the client raises, and does not ask for hours."""
    with pytest.raises(Exception, match="MMseqs2 API is giving errors"):
        boltz.run_mmseqs2(OBG, str(tmp_path / "d"), host_url=service.guarded.url)
    with pytest.raises(Exception, match="MMseqs2 API is giving errors"):
        colabfold.run_mmseqs2("MK1", str(tmp_path / "e"), host_url=service.plain.url, user_agent="test")
