"""A server's searches and reports use the taxonomy of its databases, also one that is stored while it runs.

Source: the same searches and reports on this machine.
"""

import pytest

from swsearch.cli.app import main
from swsearch.errors import SwSearchError
from tests.service.protocols.test_blast_url_api import get, put
from tests.service.servers import RunningServer, local_report
from tests.support import DATA
from tests.taxonomy.dumps import EXCERPT

FIELDS = ["qseqid", "sseqid", "staxids", "sblastnames", "slineage"]


def known_taxids():
    """The taxonomy ids of the real proteins by their accessions, as ``data/taxids.tsv`` has them."""
    lines = (line.split("\t") for line in (DATA / "taxids.tsv").read_text().splitlines() if not line.startswith("#"))
    return {accession: int(taxid) for accession, taxid in lines if taxid.isdecimal()}


@pytest.fixture
def served(tmp_path):
    """A server of the real proteins, and their database, which has no taxonomy yet."""
    database = tmp_path / "proteins.db"
    assert main(["index", str(DATA / "proteins.fasta.gz"), "-o", str(database), "--quiet"]) == 0
    with RunningServer(tmp_path, [database], "--protocol=blast") as running:
        yield running, database


def test_organisms_are_those_of_the_database(served, queries, capfd, tmp_path):
    server, database = served
    client = server.client()

    def search(**options):
        return client.wait(client.submit(queries, "proteins.db", {"top": 5, **options})["id"])

    plain = search()
    assert plain["state"] == "done"
    with pytest.raises(SwSearchError, match="needs a taxonomy"):
        client.report(plain["id"], "blast6", FIELDS)
    assert search(taxid="7711")["state"] == "failed"  # no header states an id

    command = ["db", "taxonomy", str(database), str(EXCERPT), "--taxid-map", str(DATA / "taxids.tsv"), "--quiet"]
    assert main(command) == 0
    for options in ({}, {"taxid": "7711"}):
        found = search(**options)
        assert found["state"] == "done", found
        for name, fields in (("blast6", FIELDS), ("html", None), ("kraken", None), ("taxa-html", None)):
            asked = [f"--{option}={value}" for option, value in options.items()]
            asked += [] if fields is None else ["--fields", " ".join(fields)]
            local = local_report(database, tmp_path, "--top", "5", "--format", name, *asked)
            assert client.report(found["id"], name, fields) == local
    for wrong in ("7711,cats", "999999999"):  # refused when it is sent, in the words of a query
        query = ["query", str(DATA / "queries.fasta"), str(database), "--taxid", wrong, "--store", "none"]
        assert main(query) == 1
        said = capfd.readouterr().err.splitlines()[-1].removeprefix("swsearch: error: ")
        with pytest.raises(SwSearchError) as refused:
            client.submit(queries, "proteins.db", {"taxid": wrong})
        assert str(refused.value) == said.replace(str(database), "proteins.db")
    assert b"Nematoda" in client.report(plain["id"], "blast6", FIELDS)  # of the run before
    lines = client.report(plain["id"], "lca", lca_top=70)
    assert lines == local_report(database, tmp_path, "--top", "5", "--format", "lca", "--lca-top", "70")
    assert lines != client.report(plain["id"], "lca")
    capfd.readouterr()
    url = ["query", str(DATA / "queries.fasta"), "proteins.db", "--server", client.url, "--top", "5", "--quiet"]
    assert main([*url, "--format", "lca", "--lca-top", "70"]) == 0
    assert lines.decode() == capfd.readouterr().out
    with pytest.raises(SwSearchError, match="no taxa of queries"):
        client.report(plain["id"], "blast6", lca_top=70)


def test_organisms_of_the_blast_url_api_include_their_descendants(served, queries, tmp_path):
    """Source: swsearch query --taxid. No protein is of the phylum itself; a list of exact ids would be empty."""
    server, database = served
    command = ["db", "taxonomy", str(database), str(EXCERPT), "--taxid-map", str(DATA / "taxids.tsv"), "--quiet"]
    assert main(command) == 0
    assert 7711 not in known_taxids().values()
    rid = put(server, QUERY=queries, DATABASE="proteins.db", ENTREZ_QUERY="txid7711[ORGN] OR txid2[Organism:exp]")
    _, text = get(server, CMD="Get", RID=rid, FORMAT_TYPE="XML")
    assert text.encode() == local_report(database, tmp_path, "--taxid", "7711,2", "--top", "100", "--format", "xml")
    assert text.count("<Hit>") > 10
