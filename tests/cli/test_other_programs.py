"""The words of BLAST+, DIAMOND, MMseqs2 and SSEARCH: understood, or answered with the line of swsearch.

What an option of another program means is known from its manual; the expected lines are written by hand.
"""

import re
import shlex
import subprocess

import pytest

from swsearch.cli.app import commands
from swsearch.cli.other_programs import LINES, PROGRAM_WORDS
from swsearch.cli.spellings import BLAST, DIAMOND, MMSEQS, OTHERS, SPELLINGS, SSEARCH
from swsearch.cli.wording import CommandOptions, Worded, reworded
from tests.cli.conftest import DATA

QUERIES = DATA / "queries.fasta"

UNDERSTOOD = {
    BLAST: {
        "-query q.fa -db d": "q.fa d",
        "-query q.fa -db 'd e'": "q.fa --db d --db e",
        """-db '"my d" e'""": "--db 'my d' --db e",
        "-in a.fa": "a.fa",
        "-subject s.fa -query q.fa": "q.fa s.fa",
        "-num_threads 4": "--threads 4",
        "-logfile x.log": "--log x.log",
        "-max_target_seqs 5": "--top 5",
        "-num_alignments 5": "--top 5",
        "-outfmt 7": "--format blast7",
        "-outfmt '6 std qlen'": "--format blast6 --fields 'std qlen'",
        "-outfmt 5": "--format xml",
        "-outfmt 0": "--format pairwise",
        "-outfmt '10 qseqid,sseqid'": "--format csv --fields 'qseqid sseqid'",
        "-outfmt 15": "--format json2",
        "-outfmt 16": "--format xml2",
        "-outfmt 17": "--format sam",
        "-html": "--format html",
        "-gapopen 11 -gapextend 1": "--gap-open 11 --gap-extend 1",
        "-reward 2 -penalty -3": "--match 2 --mismatch -3",
        "-perc_identity 90": "--min-identity 90",
        "-qcov_hsp_perc 80": "--min-query-coverage 80",
        "-seqidlist ids.txt -negative_seqidlist not.txt": "--include ids.txt --exclude not.txt",
        "-taxids 9606,10090": "--taxid 9606,10090",
        "-query_gencode 11": "--genetic-code 11",
        "-db_gencode 11": "--genetic-code 11",
        "-comp_based_stats 0": "--composition none",
        "-comp_based_stats 2": "--composition adjust",
        "-seg yes": "--mask seg",
        "-seg no": "--mask none",
        "-dust yes": "--mask dust",
        "-lcase_masking": "--mask lower",
        "-soft_masking true": "--mask-mode soft",
        "-soft_masking false": "--mask-mode hard",
        "-num_iterations 3 -inclusion_ethresh 0.002": "--iterations 3 --inclusion-evalue 0.002",
        "-out_pssm p.asn": "--save-pssm p.asn",
        "-in_pssm p.asn": "--in-pssm p.asn",
        "-dbtype nucl": "--alphabet dna",
        "-dbtype prot": "--alphabet protein",
        "-evalue 1e-5 -matrix BLOSUM45 -dbsize 1000 -max_hsps 2 -strand plus -out o.txt": (
            "--evalue 1e-5 --matrix BLOSUM45 --dbsize 1000 --max-hsps 2 --strand plus --out o.txt"
        ),
    },
    DIAMOND: {
        "--query q.fa --db d": "q.fa d",
        "-q q.fa -d d": "q.fa d",
        "--in a.fa": "a.fa",
        "--max-target-seqs 5": "--top 5",
        "-k 5 -e 1e-5 -p 4 -o o.tsv": "-k 5 -e 1e-5 -p 4 -o o.tsv",
        "--outfmt 6 qseqid sseqid full_qseq --id 50": (
            "--format blast6 --fields 'qseqid sseqid full_qseq' --min-identity 50"
        ),
        "--outfmt '6 qseqid sseqid'": "--format blast6 --fields 'qseqid sseqid'",
        "-f 101": "--format sam",
        "-f 102": "--format lca",
        "--outfmt 102 --include-lineage": "--format lca --fields 'qseqid lca evalue lcalineage'",
        "--query-cover 80 --subject-cover 70": "--min-query-coverage 80 --min-subject-coverage 70",
        "--min-score 50": "--min-bits 50",
        "--gapopen 11 --gapextend 1": "--gap-open 11 --gap-extend 1",
        "--query-gencode 4": "--genetic-code 4",
        "--comp-based-stats 1": "--composition adjust",
        "--masking 0": "--mask none",
        "--masking tantan": "--mask tantan",
        "--al hit.fa --un not.fa": "--aligned-queries hit.fa --unaligned not.fa",
        "--taxonlist 9606": "--taxid 9606",
        "--taxonmap map.gz --taxonnodes nodes.dmp": "--taxid-map map.gz --taxonomy nodes.dmp",
    },
    MMSEQS: {
        "--max-seqs 300": "--top 300",
        "--min-seq-id 0.35": "--min-identity 35",
        "-c 0.8": "--min-query-coverage 80 --min-subject-coverage 80",
        "--min-aln-len 30": "--min-alignment-length 30",
        "--num-iterations 3 --e-profile 0.1": "--iterations 3 --inclusion-evalue 0.1",
        "--format-output query,target,bits,tstart": "--format blast6 --fields 'qseqid sseqid bitscore sstart'",
        "--format-mode 4": "--format tsv",
        "--translation-table 11": "--genetic-code 11",
        "--alt-ali 2": "--max-hsps 3",
        "--comp-bias-corr 1": "--composition bias",
        "--comp-bias-corr 0": "--composition none",
        "--mask 1": "--mask tantan",
        "--sub-mat BLOSUM80": "--matrix BLOSUM80",
        "--gpu 1": "--engine cuda",
        "--taxon-list 9606": "--taxid 9606",
        "--strand 2": "--strand both",
        "-e 0.001 --threads 8": "-e 0.001 --threads 8",
    },
    SSEARCH: {
        "-E 0.01 -T 4 -O o.txt": "--evalue 0.01 --threads 4 --out o.txt",
        "-b 10": "--top 10",
        "-d 10": "--top 10",
        "-m 8": "--format blast6",
        "-m 8C": "--format blast7",
        "-m 0": "--format pairwise",
        "-s BL62": "--matrix BLOSUM62",
        "-s my.mat": "--matrix my.mat",
        "-f -11 -g -1": "--gap-open 11 --gap-extend 1",
        "-r +5/-4": "--match 5 --mismatch -4",
        "-S": "--mask lower",
        "-3": "--strand plus",
        "-i": "--strand minus",
        "-n": "--alphabet dna",
        "-p": "--alphabet protein",
        "-q": "-q",
    },
    OTHERS: {
        "--output o.txt": "--out o.txt",
        "--cpu 4": "--threads 4",
        "-j 4": "--threads 4",
    },
}

REFUSED = {
    BLAST: {
        "-task blastp-short": "exhaustive", "-word_size 3": "exhaustive", "-threshold 11": "exhaustive",
        "-window_size 40": "exhaustive", "-xdrop_ungap 7": "exhaustive", "-xdrop_gap 15": "exhaustive",
        "-xdrop_gap_final 25": "exhaustive", "-ungapped": "exhaustive", "-no_greedy": "exhaustive",
        "-use_sw_tback": "exhaustive", "-culling_limit 2": "no hit is hidden", "-subject_loc 1-10": "db fetch",
        "-subject_besthit": "no hit is hidden",
        "-best_hit_overhang 0.1": "no hit is hidden", "-best_hit_score_edge 0.1": "no hit is hidden",
        "-num_descriptions 5": "--top N", "-searchsp 1000": "--dbsize N", "-query_loc 1-10": "--range FROM-TO",
        "-mt_mode 1": "threads", "-remote": "--server URL", "-parse_seqids": "identifiers",
        "-hash_index": "identifiers", "-parse_deflines": "identifiers", "-title nr": "name of its folder",
        "-show_gis": "identifiers", "-line_length 80": "60 columns", "-sorthits 1": "order of their E-values",
        "-sorthsps 1": "order of their E-values", "-gilist g.txt": "--include FILE", "-ipglist i": "--include FILE",
        "-negative_gilist g.txt": "--exclude FILE", "-negative_ipglist i": "--exclude FILE",
        "-taxidlist t.txt": "--taxid ID,ID", "-negative_taxids 9606": "--exclude FILE",
        "-negative_taxidlist t": "--exclude FILE", "-entrez_query human": "--taxid ID", "-db_soft_mask 21": "masked",
        "-db_hard_mask 21": "masked", "-import_search_strategy s.asn": "swsearch runs show",
        "-export_search_strategy s.asn": "swsearch runs show",
        "-outfmt 11": "there is no such value", "-seg '12 2.2 2.5'": "--mask seg", "-dbtype both": "--alphabet protein",
    },
    DIAMOND: {
        "--faster": "exhaustive", "--fast": "exhaustive", "--mid-sensitive": "exhaustive", "--sensitive": "exhaustive",
        "--more-sensitive": "exhaustive", "--very-sensitive": "exhaustive", "--ultra-sensitive": "exhaustive",
        "--iterate": "exhaustive", "--swipe": "exhaustive", "--long-reads": "exhaustive", "--block-size 4": "memory",
        "-b 4": "memory", "--index-chunks 1": "memory", "-c 1": "memory", "--tmpdir /tmp": "memory",
        "-t /tmp": "memory", "--top 10": "percentage", "--compress 1": ".gz", "--header": "--format tsv",
        "--frameshift 15": "one frame", "-F 15": "one frame", "--verbose": "--quiet", "--log": "--log FILE",
        "-f 100": "no such value",
    },
    MMSEQS: {
        "-s 7.5": "exhaustive", "-k 6": "exhaustive", "--k-score 100": "exhaustive",
        "--spaced-kmer-pattern 11011": "exhaustive", "--max-rejected 5": "exhaustive", "--max-accept 5": "exhaustive",
        "--alignment-mode 3": "exhaustive", "--exhaustive-search 1": "exhaustive", "--prefilter-mode 2": "exhaustive",
        "--split 2": "memory", "--split-memory-limit 4G": "memory", "--db-load-mode 2": "memory",
        "--disk-space-limit 4G": "memory", "--cov-mode 2": "--min-query-coverage PERCENT",
        "--gap-open 11": "--gap-open 10", "--gap-extend 1": "--gap-extend 1", "-a": "alignment", "-v 3": "--quiet",
        "--remove-tmp-files 1": "leave it out", "--compressed 1": "leave it out", "--search-type 3": "leave it out",
        "--dbtype 1": "leave it out", "--format-output fident": "pident", "--min-seq-id half": "PERCENT",
        "--alt-ali x": "--max-hsps N", "--format-mode 5": "--format",
    },
    SSEARCH: {
        "-z 11": "statistics", "-Z 1000": "--dbsize N", "-k 500": "shuffled", "-M 100-200": "--min-length N",
        "-m 10": "no such value",
    },
}  # fmt: skip


def options_of(command: str) -> CommandOptions:
    """The options of a command of the program."""
    return CommandOptions.of(command, commands().commands[command].params)


def worded(given: str, program: str) -> Worded:
    """Words of a program, reworded for the command that has the options."""
    command = "index" if any(word in given for word in ("-in ", "--in ", "-dbtype", "-title")) else "query"
    return reworded(shlex.split(given), options_of(command), (program,))


ALL_UNDERSTOOD = [(program, given, own) for program, rows in UNDERSTOOD.items() for given, own in rows.items()]
ALL_REFUSED = [(program, given, reason) for program, rows in REFUSED.items() for given, reason in rows.items()]


@pytest.mark.parametrize(("program", "given", "own"), ALL_UNDERSTOOD)
def test_an_option_with_a_counterpart_is_understood(program, given, own):
    found = worded(given, program)
    assert found.refused == []
    assert [*found.first, *found.last, *found.options] == shlex.split(own)
    assert found.positional == []


@pytest.mark.parametrize(("program", "given", "reason"), ALL_REFUSED)
def test_an_option_without_a_counterpart_is_answered(program, given, reason):
    (refusal,) = worded(given, program).refused
    assert reason in str(refusal)
    assert str(refusal).startswith(given.split()[0])
    assert refusal.instead


def test_every_spelling_has_an_example_here():
    shown = {
        (program, word.partition("=")[0])
        for rows in (UNDERSTOOD, REFUSED)
        for program, examples in rows.items()
        for given in examples
        for word in shlex.split(given)
    }
    assert {(row.program, row.name) for row in SPELLINGS} <= shown
    assert len({(row.program, row.name) for row in SPELLINGS}) == len(SPELLINGS)


def test_the_reference_page_has_all_spellings_with_a_counterpart():
    """The message about any other spelling says what to do."""
    page = (DATA.parent / "docs" / "reference" / "names.md").read_text().replace("`", "")
    for row in SPELLINGS:
        lines = [line for line in page.splitlines() if line.endswith(f" | {row.meaning.replace('`', '')} |")]
        named = any(row.name in line.split("|")[1].replace(",", " ").split() for line in lines)
        assert row.reason or named, row


@pytest.mark.peer("blastp")
def test_every_option_of_blastp_has_an_answer():
    """Source: the options that NCBI's blastp lists."""
    printed = subprocess.run(["blastp", "-help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^ (-\w+)", printed, re.MULTILINE)
    assert len(names) > 50
    own = options_of("query")
    asked = [name for name in names if name not in ("-h", "-help", "-version")]
    refusals = [str(refusal) for name in asked for refusal in reworded([name, "1"], own).refused]
    assert [text for text in refusals if "no such option" in text] == []


# --- words in place of a command ---

PROGRAM_LINES = {
    "blastp -query q.fa -db d -evalue 1e-5 -num_threads 4 -max_target_seqs 3 -outfmt '6 std qlen' -out 'x y.tsv'": (
        "swsearch query q.fa d --evalue 1e-5 --threads 4 --top 3 --format blast6 --fields 'std qlen' --out 'x y.tsv'"
    ),
    "blastp -query q.fa -db d -word_size 3": (
        "swsearch query q.fa d; without -word_size 3 of BLAST+ (every search is exhaustive)"
    ),
    "blastp -q q.fa -d d --sensitive -k 5": (
        "swsearch query q.fa d -k 5; without --sensitive of DIAMOND (every search is exhaustive)"
    ),
    "blastn -query q.fa -subject s.fa -strand plus": "swsearch query q.fa s.fa --strand plus",
    "blastp -query q.fa -db 'd e' -evalue 1": "swsearch query q.fa --db d --db e --evalue 1",
    "megablast -query q.fa -db d": "swsearch query q.fa d",
    "psiblast -query q.fa -db d -num_iterations 3": "swsearch query q.fa d --iterations 3",
    "blastx -query q.fa -db d": "swsearch query q.fa d --translate query",
    "tblastn -query q.fa -db d -db_gencode 11": "swsearch query q.fa d --translate subject --genetic-code 11",
    "tblastx -query q.fa -db d": "swsearch query q.fa d --translate both",
    "diamond blastx -q q.fa -d d -o o.tsv -f 6 qseqid sseqid": (
        "swsearch query q.fa d --translate query -o o.tsv --format blast6 --fields 'qseqid sseqid'"
    ),
    "makeblastdb -in a.fa -dbtype prot -out d": "swsearch index a.fa --alphabet protein --out d",
    "makeblastdb -in a.fa -dbtype nucl": "swsearch index a.fa --alphabet dna --out DB",
    "makedb --in a.fa -d d": "swsearch index a.fa --out d",
    "diamond makedb --in a.fa --db d": "swsearch index a.fa --out d",
    "createdb a.fa b.fa d": "swsearch index a.fa b.fa --out d",
    "mmseqs createdb a.fa d": "swsearch index a.fa --out d",
    "search q.fa d --top 3": "swsearch query q.fa d --top 3",
    "search q d result tmp -e 1e-3": "swsearch query q d -e 1e-3 --out result --format blast6",
    "mmseqs easy-search q.fa s.fa r.m8 tmp --max-seqs 10": (
        "swsearch query q.fa s.fa --top 10 --out r.m8 --format blast6"
    ),
    "easy-search q.fa s.fa r.m8 tmp --format-output query,target": (
        "swsearch query q.fa s.fa --format blast6 --fields 'qseqid sseqid' --out r.m8"
    ),
    "ssearch36 -s BL62 -f -11 -g -1 -E 1e-5 -m 8 -q q.fa lib.fa": (
        "swsearch query q.fa lib.fa --matrix BLOSUM62 --gap-open 11 --gap-extend 1 --evalue 1e-5 --format blast6 -q"
    ),
    "ssearch q.fa lib.fa": "swsearch query q.fa lib.fa",
    "fasta36 q.fa lib.fa": "swsearch query q.fa lib.fa",
    "blastp": "swsearch query QUERY… DB",
    "blastp -query q.fa": "swsearch query q.fa DB",
    "blastp -db d": "swsearch query QUERY… d",
    "blastp -db 'd e'": "swsearch query QUERY… --db d --db e",
    "blastp -help": "swsearch query --help",
    "makeblastdb": "swsearch index FASTA… --out DB",
    "diamond": "swsearch index FASTA… --out DB, then swsearch query QUERY… DB",
    "diamond view": "swsearch report latest --format blast6",
    "-query q.fa -db d -evalue 3": "swsearch query q.fa d --evalue 3",
    "q.fa d --top 3": "swsearch query q.fa d --top 3",
    **LINES,
}


@pytest.mark.parametrize("given", PROGRAM_LINES)
def test_the_word_of_a_program_is_answered_with_the_line_that_does_it(swsearch, tmp_path, given):
    (tmp_path / "q.fa").write_text(">a\nMKVLAAGIVG\n")
    outcome = swsearch(*shlex.split(given))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.error.split("; here it is: ", 1)[1] == PROGRAM_LINES[given]
    assert outcome.err == outcome.error + "\n"


def test_every_program_word_is_answered_above():
    assert {*PROGRAM_WORDS, *LINES} <= {word for given in PROGRAM_LINES for word in given.split()}


# --- within a command of swsearch ---


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (
            "query -query {q} -db {db} -evalue 1e-5 -num_threads 1 -max_target_seqs 2 -max_hsps 2 -outfmt '6 std qlen'",
            "query {q} {db} --evalue 1e-5 --threads 1 --top 2 --max-hsps 2 --format blast6 --fields 'std qlen'",
        ),
        ("query -db {db} -query {q} -outfmt=7", "query {q} {db} --format blast7"),
        (
            "query {q} {db} --outfmt 6 qseqid sseqid --max-target-seqs 2 --query-cover 50 --id 30",
            "query {q} {db} -f blast6 --fields 'qseqid sseqid' -k 2 --min-query-coverage 50 --min-identity 30",
        ),
        ("query {q} {db} --format-mode 0 --max-seqs 2", "query {q} {db} -f blast6 -k 2"),
        ("query {q} {db} -k2 -e1e-5 -p1 -f blast6", "query {q} {db} --top 2 --evalue 1e-5 --threads 1 --format blast6"),
        ("query {q} {db} --max_hsps 2 -top 2 -k=2", "query {q} {db} --max-hsps 2 --top 2"),
    ],
)
def test_a_search_in_other_words_is_the_same_search(swsearch, few_proteins_db, given, own):
    """Source: the same search in the words of swsearch."""
    called = [
        swsearch(*shlex.split(line.format(q=QUERIES, db=few_proteins_db)), "--store", "none", "--quiet")
        for line in (given, own)
    ]
    assert called[0] == called[1]
    assert called[0].code == 0
    assert called[0].out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--sensitive", "--sensitive of DIAMOND: every search is exhaustive; leave it out"),
        (
            "-outfmtt 6",
            "-outfmtt: there is no such option; write `-o utfmtt` if that is meant; `swsearch query --help`",
        ),
        ("-word 3", "-word: there is no such option; `swsearch query --help` lists all"),
        ("-d x", "-d: it means in DIAMOND the last argument, and in SSEARCH --top"),
        ("-m 8", "-m 8 of SSEARCH: swsearch has other short names; say --format blast6"),
        ("-n 5", "-n of SSEARCH: swsearch has other short names; say --alphabet dna"),
        ("-c 0.8", "-c: it means in DIAMOND the memory that a search needs has a limit, and in MMseqs2 --min-query"),
        ("-seg yes -lcase_masking", "-lcase_masking: it means --mask, and so does -seg; say --mask once"),
        ("-outfmt", "-outfmt: its value is missing"),
        ("--toop 3", "no such option: --toop"),
        ("--evalue", "option '--evalue' requires an argument"),
        ("--top x", "invalid value for '--top' / '-k'"),
    ],
)
def test_a_word_that_cannot_be_followed_is_one_line(swsearch, tmp_path, protein_db, given, words):
    outcome = swsearch("query", QUERIES, protein_db, *given.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.error
    assert outcome.err == outcome.error + "\n"
    assert not list(tmp_path.iterdir())


def test_words_behind_two_dashes_and_values_are_left_alone(swsearch, tmp_path, few_proteins_db):
    (tmp_path / "-query").write_text(">a\nMKVLAAGIVG\n")
    found = swsearch("query", "--store", "none", "--id-pattern", "-word_size|.", "--", "-query", few_proteins_db)
    assert found.code == 0, found.err
    assert "Query:    a (10 residues)" in found.out


@pytest.mark.parametrize("command", ["batch", "msa"])
def test_other_commands_understand_the_same_words(swsearch, tmp_path, few_proteins_db, command):
    found = swsearch(command, "-query", QUERIES, "-db", few_proteins_db, "-out", "o.txt", "-num_threads", 1, "-q")
    assert found.code == 0, found.err
    assert (tmp_path / "o.txt").stat().st_size > 0


def test_an_option_of_a_search_is_unknown_to_a_command_without_it(swsearch, few_proteins_db):
    outcome = swsearch("db", "info", "-db", few_proteins_db)
    assert outcome.code == 2
    assert "-db: there is no such option; `swsearch db info --help` lists all" in outcome.error
