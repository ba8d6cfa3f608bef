"""The BLAST URL API with clients as they are installed. Expected values: `swsearch query` for the same search."""

import io
import json
import re
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from Bio import Blast
from Bio.Blast import NCBIWWW, NCBIXML
from biotite.application.blast import BlastWebApp

from tests.service.protocols.expected import Found, local_hits, matches, protein, reads
from tests.support import DATA

pytestmark = pytest.mark.thorough

OPTIONS = ["--top", "5", "--evalue", "0.001"]
SENT = {"hitlist_size": 5, "expect": 0.001}
SCORES = {
    "blastp": ({"gapcosts": "9 2", "matrix_name": "BLOSUM62"}, ["--gap-open", "9", "--gap-extend", "2"]),
    "blastn": (
        {"gapcosts": "5 2", "nucl_reward": 1, "nucl_penalty": -2},
        ["--match", "1", "--mismatch", "-2", "--gap-open", "5", "--gap-extend", "2"],
    ),
}


@pytest.fixture
def address(server):
    return f"{server.url}/blast/Blast.cgi"


@pytest.fixture(autouse=True)
def _rested():
    """Biopython pauses for 20 s between two of its searches; a script that searches once never meets this."""
    for module in (Blast, NCBIWWW):
        module.qblast.previous = 0


def searched(program):
    return (protein(), "proteins.db") if program == "blastp" else (reads(), "lambda.db")


def read_by_bio_blast(stream):
    """The hits of all records, with positions as BLAST prints them."""
    return [
        Found(
            hit.target.id, int(hsp.score), hsp.annotations["evalue"], *(_ends(hsp.coordinates[row]) for row in (1, 0))
        )
        for record in Blast.parse(stream)
        for hit in record
        for hsp in hit
    ]


def _ends(positions):
    first, last = int(positions[0]), int(positions[-1])
    return (first + 1, last) if first < last else (first, last + 1)


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_bio_blast(address, databases, tmp_path, program):
    query, database = searched(program)
    sent, options = SCORES[program]
    with Blast.qblast(program, database, query, url_base=address, **SENT, **sent) as stream:
        found = read_by_bio_blast(stream)
    assert matches(found, local_hits(query, databases / database, tmp_path, *OPTIONS, *options))


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_ncbiwww(address, databases, tmp_path, program):
    query, database = searched(program)
    sent, options = SCORES[program]
    stream = NCBIWWW.qblast(program, database, query, url_base=address, **SENT, **sent)
    found = [
        Found(
            alignment.hit_id, int(hsp.score), hsp.expect,
            (hsp.query_start, hsp.query_end), (hsp.sbjct_start, hsp.sbjct_end),
        )
        for record in NCBIXML.parse(stream)
        for alignment in record.alignments
        for hsp in alignment.hsps
    ]  # fmt: skip
    assert matches(found, local_hits(query, databases / database, tmp_path, *OPTIONS, *options))


def test_the_forms_that_bio_blast_knows(address, databases, tmp_path):
    """Each form is checked by Biopython itself, and holds the hits."""
    query, database = searched("blastp")
    expected = local_hits(query, databases / database, tmp_path, *OPTIONS)
    content = {}
    for form in ("XML2", "JSON2", "Text", "Tabular"):
        Blast.qblast.previous = 0
        with Blast.qblast("blastp", database, query, url_base=address, format_type=form, **SENT) as stream:
            content[form] = (stream.rid, stream.read())
    rid, archive = content["XML2"]
    with zipfile.ZipFile(io.BytesIO(archive)) as found:
        assert sorted(found.namelist()) == [f"{rid}.xml", f"{rid}_1.xml"]
        assert matches(read_by_bio_blast(io.BytesIO(found.read(f"{rid}_1.xml"))), expected)
    rid, archive = content["JSON2"]
    with zipfile.ZipFile(io.BytesIO(archive)) as found:
        (document,) = json.loads(found.read(f"{rid}.json"))["BlastJSON"]
        hits = json.loads(found.read(document["File"]))["BlastOutput2"]["report"]["results"]["search"]["hits"]
    assert [hit["description"][0]["id"] for hit in hits] == [hit.subject for hit in expected]
    assert [hit["hsps"][0]["score"] for hit in hits] == [hit.score for hit in expected]
    table = [line.split("\t") for line in content["Tabular"][1].decode().splitlines() if line.count("\t") == 11]
    assert [(row[1], int(row[6]), int(row[7])) for row in table] == [(hit.subject, *hit.query) for hit in expected]
    for hit in expected:
        assert f"\n>{hit.subject} " in content["Text"][1].decode()


@pytest.mark.parametrize("qblast", [Blast.qblast, NCBIWWW.qblast], ids=["Blast", "NCBIWWW"])
def test_biopython_shows_why_a_search_is_refused(address, qblast):
    refused = {
        "there is no database 'nr'; choose few.db": {"database": "nr"},
        "blastn searches databases of DNA, and few.db is protein; choose blastp or blastx": {"program": "blastn"},
        "'1' is not in": {"sequence": ">a\nMK1V\n"},
        "line 1, column 3: '1' is not in": {"sequence": "MK1V&<b>"},
    }
    for message, sent in refused.items():
        asked = {"program": "blastp", "database": "few.db", "sequence": "MKVLAAGIVGL", **sent}
        with pytest.raises(ValueError, match="Error message from NCBI: Message ID#") as raised:
            qblast(url_base=address, **asked)
        assert message in str(raised.value)


def test_the_pages_example_runs(server):
    """Source: docs/service/protocols.md."""
    page = (DATA.parent / "docs" / "service" / "protocols.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page.partition("## BLAST URL API")[2], re.DOTALL)[0]
    names = {}
    exec(compile(code.replace("http://127.0.0.1:8765", server.url), "service-protocols.md", "exec"), names)
    assert len(names["record"]) > 0


def test_biotite(address, databases, tmp_path):
    """Biotite waits twice for three seconds, so both searches wait together."""
    asked, expected, apps = {}, {}, {}
    for program in ("blastp", "blastn"):
        query, database = searched(program)
        third = query.split(">")[-2] if program == "blastn" else query.removeprefix(">")
        asked[program] = third.partition("\n")[2].replace("\n", "")
        _, options = SCORES[program]
        one_each = [*OPTIONS[:2], "--max-hsps", "1", *options]  # it reads the first alignment of a subject
        expected[program] = local_hits(f">\n{asked[program]}\n", databases / database, tmp_path, *one_each)
        app = BlastWebApp(program, asked[program], database, app_url=address, obey_rules=False)
        app.set_max_results(5)
        app.set_gap_penalty(*((9, 2) if program == "blastp" else (5, 2)))
        if program == "blastn":
            app.set_match_reward(1)
            app.set_mismatch_penalty(-2)
        else:
            app.set_substitution_matrix("BLOSUM62")
        app.start()
        apps[program] = app
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda app: app.join(), apps.values()))
    for program, app in apps.items():
        found = [
            Found(hit.hit_id, hit.score, hit.e_value, hit.query_interval, hit.hit_interval)
            for hit in app.get_alignments()
        ]
        assert len(found) == (5 if program == "blastp" else 1)
        assert matches(found * 2, expected[program] * 2)
        assert str(app.get_alignments()[0].sequences[0]) in asked[program].upper()


def test_biotite_says_that_a_refused_search_is_invalid(address):
    app = BlastWebApp("blastp", "MKVLAAGIVGL", "nr", app_url=address, obey_rules=False)
    app.start()
    with pytest.raises(ValueError, match="input values seem to be invalid"):
        app.is_finished()
    huge = BlastWebApp("blastp", "M" * 200_000, "few.db", app_url=address, obey_rules=False)
    with pytest.raises(ValueError, match="The URI is too large"):
        huge.start()


@pytest.mark.peer("BioPerl's RemoteBlast", "segmasker")
def test_bioperl(address, databases, tmp_path):
    """RemoteBlast reads the table. Its filter is always on, SEG here, and composition-based statistics are off."""
    script = Path(__file__).with_name("remote_blast.pl")
    query, database = searched("blastp")
    (tmp_path / "query.fasta").write_text(query)
    command = ["perl", str(script), address, "blastp", database, str(tmp_path / "query.fasta")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    options = [*OPTIONS, "--mask", "seg", "--mask-mode", "hard", "--composition", "none"]
    expected = local_hits(query, databases / database, tmp_path, *options)
    assert len(rows) == len(expected) == 5
    for (subject, evalue, *places), hit in zip(rows, expected, strict=True):
        assert (subject, tuple(map(int, places))) == (hit.subject, (*hit.query, *hit.target))
        assert float(evalue) == pytest.approx(hit.evalue, rel=5e-3)
