"""Commands read pipes like files: FIFOs, process substitution, /dev/stdin and -, compressed or not.

The expected output is that of the same command on the file.
"""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import DATA
from tests.processes import in_shell
from tests.tiers import mostly_thorough

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"
FASTA = f">one first\n{LETTERS}\n>two\n{LETTERS[::-1]}\n"
FASTQ = "@r1\nACGTACGTTGCA\n+\nIIIIIIIIIIII\n@r2\nTTGCACGTACGT\n+\nIIIIIIIIIIII\n"
STOCKHOLM = f"# STOCKHOLM 1.0\n#=GF ID Fam\na {LETTERS}\nb {LETTERS}\n//\n"
ALIGNED = f">a\n{LETTERS}\n>b\n{LETTERS}\n"
COMPRESSORS = {"plain": "cat", "gzip": "gzip -c", "bzip2": "bzip2 -c", "xz": "xz -c"}


def pssm():
    """A PSSM in psiblast's format, with a score of 5 for each letter of the query."""
    columns = "ARNDCQEGHILKMFPSTWYV"
    lines = ["", "Last position-specific scoring matrix computed", "   " + "  ".join(columns)]
    lines += [
        f"{index} {letter} " + " ".join("5" if letter == column else "-3" for column in columns)
        for index, letter in enumerate(LETTERS, 1)
    ]
    return "\n".join(lines) + "\n"


INPUTS = {"q.fa": FASTA, "q.fq": FASTQ, "q.sto": STOCKHOLM, "q.pssm": pssm(), "q.afa": ALIGNED}

# Each command, with {} for the input, and the kind of the input.
READERS = {
    "query FASTA": ("q.fa", "query {} p.db --store none --format tsv"),
    "query FASTQ": ("q.fq", "query {} d.db --store none --format tsv --evalue inf"),
    "query PSSM": ("q.pssm", "query {} p.db --store none --format tsv --fields score,cigar"),
    "query --in-pssm": ("q.pssm", "query p.db --store none --format tsv --fields score,cigar --in-pssm {}"),
    "query Stockholm": ("q.sto", "query {} p.db --store none --format tsv --fields qseqid,score,cigar"),
    "query aligned FASTA": ("q.afa", "query {} p.db --store none --query-format aligned --format tsv --fields score"),
    "batch FASTA": ("q.fa", "batch {} p.db --store b.sqlite"),
    "batch PSSM": ("q.pssm", "batch {} p.db --store b.sqlite"),
    "batch Stockholm": ("q.sto", "batch {} p.db --store b.sqlite"),
    "index": ("q.fa", "index {} -o new.db --quiet"),
    "index FASTQ": ("q.fq", "index {} -o new.db --quiet"),
    "db add": ("q.fa", "db add p.db {}"),
    "align": ("q.fa", "align {} q.fa --format tsv"),
    "align --pairs": ("q.fq", "align {} --pairs --format tsv"),
    "align --mode edit": ("q.fa", "align {} q.fa --mode edit --format tsv"),
    "db remove": ("list.txt", "db remove p.db --from-file {}"),
}
WAYS = {
    "process substitution": "swsearch {before} <({packer} {file}) {after}",
    "-": "{packer} {file} | swsearch {before} - {after}",
    "/dev/stdin": "{packer} {file} | swsearch {before} /dev/stdin {after}",
    "/dev/stdin, a file": "{packer} {file} > packed; swsearch {before} /dev/stdin {after} < packed",
    "FIFO": "mkfifo pipe; {packer} {file} > pipe & swsearch {before} pipe {after}",
}


@pytest.fixture
def shell(tmp_path, swsearch):
    for name, text in INPUTS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "list.txt").write_text("one\n")
    assert swsearch("index", "q.fa", "-o", "p.db").code == 0
    assert swsearch("index", "q.fq", "-o", "d.db").code == 0
    return lambda command: in_shell(command, tmp_path)


@pytest.mark.parametrize("reader", mostly_thorough(READERS, "query FASTA"))
def test_pipes_are_read_like_files(shell, swsearch, tmp_path, reader):
    """Source: the output of the same command for the file. Each kind of pipe uses the compressions in turn."""
    file, command = READERS[reader]
    before, after = command.split(" {} ") if " {} " in command else (command.removesuffix(" {}"), "")
    expected = None
    packers = list(COMPRESSORS.values()) if reader != "db remove" else ["cat"]
    for number, way in enumerate(["file", *WAYS]):
        for name in ("new.db", "p.db"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        for path in [*tmp_path.glob("b.sqlite*"), *tmp_path.glob("pipe")]:
            path.unlink()
        assert swsearch("index", "q.fa", "-o", "p.db").code == 0
        packer = packers[number % len(packers)]
        script = f"swsearch {before} {file} {after}"
        if way != "file":
            script = WAYS[way].format(before=before, after=after, packer=packer, file=file)
        outcome = shell(script)
        assert outcome.returncode == 0, (way, outcome.stderr)
        found = outcome.stdout
        if "b.sqlite" in command:
            found += swsearch(
                "report", "latest", "--store", "b.sqlite", "--format", "tsv", "--fields", "score cigar"
            ).out
        if "new.db" in command or "p.db" in command:
            found += swsearch("db", "export", "new.db" if "new.db" in command else "p.db").out
        assert found.strip()
        if expected is None:
            expected = found
        assert found == expected, way


@pytest.mark.thorough
def test_a_bad_record_in_a_pipe_is_named_with_its_place(shell):
    for command in ("query {} p.db --store none", "index {} -o new.db", "db add p.db {}", "align {} q.fa"):
        outcome = shell("swsearch " + command.format(r"<(printf '>a\nMKV\n>b\nMK7V\n')"))
        assert outcome.returncode == 1
        assert "record 2 (b), line 4, column 3: '7'" in outcome.stderr
        assert "/dev/fd/" in outcome.stderr


@pytest.mark.thorough
def test_a_pipe_is_named_once(shell, tmp_path):
    """A second reader of the same pipe would wait forever for a writer."""
    os.mkfifo(tmp_path / "pipe")
    for command in ("align pipe pipe", "index pipe pipe -o new.db", "batch pipe pipe p.db --store b.sqlite"):
        outcome = shell(f"cat q.fa > pipe & writer=$!; swsearch {command}; code=$?; kill $writer; exit $code")
        assert outcome.returncode == 1
        assert "error: pipe is named twice and can be read only once" in outcome.stderr
    outcome = shell("cat q.fa | swsearch index - - -o new.db")
    assert "<stdin> is named twice" in outcome.stderr


@pytest.mark.parametrize(
    "words",
    [
        "query - p.db --contexts - --sensitive",
        "query - p.db --exclude /dev/stdin",
        "query /dev/stdin p.db --include -",
        "query q.fa - --taxid 9606 --taxid-map /dev/stdin",
        "batch /dev/fd/0 p.db --in-pssm -",
        "query - -",
        "msa - -",
        "domains - /dev/stdin",
        "rbh - /dev/stdin",
    ],
)
def test_stdin_is_read_once_whatever_names_it(shell, words):
    """Source: the line of `swsearch query - -`. A second reader would find nothing in it, or half of it."""
    outcome = shell(f"cat q.fa | swsearch {words}")
    line = "swsearch: error: <stdin> is named twice and can be read only once; give a file for one of them\n"
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (1, "", line)


def test_a_file_as_stdin_may_be_opened_a_second_time(shell):
    """Only ``-`` moves its place."""
    outcome = shell("swsearch query - /dev/stdin --store none --format tsv < q.fa")
    assert outcome.returncode == 0
    assert outcome.stdout == shell("swsearch query q.fa q.fa --store none --format tsv").stdout != ""


def test_a_catalogue_does_not_keep_the_number_of_a_pipe(shell):
    assert shell("swsearch index <(cat q.fa) -o new.db && swsearch db info new.db | grep sources").stdout.split() == [
        "sources",
        "<pipe>",
    ]


def test_a_copy_of_a_pipe_goes_when_it_is_not_needed(tmp_path):
    """The copy's descriptor is closed with the object, so that a long-running program does not exhaust descriptors."""
    from swsearch.sequences.fasta import read_sequences

    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        writer = threading.Thread(target=Path(tmp_path / "pipe").write_text, args=(FASTA,))
        writer.start()
        assert [record.identifier for record in read_sequences(tmp_path / "pipe")] == ["one", "two"]
        writer.join()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "command",
    mostly_thorough(
        ["query {} p.db", "index {} -o new.db", "align {} q.fa", "batch {} p.db --store b"], "query {} p.db"
    ),
)
def test_a_copy_that_finds_no_room_is_one_line(shell, tmp_path, command):
    """Source: the system's limit on a file's size."""
    source = f"head -c 200000 {DATA / 'proteins.fasta.gz'}"
    outcome = shell(f"ulimit -f 100; {source} | swsearch {command.format('-')}")
    assert outcome.returncode == 1
    errors = [line for line in outcome.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert "cannot take a copy of a pipe: File too large" in errors[0]
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize(
    "typed",
    [
        LETTERS,
        f"\n{LETTERS}\r\n",
        f"        1 {LETTERS[:10].lower()} {LETTERS[10:20].lower()}\n       21 {LETTERS[20:].lower()}\n",
        f"{LETTERS[:10]} {LETTERS[10:20]}         20\r{LETTERS[20:]}        34\r",
    ],
)
def test_letters_alone_are_one_sequence(spawn, tmp_path, typed):
    """As typed, and as GenBank and UniProt print them; the alignment is that of the letters with themselves."""
    (tmp_path / "one.fa").write_text(f">one\n{LETTERS}\n")
    words = ["query", "-", "one.fa", "--store", "none", "--format", "blast6", "--fields", "qlen nident"]
    assert spawn(*words, stdin=subprocess.PIPE).communicate(typed)[0] == "34\t34\n"


@pytest.mark.parametrize("typed", ["MKV1LLA\n", ">one\nMKV LLA\n", "a list of words, not letters\n"])
def test_other_text_without_a_header_is_an_error(spawn, tmp_path, typed):
    """Digits among letters are not numbers of a line; FASTA is read as it is in files."""
    (tmp_path / "one.fa").write_text(f">one\n{LETTERS}\n")
    process = spawn("query", "-", "one.fa", "--store", "none", stdin=subprocess.PIPE)
    assert "error: <stdin>" in process.communicate(typed)[1]
    assert process.returncode == 1


def test_letters_in_a_file_need_a_header(swsearch, tmp_path):
    (tmp_path / "one.fa").write_text(f">one\n{LETTERS}\n")
    (tmp_path / "letters.fa").write_text(f"{LETTERS}\n")
    assert "line 1, column 1: expected '>' or '@'" in swsearch("query", "letters.fa", "one.fa").error


def test_letters_in_place_of_a_file_are_answered(swsearch, tmp_path):
    (tmp_path / "one.fa").write_text(f">one\n{LETTERS}\n")
    found = swsearch("query", LETTERS, "one.fa").error
    assert f"if it is a sequence, pipe it: echo {LETTERS} | swsearch" in found
    assert "pipe it" not in swsearch("query", "missing.fa", "one.fa").error
