"""Taxdumps in all forms in which NCBI ships them give one tree; others are refused by file and line."""

import gzip
import io
import os
import tarfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from swsearch.errors import InputError
from swsearch.taxonomy import dump
from swsearch.taxonomy.dump import FILES, load_taxonomy, read_dump
from swsearch.taxonomy.tree import packed_arrays
from tests.taxonomy.dumps import EXCERPT, with_changes


def same(one, other):
    """Whether two trees have the same arrays."""
    ours, theirs = packed_arrays(one), packed_arrays(other)
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


def archived(folder: Path, kind: str) -> Path:
    """Write the taxdump of a folder as an archive, with files that are not read, or as its nodes alone."""
    path = folder.parent / f"taxdump.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("readme.txt", *FILES):
                archive.writestr(name, b"not read" if name == "readme.txt" else (folder / name).read_bytes())
    elif "tar" in kind:
        with tarfile.open(path, "w:" + kind.partition(".")[2]) as archive:
            for name in ("citations.dmp", "delnodes.dmp", "names.dmp", "./merged.dmp", "nodes.dmp"):
                content = b"1\t|\tnot read\t|\n" if "citations" in name else (folder / name).read_bytes()
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    else:
        path = folder / "nodes.dmp"
    return path


@pytest.mark.parametrize("kind", ["tar.gz", "tar.xz", "tar", "zip", "nodes"])
def test_every_form_gives_the_tree_of_the_folder(tmp_path, kind):
    """Source: the folder."""
    folder = with_changes(tmp_path / "dump")
    assert same(read_dump(archived(folder, kind)), read_dump(folder))


def test_nodes_alone_are_a_tree_without_names(tmp_path):
    """Also compressed, and through a pipe, as in ``<(zcat nodes.dmp.gz)``."""
    content = (EXCERPT / "nodes.dmp").read_bytes()
    (tmp_path / "nodes.gz").write_bytes(gzip.compress(content))
    tree = read_dump(tmp_path / "nodes.gz")
    assert not tree.has_names
    assert tree.name(0) is None
    assert tree.lineage_names(tree.index(9606))[-1] == "taxid 9606"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert same(read_dump(pipe), tree)
    writer.join()


def test_the_columns_of_new_taxdump_and_lines_without_tabs_are_read(tmp_path):
    """``new_taxdump`` has more columns; its first ones, and those that are separated by bars alone, are the same."""
    (tmp_path / "nodes.dmp").write_text("".join(f"{i}\t|\t1\t|\tclade\t|\tx | y\t|\t{i}\t|\n" for i in (1, 7)))
    (tmp_path / "names.dmp").write_text(
        "1\t|\troot\t|\t\t|\tscientific name\t|\n7\t|\ta|b  c\t|\t\t|\tscientific name\t|\n"
        "7\t|\tlater\t|\t\t|\tscientific name\t|\n7\t|\tpet\t|\t\t|\tcommon name\t|\n"
        "7\t|\tthe pet\t|\t\t|\tgenbank common name\t|\n8\t|\tno taxon\t|\t\t|\tscientific name\t|"
    )
    tree = read_dump(tmp_path)
    assert [tree.name(one) for one in range(2)] == ["root", "a|b  c"]
    assert tree.common_name(1) == "the pet"
    plain = tmp_path / "plain.txt"
    plain.write_text("1|1|clade\r\n 7 | 1 | clade |\r\n")
    assert read_dump(plain).taxids.tolist() == [1, 7]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nodes.dmp", "1\t|\t1\t|\troot\t|\n2\t|\n", r"nodes\.dmp, line 2: a node's line is"),
        ("nodes.dmp", "1\t|\t1\t|\n\n", "line 2: a node's line is"),
        ("nodes.dmp", "x\t|\t1\t|\n", "line 1: a node's line is"),
        ("nodes.dmp", "99999999999\t|\t1\t|\n", "line 1: a node's line is"),
        ("nodes.dmp", "1\t|\t1\t|\n5\t|\t4\t|\n", "the parent 4 of taxonomy id 5 is not there"),
        ("nodes.dmp", "1\t|\t1\t|\n5\t|\t1\t|\n5\t|\t1\t|\n", "taxonomy id 5 is there twice"),
        ("nodes.dmp", "1\t|\t1\t|\n5\t|\t6\t|\n6\t|\t5\t|\n", "taxonomy id 5 is below no root"),
        ("nodes.dmp", "", "nodes.dmp in it, or an empty one"),
        ("names.dmp", "a\t|\tname\t|\t\t|\tscientific name\t|\n", r"names\.dmp, line 1: a name's line is"),
        ("merged.dmp", "1\t|\n", r"merged\.dmp, line 1: a line is"),
        ("delnodes.dmp", "one\t|\n", r"delnodes\.dmp, line 1: a line is"),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "tar.gz"])
def test_a_line_of_another_form_is_named(tmp_path, name, content, words, kind):
    folder = with_changes(tmp_path / "dump")
    (folder / name).write_text(content)
    path = folder if kind == "folder" else archived(folder, kind)
    with pytest.raises(InputError, match=words) as caught:
        read_dump(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_taxdump_is_refused_with_what_to_give(tmp_path):
    folder = with_changes(tmp_path / "dump")
    with pytest.raises(InputError, match=r"has no nodes\.dmp; give NCBI's taxdump"):
        read_dump(tmp_path)
    with pytest.raises(InputError, match=r"nosuch: No such file.*give NCBI's taxdump"):
        read_dump(tmp_path / "nosuch")
    for kind in ("tar.gz", "zip"):
        whole = archived(folder, kind)
        whole.write_bytes(whole.read_bytes()[:400])
        with pytest.raises(InputError, match="archive is damaged or cut short"):
            read_dump(whole)
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(folder / "names.dmp", "names.dmp")
    with pytest.raises(InputError, match=r"there is no nodes\.dmp in it"):
        read_dump(tmp_path / "other.tar")


# --- the cache ---


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of an empty cache that keeps taxdumps of any size."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(dump, "SMALLEST_BYTES", 0)
    return tmp_path / "cache" / "swsearch" / "taxonomy"


def test_a_taxdump_is_read_once_for_each_content(kept, tmp_path, monkeypatch):
    folder = with_changes(tmp_path / "dump")
    first = load_taxonomy(folder)
    (entry,) = kept.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(dump, "read_dump", None)  # a second reading would fail
        assert same(load_taxonomy(folder), first)
    (folder / "merged.dmp").write_text("5\t|\t9606\t|\n")
    assert load_taxonomy(folder).merged.tolist() == [[5, 9606]]
    assert len(list(kept.iterdir())) == 2
    for path in entry.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with_changes(folder)
    assert same(load_taxonomy(folder), first)  # the damaged tree was read again


def test_the_cache_keeps_the_trees_that_were_used_last(kept, tmp_path):
    folders = []
    for number in range(dump.MOST_TREES + 2):
        folder = with_changes(tmp_path / f"dump{number}")
        (folder / "delnodes.dmp").write_text(f"{number + 1}\t|\n")
        load_taxonomy(folder)
        for place, known in enumerate(sorted(kept.iterdir(), key=lambda one: one.stat().st_mtime)):
            os.utime(known, (place, place))  # distinct times, however fast the test runs
        folders.append(folder)
    assert len(list(kept.iterdir())) == dump.MOST_TREES


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(dump, "SMALLEST_BYTES", 0)
    assert len(load_taxonomy(EXCERPT)) == 138


def test_a_small_taxdump_is_not_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_taxonomy(EXCERPT)
    assert not (tmp_path / "cache").exists()
