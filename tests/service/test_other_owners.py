"""What one owner sends leaves the searches of others answered, and the server as it was.

Each test has an attack of eve, and a search of ann that is answered beside it. One server with small limits serves
all tests. Expected values: docs/service/use.md.
"""

import contextlib
import os
import signal
from dataclasses import fields

import pytest
from urllib3 import encode_multipart_formdata

from swsearch.options import SEARCH_OPTIONS
from swsearch.search.options import SearchOptions
from swsearch.service.client import ServerError
from swsearch.service.submit import OPTIONS
from tests.service.servers import RunningServer, worker_pids

TINY = "MKVLAAGIVGLCAKAYLEWTNQ"
TEXTS = [name for name, row in SEARCH_OPTIONS.items() if row.type is str and name in OPTIONS]
"""The options that are texts."""


class Shared(RunningServer):
    """A server of ann and eve."""

    def refusal(self, owner, **body):
        """Status, code and message of a refused submission of an owner."""
        return self.error("/api/v1/searches", body, owner=owner)

    def answers_ann(self, queries):
        """Let a new search of ann be answered."""
        self.n_answers = getattr(self, "n_answers", 0) + 1
        client = self.client("ann")
        key = client.submit(queries, "few.db", {"top": self.n_answers, "evalue": 1e3})["id"]
        assert client.wait(key)["state"] == "done"
        assert client.hits(key, 0)["total"] > 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory, databases):
    limits = [f"--limit={name}" for name in ("subject_sets=2", "stored_hits=10000")]
    protocols = ["--protocol=blast", "--protocol=tickets"]
    paths = [databases / "few.db", databases / "proteins.db"]
    with Shared(tmp_path_factory.mktemp("shared"), paths, *limits, *protocols, owners=["ann", "eve"]) as running:
        yield running
    assert running.events("error") == []


@contextlib.contextmanager
def stopped(pid):
    """A process that does nothing during the body."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_sets_of_subjects_of_one_owner_leave_others_theirs(shared, queries):
    """Eve may have two sets, and sends more: while they are searched, and afterwards."""
    eve, ann = shared.client("eve"), shared.client("ann")
    subjects = [f">subject{number}\n{TINY}{'A' * number}\n" for number in range(1, 6)]
    with stopped(*worker_pids(shared)):
        keys = [eve.submit(queries, subjects=text)["id"] for text in subjects[:2]]
        refused = shared.refusal("eve", queries=queries, subjects=subjects[2])
        assert refused[:2] == (429, "too_many_subject_sets")
        own = ann.submit(queries, subjects=subjects[3], options={"evalue": 1e6})["id"]
        assert eve.submit(queries, subjects=subjects[0], options={"top": 1})["state"] == "queued"  # the same set
    assert ann.wait(own)["state"] == "done"
    assert [eve.wait(key)["state"] for key in keys] == ["done", "done"]
    done = [eve.wait(eve.submit(queries, subjects=text)["id"])["state"] for text in subjects[2:5]]
    assert done == ["done"] * 3
    (folder,) = shared.folder.glob("hits.sqlite.subjects")
    assert len(os.listdir(folder)) <= 3


def test_sets_of_subjects_of_one_owner_are_unknown_to_others(shared, queries):
    """Whoever has a link of a search learns the name of its set; only those who sent the set can search it by name."""
    ann = shared.client("ann")
    name = ann.submit(queries, subjects=f">ann\n{TINY}\n")["database"]["name"]
    assert name.startswith("subjects-")
    assert ann.submit(queries, name, options={"top": 1})["database"]["name"] == name
    known, unknown = (shared.refusal("eve", queries=queries, database=one) for one in (name, f"subjects-{'0' * 20}"))
    assert known == (404, "unknown_database", unknown[2].replace(f"subjects-{'0' * 20}", name))
    refused = shared.send_form("/ticket", [("q", "MKV")], owner="eve")
    assert (refused.status, "few.db, proteins.db" in refused.text, name in refused.text) == (400, True, False)
    refused = shared.refusal("eve", queries=queries, database="none.db")
    assert refused[2].endswith("choose few.db, proteins.db")


@pytest.mark.parametrize("character", ["\ud800", "\0", "\x1b", "\x85"])
def test_texts_that_cannot_be_stored_are_refused(shared, queries, character):
    def refused(**options):
        return shared.refusal("eve", queries=queries, database="few.db", options=options)

    for name in TEXTS:
        assert refused(**{name: f"9606{character}"})[:2] == (400, "bad_input")
    status, _, message = refused(id_pattern=f"a{character}")
    assert (status, message.split(" is ")[0]) == (400, f"--id-pattern: \\u{ord(character):04x} at character 2")
    assert shared.refusal("eve", queries=queries, database=f"few.db{character}")[0] == 400
    assert refused(**{character: 1})[0] == 400
    assert shared.refusal("eve", queries=queries, database="few.db", alphabet=f"protein{character}")[0] == 400
    assert isinstance(shared.client("eve").searches(), list)


def test_an_address_with_nul_is_refused(shared):
    """PostgreSQL refuses a NUL in what is looked for."""
    for path in ("/api/v1/searches/a%00", "/api/v1/searches/a/queries/0/hits?text=%00"):
        assert shared.error(path, owner="eve")[:2] == (400, "bad_input")


def test_every_text_option_is_tested():
    kinds = {field.name: str(field.type) for field in fields(SearchOptions)}
    assert sorted(TEXTS) == sorted(name for name in OPTIONS if "str" in kinds[name])


def test_forms_and_other_protocols_refuse_such_texts_too(shared, queries):
    def sent(path, **more):
        fields = {"sequences": queries, "databases": "few.db", **more}
        return shared.send_form(path, fields.items(), owner="eve")

    page = sent("/searches", id_pattern="a\0")
    assert (page.status, "u0000 at character 2 is a control character" in page.text) == (422, True)
    fields = [("sequences", queries), ("databases", "few.db"), ("id_pattern", "a\\ud800")]
    body, kind = encode_multipart_formdata(fields)
    strange = {"Origin": shared.url, "Content_Type": f"{kind}; charset=unicode_escape"}
    assert shared.request("/searches", body, owner="eve", **strange).status == 415
    fields = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "few.db\0", "QUERY": queries}
    assert 'class="error"' in shared.send_form("/blast/Blast.cgi", fields.items(), owner="eve").text
    ticket = {"q": queries, "mode": "all", "database[]": "few.db\0"}
    assert shared.send_form("/ticket", ticket.items(), owner="eve").json()["status"] == "ERROR"
    assert isinstance(shared.client("eve").searches(), list)
    shared.answers_ann(queries)


def test_an_owner_has_a_limit_of_stored_hits(shared, queries):
    """Of 60 subjects, 200 queries have at most 12,000 alignments, more than the 10,000 of an owner."""
    eve = shared.client("eve")
    many = "".join(f">q{number}\n{TINY}{'W' * (number % 7)}\n" for number in range(200))
    status, code, message = shared.refusal(
        "eve", queries=many, database="few.db", options={"top": 100_000, "evalue": "inf"}
    )
    assert (status, code) == (429, "too_many_hits")
    assert "and this one 12,000, together more than the 10,000 that an owner may have" in message
    status, code, _ = shared.refusal("eve", queries=many, database="few.db", options={"top": 1, "ties": "all"})
    assert (status, code) == (429, "too_many_hits")
    shared.answers_ann(queries)
    with pytest.raises(ServerError, match="an owner may have"):
        eve.submit(many, "proteins.db", {"top": 100})


def test_an_origin_that_is_no_address_is_another_site(shared, queries):
    body = {"queries": queries, "database": "few.db"}
    assert shared.error("/api/v1/searches", body, Origin="http://[", owner="eve")[:2] == (403, "cross_site")
    asked = "/blast/Blast.cgi?CMD=Put&PROGRAM=blastp&DATABASE=few.db&QUERY=MKV"
    assert "another site" in shared.request(asked, Referer="http://[", owner="eve").text
    shared.answers_ann(queries)
