"""Databases in an object store: what is fetched, kept, removed and refused. The S3 server and the processes are real.

Expected values: the same search of the database on this machine, or by hand.
"""

import fcntl
import hashlib
import json
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from swsearch.database.catalogue import read_catalogue, write_catalogue
from swsearch.database.changes import set_taxonomy
from swsearch.database.node_cache import NodeCache
from swsearch.database.object_store import fetch
from swsearch.database.opening import open_database
from swsearch.database.reader import DatabasePart
from swsearch.errors import DatabaseError
from tests import processes
from tests.cli.conftest import QUERIES
from tests.cli.test_batch import report
from tests.patience import wait_until
from tests.processes import PAUSE, free_port
from tests.sliced_databases import sliced_databases

pytestmark = pytest.mark.thorough

BUCKET = "databases"


class S3Server(ThreadedMotoServer):
    """A running S3 server of one bucket, and the environment in which obstore finds it."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", 0, verbose=False)
        logging.getLogger("werkzeug").disabled = True  # it would print each request among the messages of commands
        self.start()
        self.address = "http://{}:{}".format(*self.get_host_and_port())
        self.variables = {
            "AWS_ENDPOINT": self.address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        }  # fmt: skip
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/{BUCKET}", method="PUT")).close()

    def _bucket(self) -> Any:
        from obstore.store import S3Store

        return S3Store(
            BUCKET, endpoint=self.address, region="us-east-1", access_key_id="key", secret_access_key="secret",
            client_options={"allow_http": True},
        )  # fmt: skip

    def put(self, name: str, content: bytes) -> None:
        """Create or replace an object."""
        import obstore

        obstore.put(self._bucket(), name, content)

    def delete(self, name: str) -> None:
        import obstore

        obstore.delete(self._bucket(), name)

    def upload(self, folder: Path, name: str) -> str:
        """Upload a folder; return its URL."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        return f"s3://{BUCKET}/{name}"


@pytest.fixture(scope="module")
def server():
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def cache(server, tmp_path, monkeypatch):
    """An empty cache, and the environment of the server."""
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SWSEARCH_CACHE_LIMIT", raising=False)
    return tmp_path / "cache" / "databases"


@pytest.fixture
def url(server, cache, few_proteins_db, request):
    test = hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    return server.upload(few_proteins_db, f"{test}/few.db")


def entries(cache):
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def key_of(database: Path) -> str:
    return hashlib.sha256((database / "catalogue.json").read_bytes()).hexdigest()


def object_name(url, name):
    return f"{url.removeprefix('s3://databases/')}/{name}"


def test_a_search_of_a_url_prints_what_a_search_of_the_folder_prints(swsearch, cache, few_proteins_db, url):
    """The second search takes the files from the cache, whose entry is named by the catalogue's checksum."""
    asked = ["--format", "json", "--store"]
    here = swsearch("query", QUERIES, few_proteins_db, *asked, "here.sqlite")
    first = swsearch("query", QUERIES, url, *asked, "there.sqlite")
    assert (first.code, first.out) == (0, here.out)
    assert f"swsearch: fetching {url}, " in first.err
    assert entries(cache) == [key_of(few_proteins_db)]
    second = swsearch("query", QUERIES, f"{url}/", *asked, "none")
    assert (second.code, second.out) == (0, here.out)
    assert "fetching" not in second.err
    assert f"database      {url}: 60 protein sequences" in swsearch("runs", "show", "1", "--store", "there.sqlite").out


def test_a_batch_that_began_in_the_folder_goes_on_with_the_url(swsearch, few_proteins_db, url):
    batch = ["--store", "b.sqlite", "--shard", "1/2"]
    assert swsearch("batch", QUERIES, few_proteins_db, *batch).code == 0
    again = swsearch("batch", QUERIES, url, *batch, "--resume", "latest")
    assert again.out == "run 1 in b.sqlite: 0 queries done, 4 were there before, 0 failed\n"


def test_a_url_and_a_folder_are_searched_as_one(swsearch, url, tmp_path):
    """Source: the same two databases as folders; a report of whole subjects opens both again."""
    (tmp_path / "own.fa").write_text(">own\nMKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW\n")
    assert swsearch("index", "own.fa", "-o", "own.db", "-q").code == 0
    given = ["--evalue", "1000", "--store"]
    there = swsearch("query", QUERIES, url, "own.db", *given, "there.sqlite", "--format", "xml")
    assert there.code == 0, there.err
    assert swsearch("db", "export", url, "--out", "few.fa").code == 0
    assert swsearch("index", "few.fa", "-o", "few.db", "-q").code == 0
    here = swsearch("query", QUERIES, "few.db", "own.db", *given, "here.sqlite", "--format", "blast6")
    assert swsearch("report", "latest", "--store", "there.sqlite", "--format", "blast6").out == here.out
    shown = swsearch("runs", "show", "1", "--store", "there.sqlite").out
    assert f"database      {url}\n" in shown
    assert f"database      {tmp_path}/own.db\n" in shown
    whole = ["report", "1", "--format", "fasta", "--store"]
    assert swsearch(*whole, "there.sqlite").out == swsearch(*whole, "here.sqlite").out


def test_the_workers_of_a_cluster_fetch_the_database_by_its_url(swsearch, cache, few_proteins_db, url):
    """Source: the same batch in this process, from the folder. Driver and worker share the cache of their machine."""
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "here.sqlite").code == 0
    there = swsearch("batch", QUERIES, url, "--store", "there.sqlite", "--cluster", "local:1", "--engine", "cpu")
    assert there.code == 0, there.err
    assert entries(cache) == [key_of(few_proteins_db)]
    assert report(swsearch, "there.sqlite") == report(swsearch, "here.sqlite")


def test_the_commands_of_db_take_a_url_and_changes_refuse_it(swsearch, few_proteins_db, url):
    info = swsearch("db", "info", url).out
    assert info.splitlines()[1:] == swsearch("db", "info", few_proteins_db).out.splitlines()[1:]
    assert info.splitlines()[0].split() == ["database", url]
    assert swsearch("db", "verify", url).out == f"{url} is whole\n"
    assert swsearch("db", "export", url).out == swsearch("db", "export", few_proteins_db).out
    changes = (["db", "add", url, QUERIES], ["db", "remove", url, "x"], ["db", "compact", url])
    for command in (*changes, ["index", QUERIES, "-o", url]):
        refused = swsearch(*command)
        problem = "this must be a folder of this machine; databases in object stores are for `query`, `batch`"
        assert f" {url}: {problem}" in refused.error


def test_an_open_database_of_a_url_is_pickled_by_its_url(url):
    with open_database(url) as database:
        again = pickle.loads(pickle.dumps(database))
        assert again.locations == (url,)
        assert again.header(3) == database.header(3)
        again.close()


def test_a_file_url_is_fetched_too(cache, few_proteins_db):
    with open_database(few_proteins_db.as_uri()) as database:
        assert database.path.parent == cache
        assert database.n_subjects == 60


def test_slices_are_fetched_with_their_indices_and_removals(swsearch, cache, few_proteins_db, tmp_path):
    """Source: the folder itself. Databases without slices have neither of these files."""
    shutil.copytree(few_proteins_db, tmp_path / "sliced.db")
    assert swsearch("db", "compact", "sliced.db", "--slices", "3").code == 0
    identifier = swsearch("db", "export", "sliced.db").out[1:].split()[0]
    assert swsearch("db", "remove", "sliced.db", identifier).code == 0
    url = (tmp_path / "sliced.db").as_uri()
    assert swsearch("db", "verify", url).out == f"{url} is whole\n"
    assert swsearch("db", "export", url).out == swsearch("db", "export", "sliced.db").out


@pytest.mark.peer("nginx")
def test_a_folder_behind_a_web_server_is_fetched(swsearch, cache, few_proteins_db, tmp_path):
    """The server is nginx, which answers requests for ranges of bytes."""
    port = free_port()
    places = "".join(
        f"{name}_temp_path {tmp_path}/{name}; " for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{ listen 127.0.0.1:{port}; root {few_proteins_db.parent}; }}"
    user = "user root;" if os.geteuid() == 0 else ""
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; {user} pid {tmp_path}/pid; error_log {tmp_path}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; {places} {server} }}\n"
    )
    process = subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf")], stderr=subprocess.DEVNULL)
    try:
        wait_until((tmp_path / "pid").exists, "nginx")
        url = f"http://127.0.0.1:{port}/few.db"
        there = swsearch("db", "export", url)
        assert there.printed == swsearch("db", "export", few_proteins_db).out
    finally:
        process.terminate()
        process.wait()
    gone = swsearch("db", "info", "http://127.0.0.1:9/few.db")
    assert (
        "http://127.0.0.1:9/few.db/catalogue.json cannot be read: Generic HTTP error: Error performing GET"
        in gone.error
    )


@pytest.mark.parametrize("damage", ["changed", "shorter", "longer", "missing"])
def test_a_damaged_object_is_one_error_and_nothing_is_kept(server, cache, few_proteins_db, url, damage):
    name = "segment-000001/residues.bin"
    content = bytearray((few_proteins_db / name).read_bytes())
    place = object_name(url, name)
    problem = "does not have the checksum that its catalogue states: it is damaged, or was replaced meanwhile"
    if damage == "missing":
        server.delete(place)
        problem = "does not exist; check the URL"
    elif damage == "changed":
        content[100] ^= 1
        server.put(place, bytes(content))
    else:
        server.put(place, bytes(content[:-1] if damage == "shorter" else [*content, 31]))
        problem = f"its catalogue says {len(content):,}"
    with pytest.raises(DatabaseError) as refused:
        open_database(url)
    assert problem in str(refused.value)
    assert str(refused.value).startswith(f"{url}/{name} ")
    assert entries(cache) == []
    server.put(place, (few_proteins_db / name).read_bytes())
    open_database(url).close()


def test_places_without_a_database_are_one_line(server, cache, monkeypatch):
    with pytest.raises(DatabaseError, match=r"s3://databases/none.db/catalogue.json does not exist; check the URL"):
        open_database("s3://databases/none.db")
    server.put("foreign.db/catalogue.json", b"{}")
    with pytest.raises(DatabaseError, match=r"s3://databases/foreign.db cannot be used: catalogue.json is not that of"):
        open_database("s3://databases/foreign.db")
    for secret in ("https://me:secret@host/few.db", "https://host/few.db?signature=secret"):
        with pytest.raises(
            DatabaseError, match=r"no user, password, query or fragment; give credentials in"
        ) as refused:
            open_database(secret)
        assert "secret" not in str(refused.value)
    assert not cache.exists()


def test_missing_credentials_are_named(cache, monkeypatch):
    """Nothing answers where machines of the cloud ask for theirs."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(DatabaseError) as refused:
        open_database("s3://databases/few.db")
    message = str(refused.value)
    assert message.startswith("s3://databases/few.db/catalogue.json cannot be read: Generic S3 error")
    advice = "check the credentials in the environment, such as AWS_ACCESS_KEY_ID, or say AWS_SKIP_SIGNATURE=true"
    assert f"; {advice} for a public bucket" in message


def test_the_package_that_is_missing_is_named(swsearch, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)  # imports then fail as if it were not installed
    refused = swsearch("db", "info", "s3://databases/few.db")
    assert "needs obstore, which is not installed; `pip install 'swsearch[remote]'` adds it" in refused.error


def test_a_new_generation_at_the_same_url_is_a_new_entry(server, cache, few_proteins_db, url, tmp_path):
    """By hand: the catalogue of a later generation, with the same files."""
    with open_database(url) as before:
        catalogue = read_catalogue((few_proteins_db / "catalogue.json").read_text())
        newer = write_catalogue(type(catalogue)(**{**vars(catalogue), "generation": 2}))
        server.put(object_name(url, "catalogue.json"), newer.encode())
        with open_database(url) as after:
            assert (before.catalogue.generation, after.catalogue.generation) == (1, 2)
            assert after.header(0) == before.header(0)
    assert len(entries(cache)) == 2


FETCH = """
from contextlib import nullcontext

from swsearch.database.object_store import fetch
from swsearch.database.opening import CachingReport, open_database

blocks_left = int(sys.argv[2])

def advance(n_bytes):
    global blocks_left
    blocks_left -= 1
    if blocks_left == 0:
        pause()

caching = CachingReport()
caching.fetching = lambda *_: nullcontext(advance)
with fetch(sys.argv[1], caching=caching) as entry, open_database(entry.folder) as database:
    print(database.n_subjects, blocks_left, flush=True)
    sys.stdin.readline()
"""
"""Fetches a database and waits in the middle of a file, then until it is ended. Each file is one block."""


@pytest.fixture
def start(cache):
    """Start a process that opens a database, or stops before it fetches a file, and waits."""
    with ExitStack() as started:

        def call(*arguments):
            program = ["-c", PAUSE + FETCH, *arguments]
            return started.enter_context(processes.start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

        yield call


def test_two_processes_fetch_once(cache, url, start):
    """The first process is stopped while it fetches; the second waits for its lock, and fetches no block."""
    first = start(url, "3")
    assert first.stdout.readline() == "here\n"
    second = start(url, "0")
    (lock,) = cache.glob("*.lock")

    def is_waiting() -> bool:
        waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
        return any(int(fields[5]) == second.pid and str(lock.stat().st_ino) in fields[6] for fields in waiting)

    wait_until(is_waiting, "the second process at the lock")
    first.stdin.write("\n")
    first.stdin.flush()
    assert second.stdout.readline() == "60 0\n"


def test_a_killed_fetch_leaves_no_entry_and_goes_on_after_its_complete_files(cache, few_proteins_db, url, start):
    killed = start(url, "5")
    assert killed.stdout.readline() == "here\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert entries(cache) == [f"fetching-{key_of(few_proteins_db)}"]
    complete = {path.name: path.stat().st_ino for path in cache.glob("fetching-*/*/*.bin")}
    assert len(complete) == 4
    with fetch(url) as entry:
        found = {path.name: path.stat().st_ino for path in entry.folder.glob("*/*.bin")}
        assert complete.items() <= found.items()
        assert len(found) == 7
    assert entries(cache) == [key_of(few_proteins_db)]


def test_the_oldest_entries_go_and_never_one_in_use(cache, monkeypatch):
    """By hand: three entries of 600 kB each in a cache of 2 MB; their locks tell when they were used last."""

    def create(folder: Path) -> None:
        (folder / "content").write_bytes(b"x" * 600_000)

    monkeypatch.setenv("SWSEARCH_CACHE_LIMIT", "2000000")
    small = NodeCache()
    used = small.open("a", 600_000, create)
    for age, key in ((30, "b"), (20, "c")):
        small.open(key, 600_000, create).close()
        os.utime(cache / f"{key}.lock", (1e9 - age, 1e9 - age))
    os.utime(cache / "a.lock", (1e9 - 40, 1e9 - 40))
    small.open("d", 600_000, create).close()
    assert entries(cache) == ["a", "c", "d"]
    with (
        used,
        pytest.raises(DatabaseError, match=r"limit of 2,000,000 bytes, of which 600,\d\d\d bytes are in use, and"),
    ):
        small.open("e", 1_500_000, create)
    assert entries(cache) == ["a"]
    with small.open("e", 1_500_000, create):
        assert entries(cache) == ["e"]
    with pytest.raises(DatabaseError, match="set SWSEARCH_CACHE_LIMIT, or another folder with SWSEARCH_CACHE"):
        small.open("f", 2_500_000, create)


def test_an_open_database_is_in_use_until_it_is_closed(cache, url):
    database = open_database(url)
    (lock,) = cache.glob("*.lock")
    with lock.open() as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        database.close()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("text", "n_bytes"), [("1000", 1000), ("2K", 2048), ("1.5g", 3 << 29), ("1 T", None), ("x", None)]
)
def test_the_limit_is_a_size(cache, monkeypatch, url, text, n_bytes):
    monkeypatch.setenv("SWSEARCH_CACHE_LIMIT", text)
    if n_bytes is None:
        with pytest.raises(DatabaseError, match="give bytes, or a number with K, M, G or T, such as 200G"):
            open_database(url)
    elif n_bytes < 10_000:
        with pytest.raises(DatabaseError, match=f"has a limit of {n_bytes:,} bytes, and the database needs"):
            open_database(url)
    else:
        open_database(url).close()


def test_a_cache_that_cannot_be_written_is_one_line(monkeypatch, tmp_path, url):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(DatabaseError, match=r"the cache .* cannot be used: Not a directory .*; choose another folder"):
        open_database(url)


def test_what_no_program_reads_is_not_fetched(server, cache, few_proteins_db, url, tmp_path):
    """The lock file of the database's writer, and other files, may have been uploaded with it."""
    server.put(object_name(url, "notes.txt"), b"notes")
    with fetch(url) as entry:
        found = sorted(path.relative_to(entry.folder).as_posix() for path in entry.folder.rglob("*") if path.is_file())
    catalogue = json.loads((few_proteins_db / "catalogue.json").read_text())
    (segment,) = catalogue["segments"]
    assert found == sorted(["catalogue.json", *(f"{segment['name']}/{name}.bin" for name in segment["files"])])
    shutil.rmtree(cache)


# --- slices ---


@pytest.fixture(scope="module")
def dealt(tmp_path_factory):
    """A database of three slices, with removed subjects and a taxonomy."""
    made = sliced_databases(tmp_path_factory.mktemp("sliced"))
    (made / "nodes.dmp").write_text("1\t|\t1\t|\tno rank\t|\n9606\t|\t1\t|\tspecies\t|\n")
    set_taxonomy(made / "dealt_proteins.db", made / "nodes.dmp")
    return made / "dealt_proteins.db"


def content(database):
    return [(one.subject_index.tolist(), one.residues.tobytes()) for one in database.partitions()]


def part_of(source, segments):
    """A slice of a database, by the numbers of its segments."""
    return open_database(source, parts=[DatabasePart(segments=tuple(segments))])


def test_a_slice_is_fetched_without_the_segments_of_others(server, cache, dealt):
    """Their objects are not even there. Expected values: the slice of the folder."""
    url = server.upload(dealt, "slices/dealt.db")
    for path in (dealt / "segment-000005-slice-001").iterdir():
        server.delete(object_name(url, f"{path.parent.name}/{path.name}"))
    with part_of(dealt, [1, 2]) as here, part_of(url, [2, 1]) as there:
        assert content(there) == content(here)
        assert there.catalogue == here.catalogue
        assert there.members[0].taxonomy_arrays.keys() == here.members[0].taxonomy_arrays.keys()
        again = pickle.loads(pickle.dumps(there))
        assert content(again) == content(here)
        assert again.path == there.path
        again.close()
    (entry,) = entries(cache)
    assert entry.startswith(f"{key_of(dealt)}-")
    files = {path.relative_to(cache / entry).as_posix() for path in (cache / entry).rglob("*") if path.is_file()}
    catalogue = read_catalogue((dealt / "catalogue.json").read_text())
    others = {name for name in catalogue.files if name.startswith("segment-000005-slice-001/")}
    assert len(others) > 7
    assert files == {*catalogue.files, "catalogue.json"} - others
    with part_of(url, []) as nothing:
        assert nothing.segments == ()
        assert nothing.n_subjects == catalogue.n_subjects
    with pytest.raises(DatabaseError, match=r"segment-000005-slice-001/.* does not exist; check the URL"):
        open_database(url)
    assert len(entries(cache)) == 2


def test_a_slice_of_a_database_that_the_cache_has_is_not_fetched(server, cache, dealt):
    url = server.upload(dealt, "slices/whole.db")
    part_of(url, range(3)).close()
    for path in dealt.glob("segment-*/*"):
        server.delete(object_name(url, f"{path.parent.name}/{path.name}"))
    with part_of(dealt, [1]) as here, part_of(url, [1]) as there:
        assert content(there) == content(here)
    assert entries(cache) == [key_of(dealt)]
