"""``swsearch msa``: deep alignments of several databases and of complexes.

Expected values: ``swsearch query`` on each database, with the profile of the first as a PSSM in a file; hand.
"""

import re
import shlex
import subprocess

import pytest

import swsearch as package
from swsearch.report.anchored import aligned_letters
from swsearch.run import deep_alignments
from swsearch.search.options import SearchOptions
from tests.cli.conftest import DATA
from tests.support import protein_records

RECORDS = (DATA / "queries.fasta").read_text().split(">")[1:]
ENGB, OBG = f">{RECORDS[0]}", f">{RECORDS[1]}"
ITERATED = SearchOptions(evalue=0.1, top=10_000, iterations=3)


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """Two databases of relatives of both queries, which have 30 subjects in common."""
    folder = tmp_path_factory.mktemp("databases")
    chosen = [record for record in protein_records() if re.search("GTP|OBG|ENGB", record)]
    assert len(chosen) > 150
    for name, part in (("one", chosen[:100]), ("two", chosen[70:])):
        (folder / f"{name}.fasta").write_text("".join(part))
        package.build_database(folder / f"{name}.fasta", folder / f"{name}.db")
    return folder / "one.db", folder / "two.db"


@pytest.fixture
def queries(tmp_path):
    (tmp_path / "obg.fasta").write_text(OBG)
    (tmp_path / "both.fasta").write_text(ENGB + OBG)
    return tmp_path


def rows_of(block: str) -> list[tuple[str, str]]:
    lines = block.splitlines()
    return list(zip(lines[::2], lines[1::2], strict=True))


def names(rows: list[tuple[str, str]]) -> list[str]:
    return [header.split("\t")[0] for header, _ in rows]


def write_pssm(path, letters, scores) -> None:
    """Write scores as `psiblast -out_ascii_pssm` does."""
    lines = ["", "Last position-specific scoring matrix computed", "  " + " ".join("ARNDCQEGHILKMFPSTWYV")]
    lines += [
        f"{i} {letter} {' '.join(map(str, row))}"
        for i, (letter, row) in enumerate(zip(letters, scores, strict=True), 1)
    ]
    path.write_text("\n".join(lines) + "\n")


def test_further_databases_are_searched_with_the_last_profile(swsearch, queries, databases):
    """No row twice: 30 subjects are in both databases, and some have the same letters in the same columns."""
    outcome = swsearch("msa", "obg.fasta", *databases, "--out", "obg.a3m")
    assert outcome.code == 0, outcome.err
    assert swsearch("msa", "obg.fasta", *databases, "--out", "again.a3m", "--threads", "3", "-q").err == ""
    assert (queries / "again.a3m").read_bytes() == (queries / "obg.a3m").read_bytes()
    (first,) = package.search_database("obg.fasta", databases[0], ITERATED)
    assert first.n_rounds > 1
    write_pssm(queries / "obg.pssm", first.letters, first.pssm.scores.tolist())
    (second,) = package.search_database("obg.pssm", databases[1], SearchOptions(evalue=0.1, top=10_000))
    wanted = {aligned_letters(first, hit): hit.subject_id for hit in reversed([*first.hits, *second.hits])}
    rows = rows_of((queries / "obg.a3m").read_text())
    assert rows[0] == (OBG.split(maxsplit=1)[0], "".join(OBG.splitlines()[1:]))
    assert {row: name for name, row in zip(names(rows[1:]), [row for _, row in rows[1:]], strict=True)} == {
        row: f">{name}" for row, name in wanted.items()
    }
    assert len(rows) - 1 == len(wanted) < len(first.hits) + len(second.hits)
    n_first = len({aligned_letters(first, hit) for hit in first.hits})
    assert names(rows[1 : n_first + 1]) == [
        f">{hit.subject_id}" for hit in first.hits if wanted[aligned_letters(first, hit)] == hit.subject_id
    ]
    found = (
        rf"{len(rows)} rows \({first.n_subjects} subjects in one.db, {second.n_subjects} subjects in two.db; \d round"
    )
    assert re.search(
        rf"obg.*{found}.*Neff \d\.\d\d, \d+\.\d\d different residues a column".lower(), outcome.err.lower()
    )


@pytest.mark.parametrize("words", ["obg.fasta {} {} --together", "-query obg.fasta -db '{} {}'"])
def test_databases_together_are_searched_as_one_in_every_round(swsearch, queries, databases, words):
    """Expected value: one database of the sequences of both, with the name that the line about a query has."""
    fasta = "".join(path.with_suffix(".fasta").read_text() for path in databases)
    (queries / "all.fasta").write_text(fasta)
    package.build_database("all.fasta", queries / "one.db two.db")
    expected = swsearch("msa", "obg.fasta", "one.db two.db")
    found = swsearch("msa", *shlex.split(words.format(*databases)))
    assert (found.code, expected.code) == (0, 0), found.err
    assert found.out == expected.out
    assert len(rows_of(found.out)) > 50
    line = next(line for line in found.err.splitlines() if "Neff" in line)
    assert line in expected.err
    assert "subjects in one.db two.db; " in line
    in_turn = package.align_families("obg.fasta", [databases], ITERATED)
    assert [hit.subject_id for result in in_turn for hit in result.hits] == [
        name[1:] for name in names(rows_of(found.out))[1:]
    ]


def test_one_round_of_one_database_is_the_report_of_a_query(swsearch, queries, databases):
    arguments = ("both.fasta", databases[0], "--evalue", "0.1", "--top", "10000", "--quiet")
    found = swsearch("msa", *arguments, "--iterations", "1")
    printed = swsearch("query", *arguments, "--format", "a3m", "--store", "none")
    assert found.err == ""
    for block, other in zip(found.out.split("\0"), printed.out.split("\0"), strict=True):
        kept = dict((row, header) for header, row in reversed(rows_of(other)[1:]))  # noqa: C402
        assert [(kept[row], row) for _, row in rows_of(block)[1:]] == rows_of(block)[1:]
        assert len(rows_of(block)) == len(kept) + 1


@pytest.mark.parametrize("out", ["obg.a3m", "alignments/"])
def test_lists_that_end_at_top_are_told(swsearch, queries, databases, out):
    """Expected value: the subjects that pass in each database, counted by a search that lists all."""
    arguments = ("obg.fasta", *databases, "--iterations", "1", "--evalue", "0.001", "--composition", "none")
    plain = SearchOptions(evalue=0.001, top=10_000, composition="none")
    n_passed = []
    for one in databases:
        (result,) = package.search_database("obg.fasta", one, plain)
        n_passed.append(len(result.hits))
    assert min(n_passed) > 3
    told = f"2 of 2 lists end at --top 3; {sum(n_passed) - 6} further subjects pass, and --top all lists them"
    assert told in swsearch("msa", *arguments, "--top", "3", "--out", out).err
    assert swsearch("msa", *arguments, "--top", "3", "--out", out, "--quiet").err == ""
    assert "--top" not in swsearch("msa", *arguments, "--top", "all", "--out", out).err


def test_a_folder_has_a_file_for_each_query(swsearch, queries, databases):
    """Names that are not file names; two that are equal."""
    (queries / "odd.fasta").write_text(
        f">../a|b x\n{OBG.split(chr(10), 1)[1]}>..\n{ENGB.split(chr(10), 1)[1]}>A_B\nMKWC\n"
    )
    options = ("--iterations", "1", "--quiet", "--msa-max-identity", "60", "--msa-filter-above", "0")
    whole = swsearch("msa", "odd.fasta", databases[0], *options, "--format", "afasta").out
    assert swsearch("msa", "odd.fasta", databases[0], *options, "--format", "afasta", "--out", "new/").code == 0
    files = {path.name: path.read_text() for path in (queries / "new").iterdir()}
    assert set(files) == {"a_b.afasta", "unnamed.afasta", "A_B~2.afasta"}
    assert "\0".join(files[name] for name in ("a_b.afasta", "unnamed.afasta", "A_B~2.afasta")) == whole


def test_an_interrupt_leaves_the_files_that_are_complete(swsearch, queries, databases, monkeypatch):
    """The second alignment is interrupted when its hits are there; of a single file nothing is left."""

    def interrupted(query):
        if query.number == 1:
            raise KeyboardInterrupt
        return query

    monkeypatch.setattr(deep_alignments, "distinct", interrupted)
    arguments = ("msa", "both.fasta", databases[0], "--iterations", "1", "--quiet", "--out")
    assert swsearch(*arguments, "new/").code == 130
    (complete,) = (queries / "new").iterdir()
    assert complete.name == f"{ENGB.split(maxsplit=1)[0][1:].replace('|', '_')}.a3m"
    assert len(rows_of(complete.read_text())) > 10
    assert swsearch(*arguments, "one.a3m").code == 130
    assert {path.name for path in queries.iterdir()} == {"obg.fasta", "both.fasta", "new"}


@pytest.mark.peer("hhfilter")
def test_rows_are_reduced_as_hhfilter_reduces_them(swsearch, queries, databases, tmp_path):
    """HH-suite reads the alignment, the query first, and finds nothing more to remove."""
    conditions = ("--msa-coverage", "50", "--msa-max-identity", "60", "--msa-filter-above", "0", "--msa-diff", "0")
    whole = swsearch("msa", "obg.fasta", *databases, "--quiet").out
    kept = swsearch("msa", "obg.fasta", *databases, "--quiet", *conditions).out
    assert set(rows_of(kept)) < set(rows_of(whole))
    (tmp_path / "in.a3m").write_text(kept)
    subprocess.run(["hhfilter", "-i", "in.a3m", "-o", "out.a3m", "-id", "60", "-cov", "50", "-v", "0"], check=True)
    again = (tmp_path / "out.a3m").read_text()
    assert [row for _, row in rows_of(again)] == [row for _, row in rows_of(kept)]
    assert len(rows_of(kept)) > 5


def test_a_complex_has_pairs_then_the_rows_of_each_chain(swsearch, queries, databases):
    (queries / "three.fasta").write_text(ENGB + OBG + ENGB)
    blocks = [rows_of(block) for block in swsearch("msa", "both.fasta", databases[0], "--quiet").out.split("\0")]
    outcome = swsearch("msa", "three.fasta", databases[0], "--quiet", "--pair", "complete")
    first, *lines = outcome.out.splitlines(keepends=True)
    rows = rows_of("".join(lines))
    n_columns = [len(block[0][1]) for block in blocks]
    assert first == f"#{n_columns[0]},{n_columns[1]}\t2,1\n"
    assert rows[0] == (">101\t102", blocks[0][0][1] + blocks[1][0][1])
    padded = [(header, row + "-" * n_columns[1]) for header, row in blocks[0]]
    padded += [(header, "-" * n_columns[0] + row) for header, row in blocks[1]]
    start = len(rows) - len(padded)
    assert rows[start + 1 :][: len(blocks[0]) - 1] == padded[1 : len(blocks[0])]
    assert [header for header, _ in rows if header in (">101", ">102")] == [">101", ">102"]
    pairs = rows[1:start]
    assert len(pairs) > 3
    for header, row in pairs:
        assert header.count("\t") == 19
        columns = re.sub("[a-z]", "", row)
        assert len(columns) == sum(n_columns)
        assert set(columns[: n_columns[0]]) != {"-"} != set(columns[n_columns[0] :])
    greedy = swsearch("msa", "three.fasta", databases[0], "--quiet", "--pair", "greedy")
    assert greedy.out == outcome.out  # of two chains, at least two are all


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{one}", "give at least one query file"),
        ("obg.fasta missing.db", "missing.db"),
        ("obg.fasta {one} {dna}", "is dna"),
        ("obg.fasta {one} --pair yes", "choose none, complete, greedy"),
        ("both.fasta {one} --pair complete --format sto", "a complex is written as a3m"),
        ("both.fasta {one} --pair complete --out new/", "a complex has one alignment"),
        ("obg.fasta {one} --inclusion-evalue 1", "above --evalue"),
        ("obg.fasta {one} --msa-diff -1", "--msa-diff -1: choose"),
        ("{sto} {one}", "in format stockholm; alignments are made for sequences"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_line(swsearch, queries, databases, lambda_db, line, message):
    known = {"one": databases[0], "dna": lambda_db, "sto": DATA / "obg.sto"}
    outcome = swsearch("msa", *line.format(**known).split())
    assert outcome.code in (1, 2)
    assert message in outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert {path.name for path in queries.iterdir()} <= {"obg.fasta", "both.fasta"}


def test_together_needs_several_databases(swsearch, queries, databases):
    refused = swsearch("msa", "obg.fasta", databases[0], "--together")
    assert f"--together: {databases[0]} is the only database; name further ones, or leave it out" in refused.refusal


def test_families_of_no_database_are_refused_and_one_path_is_one_database(queries, databases):
    with pytest.raises(ValueError, match="no database is named; give the path of at least one"):
        package.align_families(queries / "obg.fasta", [])
    alone, listed = (
        list(package.align_families(queries / "obg.fasta", given)) for given in (databases[0], [databases[0]])
    )
    assert [hit.subject_id for hit in alone[0].hits] == [hit.subject_id for hit in listed[0].hits] != []
