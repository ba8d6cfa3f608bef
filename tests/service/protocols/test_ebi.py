"""EBI's job dispatcher: the sequence of requests that EBI documents, by a client of a few lines.

EBI's own clients are scripts that nobody packages. Expected hits: `swsearch query` for the same search.
"""

import base64
import json
from collections import Counter
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from Bio import Blast

from swsearch.report.registry import formats
from tests.service.protocols.expected import local_hits, protein, reads
from tests.service.servers import local_report

BASE = "/Tools/services/rest"
PERL_DEFAULTS = {
    "hsps": "false", "explowlim": "0", "hist": "false", "scores": "50", "alignments": "50", "scoreformat": "default",
    "stats": "1", "annotfeats": "false", "filter": "none", "transltable": "1", "email": "a@b.org", "debugLevel": "0",
    "maxJobs": "1", "outfile": "result",
}  # fmt: skip
"""What ``fasta.pl`` sends with every job, its own options among them."""


class Jobs:
    """A client of one tool."""

    def __init__(self, server, tool):
        self.server = server
        self.base = f"{BASE}/{tool}"

    def run(self, path="/run", **fields):
        """Status and text of a submission; a list is a parameter that is repeated."""
        body = urlencode(fields, doseq=True).encode()
        status, _, content = self.server.request(
            self.base + path, body, Content_Type="application/x-www-form-urlencoded"
        )
        return status, content.decode()

    def get(self, path, **headers):
        """Status and text of a request."""
        status, _, content = self.server.request(self.base + path, **headers)
        return status, content.decode()

    def finished(self, path="/run", **fields):
        """The id of a job, when it is finished."""
        status, job = self.run(path, **fields)
        assert status == 200, job
        while (state := self.get(f"/status/{job}")) == (200, "RUNNING"):
            pass
        assert state == (200, "FINISHED")
        return job


@pytest.fixture
def fasta(server):
    return Jobs(server, "fasta")


@pytest.fixture
def blast(server):
    return Jobs(server, "ncbiblast")


def test_a_protein_search_of_fasta(fasta, databases, tmp_path):
    """Gap open is the cost of the first residue, 11 of which 2 are of its length."""
    sent = {**PERL_DEFAULTS, "scores": "5", "alignments": "5", "gapopen": "-11", "gapext": "-2", "matrix": "BL62"}
    sent |= {"program": "ssearch", "stype": "protein", "database": "proteins.db", "sequence": protein()}
    job = fasta.finished(**sent, expupperlim="0.001")
    options = ["--top", "5", "--evalue", "0.001", "--matrix", "BLOSUM62", "--gap-open", "9", "--gap-extend", "2"]
    expected = local_hits(protein(), databases / "proteins.db", tmp_path, *options)
    _, listed = fasta.get(f"/resulttypes/{job}")
    types = {
        element.findtext("identifier"): (element.findtext("fileSuffix"), element.findtext("mediaType"))
        for element in ElementTree.fromstring(listed)
    }
    assert list(types) == ["out", "tsv", "xml", "json", "ids", "sequence", "parameters"]
    assert fasta.get(f"/result/{job}/ids") == (200, "".join(f"{hit.subject}\n" for hit in expected))
    (tmp_path / "query.fasta").write_text(protein())
    command = ["query", str(tmp_path / "query.fasta"), str(databases / "proteins.db"), *options, "--quiet"]
    reports = {"out": "pairwise", "tsv": "blast7", "xml": "xml", "json": "json2"}
    assert set(reports.values()) < set(formats())
    for name, form in reports.items():
        local = local_report([*command, "--store", "none", "--format", form], tmp_path)
        assert fasta.get(f"/result/{job}/{name}") == (200, local.decode())
    header, letters = protein().split("\n", 1)
    assert fasta.get(f"/result/{job}/sequence")[1] == f"{header}\n{letters.replace(chr(10), '')}\n"
    assert "gap_open=9\n" in fasta.get(f"/result/{job}/parameters")[1]


def test_a_dna_search_of_both_tools(fasta, blast, databases, tmp_path):
    """The same gap: 7 for its first residue is 5 for itself and 2 for its length."""
    options = ["--top", "50", "--match", "1", "--mismatch", "-2", "--gap-open", "5", "--gap-extend", "2"]
    expected = local_hits(reads(), databases / "lambda.db", tmp_path, *options)
    sent = {"stype": "dna", "database": "lambda.db", "sequence": reads(), "match_scores": "1,-2", "gapext": "2"}
    jobs = (
        (fasta, fasta.finished("/run/", program="fasta", gapopen="7", **sent)),
        (blast, blast.finished("/run/", program="blastn", gapopen="5", task="blastn", **sent)),
    )
    for tool, job in jobs:
        (*documents,) = json.loads(tool.get(f"/result/{job}/json")[1])["BlastOutput2"]
        hsps = [
            hsp
            for document in documents
            for hit in document["report"]["results"]["search"]["hits"]
            for hsp in hit["hsps"]
        ]
        found = [(hsp["score"], hsp["query_from"], hsp["query_to"], hsp["hit_from"], hsp["hit_to"]) for hsp in hsps]
        assert found == [(hit.score, *hit.query, *hit.target) for hit in expected]
        assert [hsp["evalue"] for hsp in hsps] == [pytest.approx(hit.evalue, rel=1e-5) for hit in expected]
        assert Counter(hsp["hit_strand"] for hsp in hsps) == {"Plus": 3, "Minus": 1}


def test_a_translated_search_of_ncbiblast(blast, databases, tmp_path):
    sent = {"program": "tblastn", "stype": "protein", "database": "lambda.db", "sequence": protein(), "exp": "1000"}
    job = blast.finished(**sent, hsps="2", compstats="F", transltable="11", gapopen="-1", gapext="-1")
    (tmp_path / "query.fasta").write_text(protein())
    command = ["query", str(tmp_path / "query.fasta"), str(databases / "lambda.db"), "--translate", "subject", "-q"]
    command += ["--evalue", "1000", "--top", "50", "--max-hsps", "2", "--genetic-code", "11", "--store", "none"]
    command += ["--composition", "none"]
    local = local_report([*command, "--format", "xml"], tmp_path).decode()
    assert blast.get(f"/result/{job}/xml") == (200, local)


def test_parameters_describe_themselves(fasta, blast):
    """Every parameter has a description with the elements that EBI's clients read."""
    for tool, own in ((fasta, "gapopen"), (blast, "task")):
        status, listed = tool.get("/parameters")
        assert tool.get("/parameters/") == (status, listed)
        names = [element.text for element in ElementTree.fromstring(listed).iter("id")]
        assert {"program", "database", "sequence", "stype", own} <= set(names)
        for name in names:
            described = ElementTree.fromstring(tool.get(f"/parameterdetails/{name}")[1])
            assert all(described.findtext(part) for part in ("name", "description", "type"))
            defaults = [value.findtext("defaultValue") for value in described.iter("value") if len(value)]
            assert defaults.count("true") == (1 if defaults else 0)
    database = ElementTree.fromstring(fasta.get("/parameterdetails/database")[1])
    assert [value.findtext("label") for value in database.find("values")] == ["few.db", "proteins.db", "lambda.db"]


def test_a_job_that_cannot_succeed_fails_with_the_reason(blast):
    """The list of results has two, because EBI's Perl client cannot read one."""
    sent = {"program": "blastp", "stype": "protein", "database": "few.db", "sequence": "MKVLAAG"}
    _, job = blast.run(**sent, taxids="999999999")
    while (state := blast.get(f"/status/{job}")[1]) == "RUNNING":
        pass
    assert state == "FAILURE"
    _, listed = blast.get(f"/resulttypes/{job}")
    assert [element.text for element in ElementTree.fromstring(listed).iter("identifier")] == ["error", "parameters"]
    assert "no subject of few.db passes" in blast.get(f"/result/{job}/error")[1]
    status, text = blast.get(f"/result/{job}/out")
    assert (status, "choose error, parameters" in text) == (400, True)


def test_a_job_that_runs_has_no_results(blast):
    sent = {"program": "blastp", "stype": "protein", "database": "proteins.db", "exp": "1e9"}
    _, job = blast.run(**sent, sequence="MKVLAAGIVGLCAKAYLEWT" * 5000)
    assert blast.get(f"/status/{job}", Prefer="wait=0") == (200, "RUNNING")
    status, text = blast.get(f"/resulttypes/{job}")
    assert (status, "this job is RUNNING" in text) == (409, True)
    key = base64.urlsafe_b64encode(base64.b32decode(job.partition("-")[2] + "======")).decode().rstrip("=")
    assert blast.server.client().cancel(key)["state"] == "cancelled"
    assert blast.get(f"/status/{job}") == (200, "FAILURE")
    assert blast.get(f"/result/{job}/error") == (200, "it was cancelled\n")


def test_refusals_are_in_the_element_that_clients_show(fasta, blast):
    usual = {"program": "ssearch", "stype": "protein", "database": "few.db", "sequence": "MKVLAAG"}
    for tool, status, message, fields in (
        (fasta, 400, "2 databases are named; a search here is of one", {"database": ["few.db", "proteins.db"]}),
        (fasta, 404, "there is no database 'uniprotkb'", {"database": "uniprotkb"}),
        (fasta, 400, "database is missing", {"database": ""}),
        (fasta, 400, "sequence is missing", {"sequence": ""}),
        (fasta, 400, "is a name of an entry", {"sequence": "uniprot:P01308"}),
        (fasta, 400, "program=fastx is not available", {"program": "fastx"}),
        (fasta, 400, "stype=dna, but ssearch searches with protein", {"stype": "dna"}),
        (fasta, 400, "choose blastx of the tool ncbiblast", {"sequence": "ACGT" * 20}),
        (fasta, 400, "gapopen=2: the first residue", {"gapopen": "2", "gapext": "3"}),
        (fasta, 400, "hits yourself", {"explowlim": "0.1"}),
        (fasta, 400, "fasta has no parameter", {"colour": "<red>"}),
        (fasta, 400, "seqrange is not available", {"seqrange": "3-9"}),
        (fasta, 400, "line 1, column 2", {"sequence": "M1"}),
        (blast, 400, "there is no program 'ssearch'", {}),
        (blast, 400, "blastn searches databases of DNA", {"program": "blastn", "stype": ""}),
        (blast, 400, "compstats=9", {"program": "blastp", "compstats": "9"}),
        (blast, 400, "task=blastp-short", {"program": "blastp", "task": "blastp-short"}),
        (blast, 400, "matrix=BLOSUM1 is not available", {"program": "blastp", "matrix": "BLOSUM1"}),
    ):
        found, text = tool.run(**{**usual, **fields})
        root = ElementTree.fromstring(text)
        assert (found, root.tag, root[0].tag) == (status, "error", "description")
        assert message in root[0].text
        assert str(tool.server.folder) not in text
    for job in ("nonsense", f"fasta-{'A' * 26}", f"ncbiblast-{'A' * 26}"):
        assert fasta.get(f"/status/{job}") == (200, "NOT_FOUND")
        assert fasta.get(f"/resulttypes/{job}")[0] == 404
    assert Jobs(fasta.server, "clustalo").get("/parameters")[0] == 400
    assert fasta.get("/parameterdetails/colour")[0] == 400


def test_ranges_and_strands(fasta, databases, tmp_path):
    sent = {
        "program": "ssearch",
        "database": "proteins.db",
        "sequence": protein(),
        "dbrange": "100-180",
        "hsps": "true",
    }
    job = fasta.finished(**sent)
    options = ["--min-length", "100", "--max-length", "180", "--max-hsps", "100", "--top", "50"]
    expected = local_hits(protein(), databases / "proteins.db", tmp_path, *options)
    found = fasta.get(f"/result/{job}/ids")[1].split()
    assert found == list(dict.fromkeys(hit.subject for hit in expected))
    job = fasta.finished(program="ssearch", database="lambda.db", sequence=reads(), strand="bottom")
    text = fasta.get(f"/result/{job}/xml", Accept="*/*")[1]
    (tmp_path / "answer.xml").write_text(text)
    with open(tmp_path / "answer.xml", "rb") as stream:
        counts = [len(record) for record in Blast.parse(stream)]
    expected = local_hits(reads(), databases / "lambda.db", tmp_path, "--strand", "minus", "--top", "50")
    assert sum(counts) == len(expected) > 0
