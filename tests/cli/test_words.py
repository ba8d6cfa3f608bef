"""A count of one is printed in the singular in every message: a regular expression looks for plurals after a 1."""

import re

import pytest

LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFW"
NOUNS = (
    "sequences residues bases subjects queries hits records threads shards segments identifiers letters columns scores "
    "bytes"
)
PLURALS = re.compile(
    rf"(?<![\d.,-])1 (protein |dna |chosen |aligned )?({NOUNS.replace(' ', '|')})\b"
    r"|\b1 (of [\d,]+ \w+ )?(have|are|were|occur)\b|\ball 1\b|best 1\b"
)

COMMANDS = [
    "index one.fa -o new.db",
    "index twice.fa -o new.db",
    "query one.fa one.db --threads 1",
    "query one.fa one.db --format pairwise",
    "query one.fa one.db --format html",
    "query one.fa one.db --evalue 1e-200",
    "query one.fa one.db --min-identity 100",
    "query one.fa three.db --top 1",
    "query one.fa three.db --evalue 1e-9",
    "query one.fa one.db --include list.txt",
    "query one.fa three.db --include list.txt --top 1 --min-identity 1",
    "query one.sto one.db",
    "query one.fa one.db --plot scores.png",
    "batch one.fa one.db --store batch.sqlite",
    "allpairs one.db",
    "allpairs three.db --evalue 1e9 --format table",
    "runs show latest --threads 1",
    "runs list",
    "runs merge {user_store} --store merged.sqlite",
    "runs prune --keep 1",
    "runs prune --older-than 0h",
    "report latest",
    "cluster one.db",
    "cluster three.db --evalue 1e9 --min-identity 99",
    "rbh one.db three.db",
    "msa one.fa one.db",
    "db info one.db",
    "db fetch three.db one none",
    "db fetch one.db one --range 1000-",
    "query one.fa one.db --unaligned un.fa",
    "db add one.db one.fa",
    "db remove three.db a",
    "db remove one.db one",
    "align one.fa one.fa",
    "align one.fa --pairs",
    "align --text a a --mode edit",
    "align --text a a --mode lcs --format pairwise",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_one_is_not_told_in_the_plural(swsearch, tmp_path, user_store, command):
    (tmp_path / "one.fa").write_text(f">one\n{LETTERS}\n")
    (tmp_path / "twice.fa").write_text(f">one\n{LETTERS}\n>one\n{LETTERS}\n")
    (tmp_path / "three.fa").write_text(f">a\nM\n>b\n{LETTERS}\n>c\n{LETTERS[::-1]}\n>one\n{LETTERS}\n")
    (tmp_path / "one.sto").write_text(f"# STOCKHOLM 1.0\na {LETTERS}\n//\n")
    (tmp_path / "list.txt").write_text("one\nnone\n")
    assert swsearch("index", "one.fa", "-o", "one.db").code == 0
    assert swsearch("index", "three.fa", "-o", "three.db").code == 0
    assert swsearch("query", "one.fa", "one.db", "--threads", "1", "--out", "/dev/null").code == 0
    command = command.replace("{user_store}", str(user_store))
    outcome = swsearch(*command.removesuffix(" --threads 1").split() if "runs" in command else command.split())
    printed = outcome.out + outcome.err
    assert printed
    assert "Traceback" not in printed
    assert not PLURALS.search(printed), printed
