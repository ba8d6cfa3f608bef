"""Files whose names ask for compression are compressed, with the same bytes each time.

The expected content is that of the same output without compression.
"""

import bz2
import gzip
import lzma

import pytest
from xopen import xopen

from swsearch.cli.app import main
from tests.cli.conftest import QUERIES

WRITERS = {
    "query.tsv": ["query", QUERIES, "{db}", "--store", "none", "--quiet", "--format", "tsv", "--out"],
    "export.fa": ["db", "export", "{db}", "--out"],
    "matrix.tsv": ["align", "--mode", "edit", "--text", "RISOTTO", "PRESTO", "--matrix-out"],
}


def plain(name, data):
    if name.endswith(".zst"):
        with xopen(name, "rb", threads=0) as stream:
            return stream.read()
    return {"gz": gzip, "bz2": bz2, "xz": lzma}[name.rpartition(".")[2]].decompress(data)


@pytest.fixture(scope="module")
def plain_outputs(tmp_path_factory, few_proteins_db):
    """A folder with the output of each command, not compressed."""
    folder = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, words in WRITERS.items():
            assert main([*command(words, few_proteins_db), name]) == 0
    return folder


def command(words, database):
    return [str(database if word == "{db}" else word) for word in words]


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst", "GZ"])
@pytest.mark.parametrize("writer", WRITERS)
def test_text_is_compressed_as_the_name_says(swsearch, tmp_path, few_proteins_db, plain_outputs, writer, suffix):
    """Source: the same output without the suffix; gzip's time and name fields are empty."""
    expected = (plain_outputs / writer).read_bytes()
    made = []
    for _ in range(2):
        assert swsearch(*command(WRITERS[writer], few_proteins_db), f"{writer}.{suffix}").code == 0
        made.append((tmp_path / f"{writer}.{suffix}").read_bytes())
    assert made[0] == made[1]
    assert plain(f"{writer}.{suffix.lower()}", made[0]) == expected if suffix != "GZ" else gzip.decompress(made[0])
    if suffix == "gz":
        assert made[0][3:8] == bytes(5)


def test_what_cannot_be_compressed_says_so(swsearch, tmp_path, protein_db):
    arguments = ["query", QUERIES, protein_db, "--store", "none"]
    assert "binary" in swsearch(*arguments, "--format", "parquet", "--out", "hits.parquet.gz").error
    assert "choose a name that ends in" in swsearch(*arguments, "--plot", "scores.png.gz").error
    outcome = swsearch("batch", QUERIES, protein_db, "--store", "b.sqlite", "--events", "log.jsonl.gz")
    assert "--events log.jsonl.gz" in outcome.error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
def test_a_full_disk_while_compressing_is_one_line(protein_db, spawn, tmp_path, suffix):
    """Source: /dev/full, on which every write fails, linked under another name."""
    (tmp_path / f"full.{suffix}").symlink_to("/dev/full")
    process = spawn("db", "export", protein_db, "--out", f"full.{suffix}")
    _, errors = process.communicate()
    assert process.returncode == 1
    assert (
        errors
        == f"swsearch: error: full.{suffix}: No space left on device; free some space and run the command again\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "b.sqlite", "--events", "no/log.jsonl"], "--events no/log.jsonl: No such file or directory"),
        (["--store", "b.sqlite", "--events", "."], "--events .: Is a directory"),
        (["--store", "no/b.sqlite", "--events", "log.jsonl"], "no/b.sqlite"),
    ],
)
def test_a_batch_that_cannot_begin_leaves_neither_store_nor_log(swsearch, tmp_path, protein_db, arguments, words):
    outcome = swsearch("batch", QUERIES, protein_db, *arguments)
    assert words in outcome.error
    assert not list(tmp_path.iterdir())
