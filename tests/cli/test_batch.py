"""`swsearch batch`: after any interruption, the resumed run gives the same bytes as an uninterrupted batch.

The expected output comes from `swsearch query` or from a batch without interruption, shards or merges; the expected
messages are written by hand.
"""

import hashlib
import json
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest

from swsearch.store.store import Store
from tests.cli.conftest import DATA, QUERIES
from tests.tiers import mostly_thorough


def forget_queries(store, first):
    """Delete the queries from this number on, as if the run had been killed before it stored them."""
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("DELETE FROM queries WHERE number >= ?", (first,))
    connection.commit()
    connection.close()


def report(swsearch, store, run="latest"):
    return swsearch("report", run, "--format", "json", "--store", store).printed


def test_a_batch_holds_what_a_query_of_the_same_sequences_finds(swsearch, tmp_path, few_proteins_db, many_queries):
    """Source: `swsearch query` on the concatenated files."""
    outcome = swsearch("batch", *many_queries, few_proteins_db, "--store", "b.sqlite", "--top", "3")
    assert outcome.printed == "run 1 in b.sqlite: 35 queries done, 0 failed\n"
    (tmp_path / "all.fasta").write_text("".join((tmp_path / name).read_text() for name in many_queries))
    direct = swsearch("query", "all.fasta", few_proteins_db, "--top", "3", "--format", "json", "--store", "none")
    assert report(swsearch, "b.sqlite") == direct.out


def test_queries_with_the_same_letters_are_computed_once(swsearch, few_proteins_db, many_queries):
    """Source: the number of cells that the run counts; seven of the queries have the same letters as another."""
    assert swsearch("batch", *many_queries, few_proteins_db, "--store", "b.sqlite").code == 0
    with Store("b.sqlite") as store:
        free = [result.number for result in store.results.queries("latest") if result.stats.cells == 0]
    assert free == [4, 9, 14, 19, 24, 29, 34]


@pytest.mark.parametrize(("committed", "told"), mostly_thorough([(1, True), (6, False), (15, True)], (6, False)))
def test_a_killed_batch_resumes_to_the_same_bytes(
    swsearch, spawn_paused, tmp_path, few_proteins_db, many_queries, committed, told
):
    """Source: the same batch without interruption. The kill comes before or after the last query's event is written."""
    assert swsearch("batch", *many_queries, few_proteins_db, "--store", "whole.sqlite").code == 0
    arguments = ["batch", *many_queries, few_proteins_db, "--store", "b.sqlite", "--resume", "latest"]
    moment = f'Run, "tell", {committed + 1}' if told else f'Results, "add", {committed}'
    process = spawn_paused(moment, *arguments, "--events", "events.jsonl", "--partition-residues", "2000")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    resumed = swsearch(*arguments, "--events", "events.jsonl")
    assert resumed.code == 0, resumed.err
    were = "was" if committed == 1 else "were"
    assert f"{35 - committed} queries done, {committed} {were} there before" in resumed.out
    assert report(swsearch, "b.sqlite") == report(swsearch, "whole.sqlite")
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    done = [line["number"] for line in lines if line["event"] == "query"]
    assert len(done) == len(set(done)) == (35 if told else 34)
    assert set(done) <= set(range(35))
    assert lines[-1] == {**lines[-1], "event": "end", "run": 1, "failed": 0}


def test_a_share_does_not_go_on_with_the_run_of_another(swsearch, few_proteins_db, many_queries):
    """By hand: both shares are in one store. If the second resumed the first share's run, it would find it finished."""
    arguments = ["batch", *many_queries, few_proteins_db, "--store", "b.sqlite", "--top", "1"]
    assert swsearch(*arguments, "--shard", "1/2").code == 0
    with Store("b.sqlite") as store:
        store.runs.interrupt(1)
    second = swsearch(*arguments, "--shard", "2/2", "--resume", "latest")
    assert second.out == "run 2 in b.sqlite: 17 queries done, 0 failed\n"
    refused = swsearch(*arguments, "--shard", "2/2", "--resume", "1")
    assert "run 1 of b.sqlite is shard 1/2, which is not in --shard 2/2; give the shard that it began" in refused.error
    whole = swsearch(*arguments, "--resume", "1")
    assert whole.out == "run 1 in b.sqlite: 17 queries done, 18 were there before, 0 failed\n"


def test_failed_queries_are_named_and_the_others_are_done(swsearch, tmp_path, few_proteins_db):
    (tmp_path / "mixed.fasta").write_text(">good\nMKVLAAGIVGLLLAQ\n>bad\nMKV7\n>empty\n>good2\nMKWVTFISLLFLFSS\n")
    outcome = swsearch("batch", "mixed.fasta", few_proteins_db, "--store", "b.sqlite", "--events", "e.jsonl")
    assert outcome.code == 1
    assert outcome.out == "run 1 in b.sqlite: 2 queries done, 2 failed\n"
    assert "failed: mixed.fasta, record 2 (bad): residue 4: '7' is not in alphabet protein" in outcome.err
    assert "failed: mixed.fasta, record 3 (empty): has no residues" in outcome.err
    events = [json.loads(line)["event"] for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert sorted(events) == ["end", "failed", "failed", "query", "query", "start"]


def test_resume_refuses_another_search_and_other_queries(swsearch, tmp_path, few_proteins_db, many_queries):
    assert swsearch("batch", *many_queries, few_proteins_db, "--store", "b.sqlite").code == 0
    other = swsearch(
        "batch", *many_queries, few_proteins_db, "--store", "b.sqlite", "--resume", "1", "--gap-open", "10"
    )
    assert "gap costs differs" in other.refusal
    turned = swsearch("batch", *reversed(many_queries), few_proteins_db, "--store", "b.sqlite", "--resume", "1")
    assert "give the files that the run began with" in turned.refusal
    with Store("b.sqlite") as store:
        assert (store.runs.get(1).state, store.runs.get(1).n_missing) == ("finished", 0)
    missing = swsearch("batch", *many_queries, few_proteins_db, "--store", "b.sqlite", "--resume", "9")
    assert "no run '9'" in missing.error


def test_resume_refuses_files_that_lack_queries_of_the_run(swsearch, few_proteins_db, many_queries):
    """By hand: the run has 35 queries, the first file 20. If resumed, it would be reported as a complete run of 20."""
    assert swsearch("batch", *many_queries, few_proteins_db, "--store", "b.sqlite").code == 0
    with Store("b.sqlite") as store:
        store.runs.interrupt(1)
    refused = swsearch("batch", many_queries[0], few_proteins_db, "--store", "b.sqlite", "--resume", "1")
    assert refused.code == 1
    assert (
        "run 1 of b.sqlite has its query 34, but the files given hold 20; give the files that the run began with"
        in refused.error
    )
    with Store("b.sqlite") as store:
        assert store.runs.get(1).state == "interrupted"
    assert swsearch("batch", *many_queries, few_proteins_db, "--store", "b.sqlite", "--resume", "latest").code == 0


def test_a_run_left_on_another_machine_is_taken_up_where_its_number_is_given(
    swsearch, monkeypatch, few_proteins_db, many_queries
):
    """Source: the run of a batch on one machine. Another machine cannot see that its process was killed."""
    assert swsearch("batch", *many_queries, few_proteins_db, "--store", "whole.sqlite").code == 0
    arguments = ["batch", *many_queries, few_proteins_db, "--store", "b.sqlite"]
    store = ["--store", "hits.sqlite"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("swsearch.store.runs.host_name", lambda: "node7")
        assert swsearch(*arguments).code == 0
        with Store("b.sqlite") as store:
            store.runs.resume(1)
    forget_queries("b.sqlite", 20)
    latest = swsearch(*arguments, "--resume", "latest")
    assert latest.out == "run 2 in b.sqlite: 35 queries done, 0 failed\n"
    assert re.search(r"run 1 of the same search is being worked on by process \d+ on node7; this is a new", latest.err)
    assert "if that process is gone, `--resume 1` goes on with it" in latest.err
    named = swsearch(*arguments, "--resume", "1")
    assert named.out == "run 1 in b.sqlite: 15 queries done, 20 were there before, 0 failed\n"
    assert re.search(r"run 1 was left to process \d+ on node7, which cannot be seen from here; going on", named.err)
    assert report(swsearch, "b.sqlite", "1") == report(swsearch, "whole.sqlite")


def test_a_run_that_is_being_worked_on_is_left_alone(swsearch, few_proteins_db, many_queries):
    """The process of the test itself holds run 1."""
    arguments = ["batch", many_queries[0], few_proteins_db, "--store", "b.sqlite"]
    assert swsearch(*arguments).code == 0
    with Store("b.sqlite") as store:
        store.runs.resume(1)
    refused = swsearch(*arguments, "--resume", "1")
    assert refused.code == 1
    assert re.search(
        r"run 1 of b.sqlite is being worked on by process \d+ on .*; wait for it or stop it", refused.error
    )
    latest = swsearch(*arguments, "--resume", "latest")
    assert latest.out == "run 2 in b.sqlite: 20 queries done, 0 failed\n"
    assert "this is a new run\n" in latest.err


def two_families() -> str:
    """Return Stockholm text: two alignments with equal consensus and different scores; the third repeats the first."""
    rows = {
        "one": ("MKVLWYEEKLLKFDDPPQQR", "MKVLWYEEKLLKFDDPPQQR"),
        "two": ("MKVLWYEEKLLKFDDPPQQR", "MKILFYDEKIIKYDEPPNQR"),
    }
    rows["three"] = rows["one"]
    blocks = [
        f"# STOCKHOLM 1.0\n#=GF ID {name}\na {first}\nb {second}\nc {first}\n//\n"
        for name, (first, second) in rows.items()
    ]
    return "".join(blocks)


def test_profiles_are_batched_resumed_and_sharded(swsearch, tmp_path, few_proteins_db):
    """Source: `swsearch query` with the same profiles, whose report has the same digest of their scores."""
    (tmp_path / "families.sto").write_text(two_families())
    asked = ["families.sto", few_proteins_db, "--evalue", "1000", "--top", "5"]
    direct = swsearch("query", *asked, "--format", "json", "--store", "none")
    assert json.loads(direct.printed)["queries"][0]["hits"] != json.loads(direct.out)["queries"][1]["hits"]
    assert swsearch("batch", *asked, "--store", "b.sqlite").code == 0
    assert report(swsearch, "b.sqlite") == direct.out
    with Store("b.sqlite") as store:
        assert [result.stats.cells == 0 for result in store.results.queries(1)] == [False, False, True]
    for index in (1, 2):
        assert swsearch("batch", *asked, "--store", f"{index}.sqlite", "--shard", f"{index}/2").code == 0
    assert swsearch("runs", "merge", "1.sqlite", "2.sqlite", "--store", "m.sqlite").code == 0
    assert report(swsearch, "m.sqlite") == direct.out
    assert swsearch("batch", *asked, "--store", "b.sqlite", "--resume", "1").code == 0
    (tmp_path / "families.sto").write_text(two_families().replace("DEPPNQR", "DEPPQQR"))
    refused = swsearch("batch", *asked, "--store", "b.sqlite", "--resume", "1")
    assert "run 1 of b.sqlite is of another search: what the profiles score differs" in refused.error


def test_a_batch_of_profiles_that_cannot_be_is_one_line_and_stores_nothing(swsearch, tmp_path, few_proteins_db):
    (tmp_path / "families.sto").write_text(two_families())
    store = ["--store", "b.sqlite"]
    mixed = swsearch("batch", "families.sto", QUERIES, few_proteins_db, *store)
    assert "families.sto contains profiles, other files contain sequences; search them in two batches" in mixed.error
    absent = swsearch("batch", "families.sto", "absent.fa", few_proteins_db, *store)
    assert "absent.fa: No such file or directory" in absent.error
    masked = swsearch("batch", "families.sto", few_proteins_db, "--composition", "bias", *store)
    assert "query one has position-specific scores; leave out --mask and --composition bias" in masked.error
    assert not (tmp_path / "b.sqlite").exists()


def test_resume_latest_starts_a_run_where_none_is_unfinished(swsearch, few_proteins_db, many_queries):
    for run in (1, 2):
        outcome = swsearch("batch", many_queries[0], few_proteins_db, "--store", "b.sqlite", "--resume", "latest")
        assert outcome.out == f"run {run} in b.sqlite: 20 queries done, 0 failed\n"


def test_an_exported_run_is_the_run(swsearch, few_proteins_db):
    store = ["--store", "hits.sqlite"]
    assert swsearch("query", QUERIES, few_proteins_db, *store).code == 0
    copied = swsearch("runs", "export", "latest", "--out", "copy.sqlite", *store)
    assert copied.out == "run 1 of hits.sqlite is run 1 of copy.sqlite\n"
    assert report(swsearch, "copy.sqlite") == report(swsearch, "hits.sqlite")
    for same in ("hits.sqlite", "./hits.sqlite", "sqlite:///hits.sqlite"):
        refused = swsearch("runs", "export", "latest", "--out", same, *store)
        assert f"--out {same}: this is the store that is read; choose another for the copy" in refused.refusal
    assert swsearch("runs", "list", *store).out.count("finished") == 1


def test_a_store_is_not_made_for_runs_that_are_not_there(swsearch, tmp_path, few_proteins_db):
    store = ["--store", "hits.sqlite"]
    assert swsearch("query", QUERIES, few_proteins_db, "--top", "1", *store).code == 0
    for arguments in (("merge", "hits.sqlite", "nowhere.sqlite", "--store"), ("export", "7", *store, "--out")):
        assert swsearch("runs", *arguments, "new.sqlite").code == 1
        assert not (tmp_path / "new.sqlite").exists()


def test_a_run_that_is_not_complete_says_so_wherever_it_goes(swsearch, few_proteins_db):
    """Expected: the report lists the stored queries, with a message on stderr; a copy of the run can be resumed."""
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "b.sqlite").code == 0
    assert swsearch("report", "1", "--store", "b.sqlite").err == ""
    with Store("b.sqlite") as store:
        store.runs.interrupt(1)
    outcome = swsearch("report", "1", "--store", "b.sqlite", "--format", "blast6")
    assert outcome.code == 0
    assert (
        outcome.err
        == "swsearch: warning: run 1 is interrupted; this is the report of the 7 queries that it has so far\n"
    )
    assert swsearch("runs", "export", "1", "--store", "b.sqlite", "--out", "copy.sqlite").code == 0
    with Store("copy.sqlite") as store:
        assert (store.runs.get(1).state, store.runs.get(1).finished) == ("interrupted", None)
    resumed = swsearch("batch", QUERIES, few_proteins_db, "--store", "copy.sqlite", "--resume", "latest")
    assert resumed.out == "run 1 in copy.sqlite: 0 queries done, 7 were there before, 0 failed\n"


def test_a_batch_reads_stdin(spawn, swsearch, few_proteins_db):
    """Source: the same queries read from the file."""
    process = spawn("batch", "-", few_proteins_db, "--store", "piped.sqlite", stdin=subprocess.PIPE)
    out, errors = process.communicate(QUERIES.read_text())
    assert process.returncode == 0, errors
    assert out == "run 1 in piped.sqlite: 7 queries done, 0 failed\n"
    assert swsearch("batch", QUERIES, few_proteins_db, "--store", "filed.sqlite").code == 0
    assert report(swsearch, "piped.sqlite") == report(swsearch, "filed.sqlite")


def test_dna_is_not_taken_for_protein_and_nothing_is_stored(swsearch, tmp_path, few_proteins_db):
    """Every DNA letter is also a protein letter; the second of two files is checked as well."""
    reads = DATA / "lambda_reads.fastq"
    outcome = swsearch("batch", QUERIES, reads, few_proteins_db, "--store", "b.sqlite")
    assert "lambda_reads.fastq is dna, but protein is needed" in outcome.refusal
    assert not list(tmp_path.iterdir())
    asked = swsearch("batch", reads, few_proteins_db, "--store", "b.sqlite", "--alphabet", "protein")
    assert asked.code == 0, asked.err


def test_a_batch_is_not_resumed_with_another_choice_of_subjects(swsearch, tmp_path, protein_db, many_queries):
    """By hand: the file that selects subjects is changed between the two runs; its name is unchanged."""
    (tmp_path / "chosen").write_text("A5IMB8\nB4RQP4\nA8Z6G0\n")
    arguments = ["batch", *many_queries, protein_db, "--store", "b.sqlite", "--include", "chosen"]
    assert swsearch(*arguments).code == 0
    assert swsearch(*arguments, "--resume", "1").code == 0
    shown = swsearch("runs", "show", "1", "--store", "b.sqlite").out
    assert re.search(r"^--include +chosen$", shown, re.MULTILINE)
    assert re.search(r"^chosen subjects +3$", shown, re.MULTILINE)
    (tmp_path / "chosen").write_text("A5IMB8\nB4RQP4\n")
    refused = swsearch(*arguments, "--resume", "1")
    assert (
        "run 1 of b.sqlite is of another search: the choice of subjects differs; leave --resume out" in refused.refusal
    )


def test_a_batch_is_not_resumed_with_another_library_of_contexts(swsearch, tmp_path, few_proteins_db):
    """By hand: a copy elsewhere has the same text; the file is then changed, in a name that no column depends on."""
    shutil.copy(DATA / "contexts.lib", tmp_path / "x.lib")
    arguments = ["batch", QUERIES, few_proteins_db, "--store", "b.sqlite", "--sensitive", "--top", "1"]
    assert swsearch(*arguments, "--contexts", DATA / "contexts.lib").code == 0
    assert swsearch(*arguments, "--contexts", "x.lib", "--resume", "1").code == 0
    shown = swsearch("runs", "show", "1", "--store", "b.sqlite").out
    digest = hashlib.sha256((tmp_path / "x.lib").read_bytes()).hexdigest()
    assert f"--contexts    {DATA / 'contexts.lib'}\n" in shown
    assert f"contexts digest {digest}\n" in shown
    parameters = json.loads(swsearch("report", "1", "--store", "b.sqlite", "--format", "json").out)["parameters"]
    assert (parameters["contexts"], parameters["contexts_digest"]) == ("contexts.lib", digest)
    (tmp_path / "x.lib").write_text((tmp_path / "x.lib").read_text().replace("NAME\t", "NAME\tc"))
    for other in (["--contexts", "x.lib"], []):
        refused = swsearch(*arguments, *other, "--resume", "1")
        assert "run 1 of b.sqlite is of another search: --contexts differs; leave --resume out" in refused.refusal


def test_a_batch_goes_on_after_a_compaction_and_not_after_a_change(swsearch, tmp_path, many_queries):
    """Source: a batch completed before the compaction; the report names the generation in which it began."""
    assert swsearch("index", QUERIES, "-o", "few.db").code == 0
    (tmp_path / "more.fasta").write_text(">more\nMKVLWYEEKLLKFDDPPQQRRSTHH\n")
    assert swsearch("db", "add", "few.db", "more.fasta").code == 0
    assert swsearch("batch", *many_queries, "few.db", "--store", "whole.sqlite").code == 0
    assert swsearch("batch", many_queries[0], "few.db", "--store", "b.sqlite").code == 0
    before = swsearch("db", "info", "few.db").out
    assert swsearch("db", "compact", "few.db").code == 0
    assert swsearch("db", "info", "few.db").out.split("digest")[1].split()[0] not in before
    resumed = swsearch("batch", *many_queries, "few.db", "--store", "b.sqlite", "--resume", "1")
    assert "15 queries done, 20 were there before" in resumed.printed
    assert report(swsearch, "b.sqlite") == report(swsearch, "whole.sqlite")
    assert swsearch("db", "remove", "few.db", "more").code == 0
    assert swsearch("db", "compact", "few.db").code == 0
    refused = swsearch("batch", *many_queries, "few.db", "--store", "b.sqlite", "--resume", "1")
    assert "is of another search: database differs" in refused.error


def test_latest_goes_on_with_runs_of_the_same_queries_alone(swsearch, few_proteins_db, many_queries):
    """By hand: the interrupted run is of the first file; a batch of the second file is a different search."""
    assert swsearch("batch", many_queries[0], few_proteins_db, "--store", "b.sqlite").code == 0
    with Store("b.sqlite") as store:
        store.runs.interrupt(1)
    other = swsearch("batch", many_queries[1], few_proteins_db, "--store", "b.sqlite", "--resume", "latest")
    assert other.out == "run 2 in b.sqlite: 15 queries done, 0 failed\n"


def test_a_run_at_work_is_not_deleted_unless_that_is_forced(swsearch, spawn_paused, few_proteins_db, many_queries):
    """A batch is paused after its third query; a forced deletion ends it with one line."""
    batch = ["batch", *many_queries, few_proteins_db, "--store", "b.sqlite"]
    process = spawn_paused('Results, "add", 3', *batch)
    for run in ("latest", "1"):
        refused = swsearch("runs", "delete", run, "--store", "b.sqlite")
        assert re.search(rf"run 1 of b.sqlite is not deleted: process {process.pid} on .* is at work", refused.refusal)
    assert swsearch("runs", "delete", "latest", "--force", "--store", "b.sqlite").out == "run 1 deleted\n"
    _, errors = process.communicate("\n")
    assert process.returncode == 1
    assert errors.count("error:") == 1
    assert "b.sqlite has no run '1'" in errors


def test_a_run_of_another_machine_is_not_deleted_unless_that_is_forced(swsearch, monkeypatch, few_proteins_db):
    store = ["--store", "hits.sqlite"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("swsearch.store.runs.host_name", lambda: "node7")
        assert swsearch("query", QUERIES, few_proteins_db, "--top", "1", *store).code == 0
        with Store("hits.sqlite") as opened:
            opened.runs.resume(1)
    refused = swsearch("runs", "delete", "1", *store)
    assert re.search(r"it was left to process \d+ on node7, which cannot be seen from here", refused.error)
    assert swsearch("runs", "delete", "1", *store, "--force").code == 0


def test_latest_is_the_newest_finished_run(swsearch, few_proteins_db):
    """By hand: run 2 is newer but interrupted. A deletion must name its run, because `latest` is ambiguous here."""
    store = ["--store", "hits.sqlite"]
    for _ in range(2):
        assert swsearch("query", QUERIES, few_proteins_db, "--top", "1", *store).code == 0
    with Store("hits.sqlite") as opened:
        opened.runs.interrupt(2)
    said = "swsearch: latest is run 1, the newest that is finished; run 2 is newer and interrupted\n"
    assert swsearch("report", "latest", *store).err.startswith(said)
    assert swsearch("runs", "show", "latest", *store).err == said
    copied = swsearch("runs", "export", "latest", "--out", "copy.sqlite", *store)
    assert (copied.out, copied.err) == ("run 1 of hits.sqlite is run 1 of copy.sqlite\n", said)
    refused = swsearch("runs", "delete", "latest", *store)
    assert (
        "the newest run of hits.sqlite is 2 (interrupted), its newest finished one 1; give the number" in refused.error
    )
    assert swsearch("runs", "delete", "2", *store).code == 0
    assert swsearch("runs", "delete", "latest", *store).out == "run 1 deleted\n"


def test_several_runs_are_deleted_or_none(swsearch, few_proteins_db):
    """One that is named twice is deleted once; an unknown number keeps those before it."""
    store = ["--store", "hits.sqlite"]
    for _ in range(4):
        assert swsearch("query", QUERIES, few_proteins_db, "--top", "1", *store).code == 0
    assert "no run '9'" in swsearch("runs", "delete", "1", "9", *store).error
    with Store("hits.sqlite") as opened:
        opened.runs.resume(2)
        refused = swsearch("runs", "delete", "1", "2", *store)
        assert "run 2 of hits.sqlite is not deleted" in refused.error
        assert [run.id for run in opened.runs.all()] == [1, 2, 3, 4]
        opened.runs.interrupt(2)
    assert swsearch("runs", "delete", "4", "1", "latest", *store).out == "run 4 deleted\nrun 1 deleted\n"
    with Store("hits.sqlite", only_read=True) as opened:
        assert [run.id for run in opened.runs.all()] == [2, 3]


@pytest.mark.parametrize(("n_queries", "state"), [(1, "finished"), (7, "interrupted")])
def test_a_reader_who_goes_away_takes_no_stored_query_along(
    spawn_paused, tmp_path, user_store, few_proteins_db, n_queries, state
):
    """The reader closes the pipe after the first query is stored. A run with all its queries stored is finished."""
    records = QUERIES.read_text().split(">")[1 : n_queries + 1]
    (tmp_path / "q.fasta").write_text("".join(f">{record}" for record in records))
    wide = ["--format", "blast6", "--fields", "std cigar stitle", "--top", "500", "--evalue", "1000"]  # fills a buffer
    process = spawn_paused('Results, "add", 1', "query", "q.fasta", few_proteins_db, *wide)
    process.stdout.close()
    process.stdin.write("\n")
    process.stdin.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    with Store(user_store) as store:
        run = store.runs.get(1)
        assert run.state == state
        assert run.n_queries + run.n_missing == n_queries
        message = f"run 1 in {user_store} keeps {run.n_queries} of 7 queries and is marked interrupted"
        assert (message in errors) == (state == "interrupted")


def test_query_files_that_change_meanwhile_are_noticed(swsearch, spawn_paused, tmp_path, few_proteins_db, many_queries):
    """The second file grows between the count and the reading, while the command is paused."""
    process = spawn_paused('Run, "_asked", 1', "batch", *many_queries, few_proteins_db, "--store", "b.sqlite")
    with (tmp_path / "two.fasta").open("a") as file:
        file.write(">more\nMKVLWYEEKLLKFDDPPQQR\n")
    _, errors = process.communicate("\n")
    assert process.returncode == 1
    assert "the query files changed while they were read" in errors
    with Store(tmp_path / "b.sqlite") as store:
        assert store.runs.get(1).state == "interrupted"


def test_a_store_that_is_deleted_meanwhile_is_noticed(spawn_paused, tmp_path, few_proteins_db, many_queries):
    """SQLite would continue to write to the deleted file; the batch must not end as if it had succeeded."""
    process = spawn_paused('Results, "add", 3', "batch", *many_queries, few_proteins_db, "--store", "b.sqlite")
    (tmp_path / "b.sqlite").unlink()
    out, errors = process.communicate("\n")
    assert (process.returncode, out) == (1, "")
    assert errors.count("error:") == 1
    assert "b.sqlite: it was deleted or replaced while it was in use" in errors
