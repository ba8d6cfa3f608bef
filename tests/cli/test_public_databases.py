"""Public databases by name, from a real HTTP server on a socket of this machine, which can fail in its ways.

Expected databases are those that `swsearch index` makes of the same file; messages are written by hand.
"""

import gzip
import hashlib
import io
import json
import re
import signal
import tarfile
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from swsearch.database.node_cache import NodeCache
from swsearch.database.opening import load_catalogue
from tests.cli.conftest import DATA
from tests.patience import wait_until
from tests.processes import run_with_file_limit

METALINK = """<?xml version="1.0" encoding="UTF-8"?>
<metalink version="3.0" xmlns="http://www.metalinker.org/"><version>2026_04</version><files>
<file name="other.fasta.gz"><verification><hash type="md5">{other}</hash></verification></file>
<file name="{name}"><size>{size}</size><verification><hash type="md5">{md5}</hash></verification></file>
</files></metalink>
"""
CHANGED = 1_700_000_000  # 2023-11-14


class Server(ThreadingHTTPServer):
    """Serves bytes by their paths; ``cuts`` has, for the next answers with a file, where the connection ends.

    ``has_parts`` is whether ranges are understood, ``knows_condition`` whether If-Range is. While ``may_go_on`` is not
    set, an answer stops at its cut without an end.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cuts: list[int] = []
        self.has_parts = self.knows_condition = self.has_tags = True
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.is_waiting = threading.Event()
        self.ranges: list[str | None] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        """A client that leaves is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return
        content = server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        is_file = not self.path.endswith((".metalink", ".md5"))
        version = f'"{hashlib.md5(content).hexdigest()}"' if server.has_tags else formatdate(CHANGED, usegmt=True)
        asked = self.headers["Range"] if server.has_parts else None
        if server.knows_condition and self.headers["If-Range"] != version:
            asked = None
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if is_file:
            server.ranges.append(asked)
        if first and first >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        if server.has_tags:
            self.send_header("ETag", version)
        self.send_header("Last-Modified", formatdate(CHANGED, usegmt=True))
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts and is_file else len(content)
        self.wfile.write(content[first:cut])
        if cut < len(content) and not server.may_go_on.is_set():
            self.wfile.flush()
            server.is_waiting.set()
            server.may_go_on.wait()


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.may_go_on.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of downloads in an empty cache."""
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SWSEARCH_TAXONOMY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "downloads"


@pytest.fixture
def fasta():
    return (DATA / "proteins.fasta.gz").read_bytes()


@pytest.fixture
def offer(server, cache, tmp_path, monkeypatch):
    """Publish a file with a metalink, and name it ``mine`` in a site's table; keys may be added or replaced."""

    def offer(content, *, name="mine.fasta.gz", md5=None, **keys):
        server.files[f"/{name}"] = content
        md5 = md5 or hashlib.md5(content).hexdigest()
        values = {"name": name, "size": len(content), "md5": md5, "other": "0" * 32}
        server.files["/RELEASE.metalink"] = METALINK.format(**values).encode()
        row = {
            "title": "proteins of ours", "source": "the laboratory", "licence": "CC0", "size": "1 MB",
            "address": f"{server.address}/{name}", "checksums": f"{server.address}/RELEASE.metalink",
            "holds": "protein", **keys,
        }  # fmt: skip
        table = tmp_path / "site.toml"
        lines = [f"{key} = {json.dumps(value)}" for key, value in row.items() if value is not None]
        with table.open("a") as file:
            print("[more]" if "taxdump" in name or name == "more.fasta.gz" else "[mine]", *lines, sep="\n", file=file)
        monkeypatch.setenv("SWSEARCH_DOWNLOADS", str(table))

    return offer


@pytest.fixture
def expected_digest(swsearch, tmp_path):
    assert swsearch("index", DATA / "proteins.fasta.gz", "-o", "expected.db", "-q").code == 0
    return load_catalogue(tmp_path / "expected.db").digest


def kept(cache):
    """Sizes of what the cache has of downloads, without the files of versions."""
    return [path.stat().st_size for path in cache.iterdir() if path.suffix != ".version"]


def test_a_database_is_fetched_by_its_name(swsearch, offer, fasta, cache, tmp_path, expected_digest):
    """The catalogue names file and release; nothing stays in the cache, and a second call replaces nothing."""
    offer(fasta)
    done = swsearch("db", "get", "mine")
    assert done.code == 0, done.err
    catalogue = load_catalogue(tmp_path / "mine.db")
    assert catalogue.digest == expected_digest
    assert catalogue.sources == ("mine.fasta.gz (2026_04)",)
    assert list(cache.iterdir()) == []
    assert f"mine.fasta.gz, {len(fasta):,} bytes, by way of {cache}/mine.fasta.gz-" in done.err
    assert "mine.db: 1,500 sequences, 653,184 residues, protein" in done.err
    assert "mine.db exists already" in swsearch("db", "get", "mine").error
    assert swsearch("db", "get", "mine", "--force", "-q").err == ""
    assert swsearch("db", "verify", "mine.db").code == 0


@pytest.mark.parametrize("has_tags", [True, False])
def test_a_cut_connection_is_taken_up_where_it_ended(
    swsearch, server, offer, fasta, tmp_path, expected_digest, has_tags
):
    """By the entity tag, or by the time of the last change; also where the address leads to another."""
    server.has_tags = has_tags
    offer(fasta, address=f"{server.address}/moved/mine.fasta.gz")
    server.cuts = [100_000, 200_000]
    assert swsearch("db", "get", "mine").code == 0
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]
    assert load_catalogue(tmp_path / "mine.db").digest == expected_digest


def test_a_database_is_packed_while_it_arrives(spawn, server, offer, tmp_path):
    """Nine tenths of 30 MB have arrived, and headers are on the disk; there is no database yet."""
    content = b"".join(b">s%d\n%s\n" % (n, b"MKVLWAALLV" * 100) for n in range(30_000))
    offer(content, name="mine.fasta", checksums=None)
    server.may_go_on.clear()
    server.cuts = [len(content) * 9 // 10]
    with spawn("db", "get", "mine", "--threads", "1"):
        server.is_waiting.wait()
        headers = ".mine.db.building-*/*/headers.bin"
        wait_until(lambda: any(path.stat().st_size for path in tmp_path.glob(headers)), "headers of the first records")
        assert not (tmp_path / "mine.db").exists()


def cut_off(swsearch, server, n_bytes):
    """Fetch ``mine`` from a server that ends every connection at this byte; the error that ends the command."""
    server.cuts = [n_bytes] * 9
    failed = swsearch("db", "get", "mine", "-o", "cut.db")
    server.cuts = []
    server.ranges.clear()
    assert failed.code == 1
    return failed.error


def test_the_next_command_goes_on_where_one_ended(
    swsearch, server, offer, fasta, cache, tmp_path, monkeypatch, expected_digest
):
    """The message names what is kept; the command that goes on makes the same catalogue, but for its time."""
    monkeypatch.setattr("swsearch.database.download.ATTEMPTS", 2)
    offer(fasta)
    error = cut_off(swsearch, server, 150_000)
    assert f"the connection was cut; 150,000 of {len(fasta):,} bytes are kept in {cache}/mine" in error
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "site.toml", "expected.db"}
    again = swsearch("db", "get", "mine")
    assert "of which 150,000 are here" in again.err
    assert server.ranges == ["bytes=150000-"]
    catalogue = load_catalogue(tmp_path / "mine.db")
    assert (catalogue.digest, catalogue.sources) == (expected_digest, ("mine.fasta.gz (2026_04)",))


@pytest.mark.parametrize("knows_condition", [True, False])
def test_parts_of_two_versions_are_never_joined(
    swsearch, server, offer, fasta, cache, tmp_path, monkeypatch, expected_digest, knows_condition
):
    """Also if the server sends the rest of the new version, as one that does not understand If-Range does."""
    monkeypatch.setattr("swsearch.database.download.ATTEMPTS", 2)
    server.knows_condition = knows_condition
    offer(gzip.compress(gzip.decompress(fasta), 1))
    cut_off(swsearch, server, 150_000)
    (tmp_path / "site.toml").unlink()
    offer(fasta)
    assert swsearch("db", "get", "mine").code == 0
    assert load_catalogue(tmp_path / "mine.db").digest == expected_digest


@pytest.fixture
def replace_while_waiting(server):
    """Replace a file of the server as soon as an answer with it has stopped at a cut, which then ends."""
    threads = []

    def replace(path, content):
        def work():
            server.is_waiting.wait()
            server.files[path] = content
            server.may_go_on.set()

        server.may_go_on.clear()
        threads.append(threading.Thread(target=work))
        threads[-1].start()

    yield replace
    server.is_waiting.set()
    for thread in threads:
        thread.join()


def test_a_file_that_changes_during_a_download_ends_it(swsearch, server, offer, fasta, tmp_path, replace_while_waiting):
    """No database is left, and the next command begins anew."""
    offer(fasta, checksums=None)
    server.cuts = [150_000]
    replace_while_waiting("/mine.fasta.gz", gzip.compress(b">new\nMKVLW\n"))
    failed = swsearch("db", "get", "mine")
    assert "the server has another version now" in failed.refusal
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "site.toml"}
    assert swsearch("db", "get", "mine").code == 0
    assert load_catalogue(tmp_path / "mine.db").n_subjects == 1


def test_a_server_without_ranges_sends_the_file_again(
    swsearch, server, offer, fasta, tmp_path, monkeypatch, expected_digest
):
    server.has_parts = False
    offer(fasta)
    assert "sends no parts of the file; run the command again" in cut_off(swsearch, server, 150_000)
    assert swsearch("db", "get", "mine").code == 0
    assert load_catalogue(tmp_path / "mine.db").digest == expected_digest


def test_a_wrong_checksum_leaves_nothing(swsearch, server, offer, fasta, cache, tmp_path):
    offer(fasta, md5="0123456789abcdef" * 2)
    failed = swsearch("db", "get", "mine")
    assert f"the md5 differs from the one that {server.address}/RELEASE.metalink says" in failed.refusal
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "site.toml"}
    assert list(cache.iterdir()) == []


def test_a_damaged_file_without_a_checksum_leaves_nothing(swsearch, offer, fasta, cache, tmp_path):
    """A bit in the middle: the archive has a checksum of its own."""
    damaged = bytearray(fasta)
    damaged[len(fasta) // 2] ^= 1
    offer(bytes(damaged), checksums=None)
    failed = swsearch("db", "get", "mine")
    assert "cannot be read to its end, it may be damaged" in failed.refusal
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "site.toml"}
    assert list(cache.iterdir()) == []


def test_a_size_that_is_not_the_published_one_ends_a_download_before_it_begins(swsearch, server, offer, fasta):
    offer(fasta)
    server.files["/mine.fasta.gz"] += b"\0"
    error = swsearch("db", "get", "mine").error
    assert f"the file has {len(fasta) + 1:,} bytes, but {server.address}/RELEASE.metalink says {len(fasta):,}" in error


def test_lines_of_checksums_are_understood(swsearch, server, offer, fasta, tmp_path):
    """Those of md5sum, as Pfam's and NCBI's, and of sha256sum; without a release, the date of the file is named."""
    sha256 = hashlib.sha256(fasta).hexdigest()
    server.files["/list.md5"] = f"{'0' * 64}  other.fasta.gz\n{sha256} *./mine.fasta.gz\n".encode()
    offer(fasta, checksums=f"{server.address}/list.md5")
    assert swsearch("db", "get", "mine").code == 0
    assert load_catalogue(tmp_path / "mine.db").sources == ("mine.fasta.gz (2023-11-14)",)
    server.files["/list.md5"] = f"{'0' * 64}  mine.fasta.gz\n".encode()
    assert "the sha256 differs" in swsearch("db", "get", "mine", "--force").error
    assert swsearch("db", "verify", "mine.db").code == 0
    server.files["/list.md5"] = b"<html>moved</body>"
    assert "list.md5 is not a list of checksums: " in swsearch("db", "get", "mine", "--force").error
    server.files["/list.md5"] = b"nothing\n"
    assert "list.md5 has no checksum of mine.fasta.gz" in swsearch("db", "get", "mine", "--force").error


def test_what_cannot_be_fetched_is_one_line(swsearch, server, offer, fasta, tmp_path):
    """A file and a list that do not exist, a server that is not there, and a page in place of an archive."""
    offer(fasta)
    content = server.files.pop("/mine.fasta.gz")
    assert "mine.fasta.gz cannot be fetched: the server answers 404 Not Found" in swsearch("db", "get", "mine").error
    assert not list(NodeCache().folder.with_name("downloads").glob("mine*"))
    server.files["/mine.fasta.gz"] = content
    del server.files["/RELEASE.metalink"]
    assert "RELEASE.metalink cannot be fetched: the server answers 404" in swsearch("db", "get", "mine").error
    (tmp_path / "site.toml").unlink()
    offer(b"<html>no such file</html>", checksums=None)
    assert "not a gz archive, as its name says" in swsearch("db", "get", "mine").error
    (tmp_path / "site.toml").unlink()
    offer(fasta, address="http://127.0.0.1:1/mine.fasta.gz", checksums=None)
    assert "127.0.0.1:1/mine.fasta.gz cannot be fetched: " in swsearch("db", "get", "mine").error
    assert not (tmp_path / "mine.db").exists()


def test_a_full_cache_keeps_what_has_arrived(swsearch, offer, fasta, cache, tmp_path, expected_digest):
    """EFBIG, which the system gives beyond a limit on the size of files; afterwards, the download goes on."""
    offer(fasta)
    failed = run_with_file_limit(["db", "get", "mine"], tmp_path, 50_000)
    assert failed.returncode == 1
    (error,) = (line for line in failed.stderr.splitlines() if "error:" in line)
    assert "cannot be written: File too large; 50,000 bytes are kept" in error
    assert "SWSEARCH_CACHE" in error
    assert not list(tmp_path.glob("*mine.db*"))
    again = swsearch("db", "get", "mine")
    assert "of which 50,000 are here" in again.err
    assert load_catalogue(tmp_path / "mine.db").digest == expected_digest


def test_a_full_disk_of_the_database_is_one_line(swsearch, offer, fasta, cache, small_disk):
    """A file system of 64 kB; all bytes stay in the cache."""
    offer(fasta)
    failed = swsearch("db", "get", "mine", "-o", small_disk / "mine.db")
    assert "No space left on device" in failed.refusal
    assert not list(small_disk.glob("*mine.db*"))
    assert f"of which {len(fasta):,} are here" in swsearch("db", "get", "mine").err


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_download_that_is_stopped_is_taken_up(
    swsearch, spawn, server, offer, fasta, cache, tmp_path, expected_digest, sent, code
):
    """While the server is silent. The hidden folder of a build that is killed is removed by the next one."""
    offer(fasta)
    server.may_go_on.clear()
    server.cuts = [150_000]
    process = spawn("db", "get", "mine")
    server.is_waiting.wait()
    wait_until(lambda: kept(cache) == [150_000], "the first part")
    process.send_signal(sent)
    _, errors = process.communicate()
    assert process.returncode == code, errors
    assert not (tmp_path / "mine.db").exists()
    assert (sent == signal.SIGKILL) == bool(list(tmp_path.glob(".mine.db*")))
    server.may_go_on.set()
    assert swsearch("db", "get", "mine").code == 0
    assert server.ranges == [None, "bytes=150000-"]
    assert load_catalogue(tmp_path / "mine.db").digest == expected_digest
    assert not list(tmp_path.glob(".mine.db*"))


def test_one_process_at_a_time_fetches_a_file(swsearch, spawn, server, offer, fasta, cache):
    offer(fasta)
    server.may_go_on.clear()
    server.cuts = [150_000]
    process = spawn("db", "get", "mine")
    server.is_waiting.wait()
    assert "another process fetches it into" in swsearch("db", "get", "mine", "-o", "other.db").error
    server.may_go_on.set()
    assert process.wait() == 0
    process.communicate()


def taxdump():
    """NCBI's taxdump.tar.gz of the excerpt in data/."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name in ("nodes.dmp", "names.dmp"):
            archive.add(DATA / "taxonomy" / name, name)
    return raw.getvalue()


OF_UNIPROT = gzip.compress(
    b">sp|P69905|HBA_HUMAN Hemoglobin OS=Homo sapiens OX=9606\nMVLSPADKTNVKAAWGKVGA\n"
    b">sp|X|X_NONE without\nMKVLAAGIVGLLLAQWERTY\n"
)


def test_the_taxonomy_is_fetched_with_headers_that_have_ids(swsearch, offer, server, tmp_path, cache, monkeypatch):
    """``--taxonomy none`` leaves it out, and a taxdump that is named is taken instead."""
    offer(OF_UNIPROT, taxonomy="more")
    metalink = server.files["/RELEASE.metalink"]
    offer(taxdump(), name="taxdump.tar.gz", holds="file", checksums=None)
    server.files["/RELEASE.metalink"] = metalink
    done = swsearch("db", "get", "mine")
    assert "1 of 2 sequences with a taxonomy id" in done.err, done.err
    assert list(cache.iterdir()) == []
    found = swsearch("db", "info", "mine.db").out
    assert "1 of 2 sequences with a taxonomy id" in found
    server.ranges.clear()
    assert swsearch("db", "get", "mine", "-o", "none.db", "--taxonomy", "none").code == 0
    assert "taxonomy    none" in swsearch("db", "info", "none.db").out
    monkeypatch.setenv("SWSEARCH_TAXONOMY", str(DATA / "taxonomy"))
    assert swsearch("db", "get", "mine", "-o", "own.db").code == 0
    assert swsearch("db", "info", "own.db").out.splitlines()[-3] == found.splitlines()[-3]
    assert server.ranges == [None, None]


def test_a_file_of_which_nothing_was_read_begins_anew(swsearch, offer, server, replace_while_waiting):
    """A taxdump that changes during its download: the checksum is that of the second answer alone."""
    content = taxdump()
    server.files["/list.md5"] = f"{hashlib.md5(content).hexdigest()}  taxdump.tar.gz\n".encode()
    offer(OF_UNIPROT, taxonomy="more", checksums=None)
    offer(content[::-1], name="taxdump.tar.gz", holds="file", checksums=f"{server.address}/list.md5")
    server.cuts = [1000]
    replace_while_waiting("/taxdump.tar.gz", content)
    assert "1 of 2 sequences with a taxonomy id" in swsearch("db", "get", "mine").err


def test_headers_choose_the_sequences(swsearch, offer, tmp_path):
    """As in the PDB's file, whose nucleic acids are not proteins; a record without residues is left out and named."""
    records = (
        ">1abc_A mol:protein length:5  ONE\nMKVLW\n>1abc_B mol:na length:4  TWO\nACGU\n>2abc_A mol:protein length:0\n"
    )
    offer(gzip.compress(records.encode()), headers=" mol:protein ")
    done = swsearch("db", "get", "mine")
    assert done.code == 0, done.err
    assert "1 record was left out" in done.err
    assert swsearch("db", "export", "mine.db").out == ">1abc_A mol:protein length:5  ONE\nMKVLW\n"
    offer(gzip.compress(b">2abc_A mol:na\nACGU\n"), name="more.fasta.gz", headers=" mol:protein ")
    assert "no header has ' mol:protein '" in swsearch("db", "get", "more").error


def test_a_file_of_profiles_is_kept_and_searched_with(swsearch, server, offer, cache, tmp_path, few_proteins_db):
    """As Pfam's: the same bytes under the name of the address, which `query` takes; a file is not replaced unasked."""
    families = gzip.compress((DATA / "obg.sto").read_bytes())
    offer(families, holds="file", address=f"{server.address}/families.sto.gz", checksums=None)
    server.files["/families.sto.gz"] = families
    server.cuts = [100]
    assert swsearch("db", "get", "mine").code == 0
    assert (tmp_path / "families.sto.gz").read_bytes() == families
    assert list(cache.iterdir()) == []
    assert swsearch("query", "families.sto.gz", few_proteins_db, "--store", "none").code == 0
    assert "exists already" in swsearch("db", "get", "mine").error
    assert swsearch("db", "get", "mine", "--force").code == 0


def test_without_a_name_all_are_listed(swsearch, offer, fasta):
    """Those of the package, then those of the site, which may replace one of the package."""
    offer(fasta)
    listed = swsearch("db", "get").out.splitlines()
    assert listed[0].split() == ["name", "size", "title", "source", "licence"]
    names = [line.split()[0] for line in listed[1:]]
    assert names == ["swissprot", "uniref50", "uniref90", "pdb", "pfam", "taxdump", "mine"]
    assert re.split("  +", listed[-1]) == ["mine", "1 MB", "proteins of ours", "the laboratory", "CC0"]
    assert "'nosuch' is not a public database: choose swissprot, " in swsearch("db", "get", "nosuch").error
    assert "name what --out is to be: swissprot, " in swsearch("db", "get", "-o", "x.db").error


ROW = {
    "title": "x", "source": "x", "licence": "x", "size": "1 MB", "address": "https://example.org/x.fa", "holds": "dna"
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[mine\n", r"the file cannot be read: .*line 1"),
        ("mine = 1\n", r"\[mine\]: give a table"),
        ({"title": 1}, r"\[mine\]: title is none of .*, or is not a string"),
        ({"colour": "red"}, r"\[mine\]: colour is none of title, source, "),
        ({"licence": None}, r"\[mine\]: licence is missing"),
        ({"address": "ftp://example.org/x.fa"}, r"must be addresses of files of http or https"),
        ({"address": "https://example.org/"}, r"must be addresses of files of http or https"),
        ({"checksums": "/etc/passwd"}, r"must be addresses of files of http or https"),
        ({"holds": "peptides"}, r"holds = 'peptides': choose protein, dna, file"),
        ({"headers": "("}, r"\[mine\]: missing \)"),
        ({"taxonomy": "nosuch"}, r"taxonomy = 'nosuch' is not a name of a file in the table"),
        (None, r"the file cannot be read: .*No such file"),
    ],
)
def test_a_table_of_a_site_that_cannot_be_used_is_one_line(swsearch, tmp_path, monkeypatch, text, expected):
    """The message names the variable, the file and the row."""
    path = tmp_path / "site.toml"
    if isinstance(text, dict):
        text = "[mine]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in (ROW | text).items() if value)
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("SWSEARCH_DOWNLOADS", str(path))
    error = swsearch("db", "get").error
    assert error.startswith(f"swsearch: error: SWSEARCH_DOWNLOADS={path}: ")
    assert re.search(expected, error)
