"""``swsearch db fetch``, compared with ``samtools faidx`` and ``blastdbcmd`` on the same FASTA.

Other expected values are written by hand, or cut from the files in data/.
"""

import io
import random
import subprocess

import pytest
from Bio import SeqIO

from tests.cli.conftest import DATA
from tests.support import protein_records

needs_samtools = pytest.mark.peer("samtools")
needs_blast = pytest.mark.peer("blastdbcmd")


def output(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def records(text):
    """Return identifier and letters of each record."""
    return [(record.id, str(record.seq)) for record in SeqIO.parse(io.StringIO(text), "fasta")]


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    """Pieces of phage lambda, with soft-masked and ambiguous letters, as FASTA and as a database."""
    from swsearch.cli.app import main

    folder = tmp_path_factory.mktemp("genome")
    letters = "".join((DATA / "lambda_phage.fasta").read_text().split("\n")[1:])
    source = random.Random(20)
    with (folder / "pieces.fasta").open("w") as file:
        for number in range(40):
            start, length = source.randrange(40_000), source.randrange(1, 700)
            piece = letters[start : start + length].lower() + "RYKMSWBDHVNryk"
            lines = [piece[at : at + 50] for at in range(0, len(piece), 50)]
            file.write(f">piece{number} from {start}\n" + "\n".join(lines) + "\n")
    assert main(["index", str(folder / "pieces.fasta"), "-o", str(folder / "pieces.db"), "--quiet"]) == 0
    return folder


@needs_samtools
def test_parts_and_strands_are_those_of_samtools_faidx(swsearch, genome):
    """Names, letters and lines of 60 are equal; only the description is added."""
    source = random.Random(3)
    lengths = {name: len(letters) for name, letters in records((genome / "pieces.fasta").read_text())}
    for strand, option in (("plus", []), ("minus", ["-i"])):
        regions = []
        for name, length in lengths.items():
            first = source.randrange(1, length + 1)
            regions.append((name, first, source.randrange(first, length + 1)))
        (genome / "ids.txt").write_text("".join(f"{name}\t{first}-{last}\n" for name, first, last in regions))
        asked = [f"{name}:{first}-{last}" for name, first, last in regions]
        expected = output("samtools", "faidx", *option, genome / "pieces.fasta", *asked)
        found = swsearch("db", "fetch", genome / "pieces.db", "--ids", genome / "ids.txt", "--strand", strand)
        assert [line.split()[0] for line in found.printed.splitlines()] == expected.splitlines()
        whole = output("samtools", "faidx", *option, genome / "pieces.fasta", *lengths)
        found = swsearch("db", "fetch", genome / "pieces.db", *lengths, "--strand", strand)
        assert [line.split()[0] for line in found.out.splitlines()] == whole.splitlines()


@needs_blast
def test_the_entries_of_a_batch_are_those_of_blastdbcmd(swsearch, genome, tmp_path):
    """The same list and the same FASTA; BLAST stores no case, and names parts in another form."""
    output("makeblastdb", "-in", genome / "pieces.fasta", "-dbtype", "nucl", "-parse_seqids", "-out", tmp_path / "b")
    entries = ["piece3 5-14 minus", "piece7", "piece3 plus 1-4", "piece30 minus", "piece7 2-3"]
    (tmp_path / "batch.txt").write_text("\n".join(entries) + "\n")
    theirs = records(output("blastdbcmd", "-db", tmp_path / "b", "-entry_batch", tmp_path / "batch.txt"))
    ours = records(swsearch("db", "fetch", genome / "pieces.db", "--ids", "batch.txt").out)
    assert [letters.upper() for _, letters in ours] == [letters for _, letters in theirs]
    assert [name for name, _ in ours] == ["piece3:5-14/rc", "piece7", "piece3:1-4", "piece30/rc", "piece7:2-3"]


@needs_blast
def test_whole_proteins_are_those_of_blastdbcmd(swsearch, protein_db, tmp_path):
    (tmp_path / "p.fasta").write_text("".join(protein_records()))
    output("makeblastdb", "-in", "p.fasta", "-dbtype", "prot", "-parse_seqids", "-out", "b", cwd=tmp_path)
    names = [name for name, _ in records((tmp_path / "p.fasta").read_text())]
    chosen = [name.split("|")[1] for name in random.Random(1).sample(names, 200)]
    (tmp_path / "ids.txt").write_text("\n".join(chosen))
    theirs = records(output("blastdbcmd", "-db", "b", "-entry_batch", "ids.txt", cwd=tmp_path))
    ours = records(swsearch("db", "fetch", protein_db, "--ids", "ids.txt").out)
    assert [name.split("|")[1] for name, _ in ours] == chosen
    assert [letters for _, letters in ours] == [letters for _, letters in theirs]


def test_slices_change_nothing(swsearch, tmp_path):
    """Slices hold the sequences in another order; two have one name, and are fetched in the order of the FASTA."""
    texts = [f">s{n % 19} number {n}\nMKV{'LW' * n}\n" for n in range(20)]
    (tmp_path / "few.fasta").write_text("".join(texts))
    assert swsearch("index", "few.fasta", "-o", "few.db", "--slices", "3", "--alphabet", "protein").code == 0
    expected = [*texts[5:8], texts[0], texts[19]]
    assert swsearch("db", "fetch", "few.db", "s5", "s6", "s7", "s0").out == "".join(expected)


def test_missing_entries_are_named_and_the_others_written(swsearch, few_proteins_db, tmp_path):
    whole = swsearch("db", "export", few_proteins_db).out
    name = whole.split()[0][1:]
    found = swsearch("db", "fetch", few_proteins_db, "no1", name, "no2", "--out", "some.fasta")
    assert "has no sequence 'no1', nor 1 more of the 3 entries; 1 sequence written" in found.refusal
    assert (tmp_path / "some.fasta").read_text() == whole[: whole.index("\n>") + 1]
    found = swsearch("db", "fetch", few_proteins_db, "no1", "--out", "none.fasta")
    assert found.error.endswith("has no sequence 'no1'; nothing was written")
    found = swsearch("db", "fetch", few_proteins_db, name, "--range", "99999-", "--out", "none.fasta")
    assert "has no position 99,999 in" in found.error
    assert not (tmp_path / "none.fasta").exists()


def test_a_range_ends_with_its_subject(swsearch, tmp_path):
    """By hand; the name says which residues there are."""
    (tmp_path / "one.fasta").write_text(">P1 a kinase\nMKVLWYR\n")
    assert swsearch("index", "one.fasta", "-o", "one.db", "--alphabet", "protein").code == 0
    for part in ("5-", "5-7", "5-100"):
        assert swsearch("db", "fetch", "one.db", "P1", "--range", part).out == ">P1:5-7 a kinase\nWYR\n"
    assert swsearch("db", "fetch", "one.db", "P1", "--line-width", "0").out == ">P1 a kinase\nMKVLWYR\n"


def test_removed_subjects_are_not_fetched_and_added_ones_are(swsearch, tmp_path):
    (tmp_path / "abc.fasta").write_text(">a\nMKVLW\n>b\nMKV\n>c\nWWWW\n")
    (tmp_path / "d.fasta").write_text(">d.2\nKKKK\n")
    assert swsearch("index", "abc.fasta", "-o", "x.db", "--alphabet", "protein").code == 0
    assert swsearch("db", "add", "x.db", "d.fasta").code == 0
    assert swsearch("db", "remove", "x.db", "b").code == 0
    found = swsearch("db", "fetch", "x.db", "d.2", "b", "c")
    assert (found.code, found.out) == (1, ">d.2\nKKKK\n>c\nWWWW\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["P1", "--range", "0-5"], "range '0-5': give two positions from 1 on"),
        (["P1", "--range", "9-5"], "range '9-5'"),
        (["P1", "--strand", "minus"], "a protein has no minus strand"),
        (["P1", "--strand", "both"], "strand 'both': choose plus or minus"),
        (["--ids", "empty.txt"], "--ids empty.txt: the file names no identifier"),
        (["--ids", "absent.txt"], "--ids absent.txt: No such file"),
    ],
)
def test_what_cannot_be_fetched_is_said_in_one_line(swsearch, few_proteins_db, tmp_path, arguments, message):
    (tmp_path / "empty.txt").write_text("# nothing\n")
    outcome = swsearch("db", "fetch", few_proteins_db, *arguments)
    assert message in outcome.refusal


def test_identifiers_come_from_a_pipe(spawn, few_proteins_db, swsearch):
    whole = swsearch("db", "export", few_proteins_db).out
    names = "".join(line.split()[0][1:] + "\n" for line in whole.splitlines() if line.startswith(">"))
    process = spawn("db", "fetch", few_proteins_db, "--ids", "-", stdin=subprocess.PIPE)
    out, err = process.communicate(names)
    assert (process.returncode, err) == (0, "")
    assert out == whole
