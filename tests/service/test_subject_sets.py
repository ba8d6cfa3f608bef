"""Subjects that are sent with a search in place of a database's name. Source: `swsearch query` on the same FASTA."""

import os
import time

import pytest

from swsearch.cli.app import main
from swsearch.errors import InputError, Refused
from swsearch.service.databases import KEEP_SECONDS, Databases, SubjectSets, is_subject_set
from swsearch.service.settings import ServerLimits
from tests.service.servers import local_report
from tests.support import DATA

TWO = ">P1 first\nMKVLAAGIVGLLLAQWERTY\n>P2\nMKVLAAGIVGLLWAQWERTY\n"


def test_a_search_of_sent_subjects_gives_the_bytes_of_a_query(server, databases, queries, tmp_path):
    client = server.client()
    subjects = (databases / "few.fasta").read_text()
    done = client.wait(client.submit(queries, subjects=subjects, options={"top": 4})["id"])
    name = done["database"]["name"]
    assert (done["state"], is_subject_set(name)) == ("done", True)
    assert main(["index", str(databases / "few.fasta"), "-o", str(tmp_path / name), "--quiet"]) == 0
    for report in ("blast6", "pairwise", "fasta"):
        local = local_report(tmp_path / name, tmp_path, "--top", "4", "--format", report)
        assert client.report(done["id"], report) == local
    # The same subjects are the same database; nobody sees it in a list or an error.
    again = client.submit(queries, subjects=subjects, options={"top": 5})
    assert again["database"]["name"] == name
    assert name not in [one["name"] for one in client.databases()]
    assert name not in server.request("/databases").text
    assert name not in server.error("/api/v1/searches", {"queries": queries, "database": "no.db"})[2]
    (folder,) = server.folder.glob("hits.sqlite.subjects")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert str(folder) not in str(client.search(done["id"]))


def test_a_file_is_sent_to_a_server_in_place_of_a_database(server, databases, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["--top", "2", "--quiet", "--format", "blast6"]
    assert main(["query", str(DATA / "queries.fasta"), str(databases / "few.db"), *arguments, "--store", "none"]) == 0
    expected = capfd.readouterr().out
    subjects = str(databases / "few.fasta")
    assert main(["query", str(DATA / "queries.fasta"), subjects, *arguments, "--server", server.url]) == 0
    assert capfd.readouterr().out == expected != ""
    (tmp_path / "bad.fasta").write_text(">a\nMK1\n")
    assert main(["query", str(DATA / "queries.fasta"), "bad.fasta", "--server", server.url]) == 1
    assert "bad.fasta, record 1 (a), line 2, column 3" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"subjects": ">a\nMK1\n"}, 400, "the subjects, record 1 (a), line 2, column 3"),
        ({"subjects": ">a\nK\udfff\n"}, 400, "the subjects: \\udfff at character 5 is not a character"),
        ({"subjects": ""}, 400, "the subjects"),
        ({"subjects": "\x1f\x8b\x08"}, 400, "the subjects"),
        ({"subjects": TWO, "database": "few.db"}, 400, "not both"),
        ({"database": "subjects-0123456789abcdef0123"}, 404, "there is no database"),
    ],
)
def test_what_cannot_be_searched_is_refused(server, queries, body, status, message):
    found = server.error("/api/v1/searches", {"queries": queries, **body})
    assert found[0] == status
    assert message in found[2]


# --- the folder ---


def test_sets_are_found_by_their_names_as_soon_as_they_are_there(tmp_path, databases):
    sets = SubjectSets(tmp_path / "sets", ServerLimits())
    searched = Databases({"few.db": databases / "few.db"}, sets=tmp_path / "sets")
    assert [one.name for one in searched.all()] == ["few.db"]
    first = sets.add(TWO)
    assert searched.current(first).catalogue.n_subjects == 2
    second = sets.add(TWO.replace("P1", "P3"))
    assert searched.current(second).catalogue.n_residues == 40
    assert sorted(one.name for one in searched.all()) == sorted(["few.db", first, second])
    assert [one.name for one in searched.offered()] == ["few.db"]
    with pytest.raises(Refused, match=r"choose few\.db$"):
        searched.current("no.db")


def test_a_set_is_kept_while_a_search_needs_it_and_for_an_hour(tmp_path):
    sets = SubjectSets(tmp_path, ServerLimits())
    used, unused, new = (sets.add(TWO.replace("P1", name)) for name in ("used", "unused", "new"))
    for name in (used, unused):
        os.utime(tmp_path / name, (time.time() - KEEP_SECONDS - 10,) * 2)
    assert sets.delete_unused({used, "few.db"}) == 1
    assert sorted(os.listdir(tmp_path)) == sorted([used, new])
    assert sets.add(TWO.replace("P1", "used")) == used  # it is used again, and is kept for another hour
    assert sets.delete_unused(set()) == 0
    assert SubjectSets(tmp_path / "nothing", ServerLimits()).delete_unused(set()) == 0


def test_limits_and_problems_leave_nothing_behind(tmp_path):
    sets = SubjectSets(tmp_path, ServerLimits(subject_residues=39, subject_sets=1))
    with pytest.raises(Refused, match="have more than 39 residues, and this server takes no more"):
        sets.add(TWO)
    for text in (">a\n12\n", "", ">a\n"):
        with pytest.raises(InputError, match=r"^the subjects"):
            sets.add(text)
    assert os.listdir(tmp_path) == []
    first = sets.add(">P1\nMKVLAAGIVGLLLAQWERTY\n")
    with pytest.raises(Refused, match="keeps 1 sets"):
        sets.add(">P2\nMKVLAAGIVGLLLAQWERTY\n")
    assert sets.add(">P1\nMKVLAAGIVGLLLAQWERTY\n") == first


def test_an_owner_has_a_quota_and_unused_sets_go_first(tmp_path):
    """Of two sets, one is needed by nothing, and one by a finished search; then all are needed by unfinished ones."""
    sets = SubjectSets(tmp_path, ServerLimits(subject_sets=2))

    def add(name, owner="eve", **searched):
        return sets.add(TWO.replace("P1", name), owner, lambda: {names[key]: value for key, value in searched.items()})

    def grown_old(name):
        for path in (tmp_path / name).glob("owner-*"):
            os.utime(path, (time.time() - 100,) * 2)

    names = {}
    for name in ("finished", "unused"):
        names[name] = add(name, finished=False)
        grown_old(names[name])
    names["third"] = add("third", finished=False)
    assert sorted(os.listdir(tmp_path)) == sorted([names["finished"], names["third"]])
    # Another owner has a quota of its own, also of the same set, which then stays until both let it go.
    assert add("finished", "bob") == names["finished"]
    names["fourth"] = add("fourth", finished=False, third=True)
    names["fifth"] = add("fifth", third=True, fourth=False)
    assert sorted(os.listdir(tmp_path)) == sorted(names[name] for name in ("finished", "third", "fifth"))
    with pytest.raises(Refused, match=r"keeps 2 sets of subjects for an owner, and searches of yours need all of them"):
        add("sixth", third=True, fifth=True)
    names["seventh"] = add("seventh", "bob", finished=True)
    assert sorted(os.listdir(tmp_path)) == sorted(names[name] for name in ("finished", "third", "fifth", "seventh"))
