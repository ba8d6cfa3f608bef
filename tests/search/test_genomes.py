"""Alignments of long subjects: all significant ones are listed without `max_hsps`, in the order of their E-values.

The expected values come from searches with a large `max_hsps`, which list all alignments, from the reference engine, or
are written by hand. Two chromosomes and a contig have copies of a gene, on both strands.
"""

import io
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import swsearch
from swsearch.errors import InputError
from swsearch.hits.limits import LONG_SUBJECT_BASES, SIGNIFICANT_EVALUE, by_evalue
from swsearch.report.formats import new_report
from swsearch.report.narrowing import Narrowing
from swsearch.search.slices import merge_results
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.store.store import Store
from tests.support import indexed, write_fasta
from tests.translated_data import gene, mutated

EVERY = 10_000
ALL_OPTIONS = ({}, {"translate": "subject"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(12)
    folder = tmp_path_factory.mktemp("genomes")

    def random(letters, length):
        return "".join(rng.choice(list(letters), size=length))

    protein = random(PROTEIN.letters[:20], 60)
    bases = gene(rng, protein)

    def copy(share, turned=False):
        one = gene(rng, mutated(rng, protein, share)) if share else bases
        return DNA.decode(reverse_complement(DNA.encode(one))) if turned else one

    def chromosome(length, *copies):
        return random("ACGT", length) + "".join(one + random("ACGT", length) for one in copies)

    records = [
        ("chr1", chromosome(2600, copy(0.3), copy(0.0), copy(0.4, turned=True), copy(0.1))),
        ("contig", chromosome(500, copy(0.0), copy(0.05), copy(0.0, turned=True))),
        ("chr2", chromosome(3500, copy(0.2, turned=True), copy(0.0, turned=True))),
    ]
    assert [len(letters) >= LONG_SUBJECT_BASES for _, letters in records] == [True, False, True]
    indexed(folder / "genome.db", records, DNA)
    for number, record in enumerate(records):
        indexed(folder / f"{number}.db", [record], DNA)
    queries = {None: swsearch.sequence(bases, "dna", header="gene"), "subject": swsearch.sequence(protein, "protein")}
    return folder, queries


def search(database, queries, engine="cpu", threads=2, **changes):
    options = swsearch.SearchOptions(**changes)
    with swsearch.open_searcher(database, options, engine=engine, threads=threads) as searcher:
        (result,) = searcher.search([queries[options.translate]])
        return result, searcher


def hits_of(*arguments, **changes):
    return search(*arguments, **changes)[0].hits


@pytest.mark.parametrize("options", ALL_OPTIONS)
@pytest.mark.parametrize("evalue", [1e-6, 1.0, 10.0, 1000.0])
def test_long_subjects_have_all_significant_alignments(folder, options, evalue):
    """Source: the list of every alignment, of which long subjects keep those with E <= 10, and others the first."""
    path, queries = folder
    every = hits_of(path / "genome.db", queries, max_hsps=EVERY, evalue=evalue, **options)
    expected = [
        hit
        for hit in every
        if hit.number == 1
        or (hit.evalue <= SIGNIFICANT_EVALUE and (options or hit.subject_length >= LONG_SUBJECT_BASES))
    ]
    found = hits_of(path / "genome.db", queries, evalue=evalue, **options)
    assert list(found) == expected
    assert sum(hit.subject_id == "contig" for hit in found) == 1 if not options else 3
    assert sum(hit.subject_id == "chr1" for hit in found) >= 3


@pytest.mark.parametrize("options", ALL_OPTIONS)
def test_engines_threads_and_the_length_of_the_list_change_nothing(folder, options):
    """Source: the reference engine on one thread; a shorter list has the first subjects."""
    path, queries = folder
    found = hits_of(path / "genome.db", queries, **options)
    assert hits_of(path / "genome.db", queries, engine="reference", threads=1, **options) == found
    first = hits_of(path / "genome.db", queries, top=1, **options)
    assert first == tuple(hit for hit in found if hit.rank == 1)
    unlimited = hits_of(path / "genome.db", queries, evalue=float("inf"), **options)
    assert unlimited == found


@pytest.mark.parametrize("options", ALL_OPTIONS)
def test_slices_and_several_databases_give_the_same_list(folder, options):
    """Source: the search of the whole database."""
    path, queries = folder
    whole, searcher = search(path / "genome.db", queries, **options)
    joined = hits_of([path / f"{number}.db" for number in range(3)], queries, **options)
    assert joined == whole.hits
    size = searcher.database.n_residues
    parts = []
    for number in range(3):
        part, _ = search(path / f"{number}.db", queries, dbsize=size, **options)
        hits = tuple(replace(hit, subject_index=number) for hit in part.hits)
        parts.append(replace(part, hits=hits))
    assert merge_results(parts, searcher.limits).hits == whole.hits


@pytest.mark.parametrize("options", ALL_OPTIONS)
def test_lists_are_in_the_order_of_alignments(folder, tmp_path, options):
    """Expected: blast6 and the table by E-value over both chromosomes; BLAST's XML by subject."""
    path, queries = folder
    query = queries[options.get("translate")]
    results = swsearch.search_database([query], path / "genome.db", swsearch.SearchOptions(**options))
    written = {form: tmp_path / form for form in ("blast6", "table", "xml")}
    for form, out in written.items():
        swsearch.write_report(results, out, form)
    lines = [line.split("\t") for line in written["blast6"].read_text().splitlines()]
    evalues = [float(line[10]) for line in lines]
    assert evalues == sorted(evalues)
    subjects = [line[1] for line in lines]
    assert subjects != sorted(subjects, key=subjects.index)
    table = written["table"].read_text()
    assert f", with {len(lines)} alignments" in table
    numbered = [line.split()[0] for line in table.split("E-value ident")[1].splitlines()[1:]]
    assert numbered == [str(number) for number in range(1, len(lines) + 1)]
    assert written["xml"].read_text().count("<Hit>") == 3


@pytest.mark.parametrize("options", ALL_OPTIONS)
def test_a_stored_run_keeps_its_alignments_and_is_narrowed(folder, tmp_path, options):
    """Source: searches with the narrower limits; what the run does not have is refused."""
    path, queries = folder
    query = queries[options.get("translate")]

    def found(**changes):
        results = swsearch.search_database([query], path / "genome.db", swsearch.SearchOptions(**options, **changes))
        return results.run, list(results)

    with Store(tmp_path / "s.sqlite", create=True) as store:
        run, results = found()
        number = store.runs.start(run)
        for result in results:
            store.results.add(number, result)
        stored, run = list(store.results.queries(number)), store.runs.get(number).info
    assert stored == results
    for narrower in ({"evalue": 1e-8}, {"max_hsps": 1}, {"top": 2}, {"top": 1, "evalue": 1e-3}):
        narrowed = list(Narrowing(**narrower).results(run, stored))
        expected_run, expected = found(**narrower)
        assert [one.hits for one in narrowed] == [one.hits for one in expected]
        assert Narrowing(**narrower).of_run(run).listed(narrowed[0]) == expected_run.listed(expected[0])
    several = Narrowing(max_hsps=2)
    if options:
        assert [one.hits for one in several.results(several.of_run(run), stored)] == [
            one.hits for one in found(max_hsps=2)[1]
        ]
    else:
        with pytest.raises(InputError, match="the best alignment of a subject and, of long ones, all"):
            several.of_run(run)


def test_the_order_of_alignments_is_that_of_evalue_score_subject(folder):
    """By hand: sorted by these values."""
    path, queries = folder
    hits = hits_of(path / "genome.db", queries)
    keys = [(hit.evalue, -hit.score, hit.subject_index, hit.hsp) for hit in by_evalue(hits)]
    assert keys == sorted(keys)


@pytest.mark.peer("tblastn")
def test_a_protein_has_the_places_that_tblastn_finds(folder, tmp_path):
    """Source: tblastn without masking, composition correction and sum statistics, whose heuristic misses two of the
    nine copies.
    """
    path, queries = folder
    write_fasta(tmp_path / "q.fasta", [("q", queries["subject"].letters)])
    subprocess.run(
        ["makeblastdb", "-in", path / "genome.fasta", "-dbtype", "nucl", "-out", tmp_path / "b"],
        check=True, capture_output=True,
    )  # fmt: skip
    columns = "sseqid sstart send score"
    theirs = subprocess.run(
        ["tblastn", "-query", tmp_path / "q.fasta", "-db", tmp_path / "b", "-outfmt", f"6 {columns}", "-evalue", "1e-3",
         "-seg", "no", "-comp_based_stats", "0", "-sum_stats", "false"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    expected = {tuple(line.split("\t")) for line in theirs.splitlines()}
    hits = hits_of(path / "genome.db", queries, translate="subject", evalue=1e-3, composition="none")
    found = {(hit.subject_id, str(hit.sstart), str(hit.send), str(hit.score)) for hit in hits}
    assert found >= expected
    assert len(found) == 9
    assert len(expected) >= 7


def test_a_report_of_nothing_has_no_order(folder):
    """By hand: a query without hits."""
    path, queries = folder
    stream = io.StringIO()
    results = swsearch.search_database([queries[None]], path / "genome.db", swsearch.SearchOptions(evalue=1e-300))
    for form in ("table", "blast6", "gff3"):
        report = new_report(form)
        report.write_all(results.context_of(report), list(results), stream)
    assert "none of 3 subjects" in stream.getvalue()
