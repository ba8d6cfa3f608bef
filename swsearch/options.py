"""The options of searches: one table, from which the program makes all that it says and checks about them.

:data:`OPTIONS` has a row for each option of the commands that search or report, and of others with many
options. Loops over it make the options of the command line and their help, the defaults that a configuration file may
set, the checks of :class:`swsearch.search.options.SearchOptions`, the form of the search service, the description of
its API, and the reference in the documentation. A row that is true for :attr:`Option.is_of_search` is a field of
``SearchOptions`` or ``alphabet``; the other rows concern the machine, the run and the output.

The module imports nothing that takes time, because ``--help`` needs it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from swsearch.arguments import choice, flag, number, path, text, whole_number
from swsearch.errors import InputError
from swsearch.words import option

INPUT: Final = "Queries and databases"
SCORING: Final = "Scoring"
CHOICE: Final = "Which hits"
FILTERS: Final = "Filters, before the list is cut at --top"
ROUNDS: Final = "Iterated searches with profiles"
OUTPUT: Final = "Output"
SEQUENCES: Final = "Sequences"
ORGANISMS: Final = "Organisms"
ROWS: Final = "Rows of a3m, sto and afasta"
MACHINE: Final = "Machine"
RUN: Final = "Run"
PANELS: Final = (INPUT, SCORING, CHOICE, FILTERS, ROUNDS, OUTPUT, SEQUENCES, ORGANISMS, ROWS, MACHINE, RUN)
"""The groups of options in the help, in this order; options without a group come last."""

EVERY_SUBJECT: Final = 2**31 - 1
"""The length of a list that is not cut; a database has fewer subjects. Also the largest score and length."""
DEADLINE_SECONDS: Final = 60.0
"""Time after which the work of a worker of a cluster that does not answer is given to others."""
PAIR_EVALUE: Final = 0.001
"""Largest E-value of all against all, whose queries have relatives in the database."""
FAMILY_ITERATIONS: Final = 3
FAMILY_EVALUE: Final = 0.1
FAMILY_TOP: Final = 10_000
"""Of deep alignments: as on ColabFold's server."""
DOMAIN_EVALUE: Final = 0.01
INCLUSION_EVALUE: Final = 0.01
"""Of rounds that report subjects with larger E-values, too; others include all that they report."""
DEFAULT_STORE: Final = "~/.local/share/swsearch/hits.sqlite"
"""Stands for the user's store (:func:`swsearch.folders.user_store`), also where $XDG_DATA_HOME moves it."""

SEARCHES: Final = ("query", "batch")
COMPARISONS: Final = ("allpairs", "cluster", "rbh")
ALL_SEARCHES: Final = (*SEARCHES, *COMPARISONS, "msa")
STORED: Final = (*SEARCHES, *COMPARISONS)
REPORTS: Final = (*SEARCHES, "report")
SERVICE: Final = ("serve", "worker")


@dataclass(frozen=True)
class Range:
    """The numbers that an option accepts, and what a message about another number advises.

    Attributes
    ----------
    least, most : float
    says : str
    is_above : bool
        Whether ``least`` itself is refused.
    """

    least: float
    most: float
    says: str
    is_above: bool = False

    def check(self, name: str, value: float) -> None:
        """Refuse a number outside of the range, or one that is none (NaN).

        Raises
        ------
        InputError
        """
        if not self.least <= value <= self.most or (self.is_above and value == self.least):
            raise InputError(f"{option(name, value)}: choose {self.says}")


_COUNT: Final = Range(1, EVERY_SUBJECT, f"a whole number, 1 to {EVERY_SUBJECT:,}")
_PERCENTAGE: Final = Range(0, 100, "a percentage, 0 to 100")
_THREADS_HELP: Final = "CPU threads. [the cores of this process]"


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name : str
        Its name in Python; the command line writes ``-`` in place of ``_`` and two hyphens before it.
    type : type
        Of its value: ``str``, ``int``, ``float``, ``bool``, ``Path``, or ``list`` for an option that may be repeated.
    help : str
        What it does, as ``--help`` prints it; other options are written ``--name``, a default that depends on the
        database in brackets. ``{formats}`` stands for the names of the report formats.
    panel : str
        Heading under which help and forms show it; empty for the last one of the help.
    commands : tuple of str
        The commands that offer it.
    default
        Its default; ``otherwise`` has those of commands in which it differs.
    otherwise : mapping of str to value
    short : str
        Its short name; empty if it has none.
    opposite : str
        The flag that says no, where ``name`` says yes; empty if there is none.
    is_hidden : bool
        Whether the help leaves it out.
    label : str
        Its name in a form; empty for an option that does not decide which hits are found.
    choices : tuple of str
        All values of an option with few values; empty otherwise.
    range : Range or None
        The numbers that it accepts.
    words : mapping of str to int
        Words in place of numbers, and what they mean; a number may be among them.
    minimum, maximum : float or None
        Bounds that the command line states in the help and checks itself.
    metavar : str or None
        Word for the value in the help; None for the default, its type.
    file : str
        What the value names: ``input``, ``input or URL``, ``output``, ``database`` (a new one), ``store``, ``kept
        store`` or ``created store``; empty for none.
    completion : str
        The function of :mod:`swsearch.cli.completion` that completes the value; empty for ``choices`` or none.
    is_local : bool
        Whether it has a meaning only on the machine that searches, so that no server takes it.
    needs : tuple of str
        The option without which it has no meaning, and the values of that with which it has one; without values, all
        but None, none and the default of the table; for ``format``, those that take it. On the command line, the option
        is refused without it; a default of the environment or the configuration file then does not count.
    """

    name: str
    type: type
    panel: str
    commands: tuple[str, ...]
    default: Any = None
    help: str = ""
    otherwise: Mapping[str, Any] = field(default_factory=dict)
    short: str = ""
    opposite: str = ""
    is_hidden: bool = False
    label: str = ""
    choices: tuple[str, ...] = ()
    range: Range | None = None
    words: Mapping[str, int] = field(default_factory=dict)
    minimum: float | None = None
    maximum: float | None = None
    metavar: str | None = None
    file: str = ""
    completion: str = ""
    is_local: bool = False
    needs: tuple[str, ...] = ()

    @property
    def is_of_search(self) -> bool:
        """Whether the option decides which hits are found."""
        return bool(self.label)

    @property
    def flags(self) -> tuple[str, ...]:
        """Its names on the command line, the short one after the long one.

        >>> option_of("top").flags, option_of("max_hsps").flags, option_of("cigar").flags
        (('--top', '-k'), ('--max-hsps',), ('--cigar/--score-only',))
        """
        long = f"--{self.name.replace('_', '-')}"
        if self.opposite:
            long += f"/{self.opposite}"
        return (long, self.short) if self.short else (long,)

    @property
    def help_in_python(self) -> str:
        """What it does, with the names of options as those of arguments.

        >>> option_of("genetic_code").help_in_python
        "NCBI's genetic code for translate. [1]"
        """
        return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda found: found[1].replace("-", "_"), self.help)

    def default_in(self, command: str) -> Any:
        """Its default in a command; also in one that does not offer it, where it is the value that holds."""
        return self.otherwise.get(command, self.default)

    def check(self, value: Any) -> Any:
        """A value as the program uses it: a NumPy number as a number, a path as a string; None if it has no default.

        Raises
        ------
        InputError
            The value is out of range; a WrongType if it is of another type.
        """
        if value is None and self.default is None:
            return None
        value = self.words.get(str(value), value)
        checks: dict[type, Callable[[str, Any], Any]] = {
            int: whole_number,
            float: number,
            str: path if self.file else text,
            bool: flag,
        }
        checked = checks[self.type](self.name, value)
        if self.choices:
            choice(self.name, checked, self.choices)
        if self.range is not None:
            self.range.check(self.name, checked)
        return checked


OPTIONS: Final[tuple[Option, ...]] = (
    # --- of one command each ---
    Option(
        "server", str, MACHINE, ("query",), metavar="URL",
        help="Search on this server (`swsearch serve`), whose database DB names; auto: on your own, if one runs "
        "here and has DB. SWSEARCH_TOKEN provides the token.",
    ),
    Option(
        "mode", str, "", ("cluster",), "cover", choices=("cover", "length", "components"),
        help="How representatives are chosen. cover: sequences with the most partners first; length: the longest "
        "sequences first; components: clusters are all sequences that are connected.",
    ),
    Option(
        "format", str, OUTPUT, ("cluster",), "tsv", short="-f", choices=("tsv", "jsonl"),
        help="tsv: a representative and a member on each line, without a header; jsonl: a cluster on each line.",
    ),
    Option(
        "representatives", Path, OUTPUT, ("cluster",), metavar="FILE", file="output",
        help="Write the representatives to this FASTA file.",
    ),
    Option(
        "together", bool, INPUT, ("msa",), False,
        help="Search all databases as one in every round, instead of the further ones with the last profile only.",
    ),
    Option(
        "pair", str, OUTPUT, ("msa",), "none",
        help="Take the queries as the chains of a complex. Its first rows pair the hits of one organism (OX=) that "
        "has hits for all chains (complete) or for at least two (greedy); the hits of each chain follow.",
    ),
    Option(
        "out", str, OUTPUT, ("msa",), short="-o", file="output",
        help="Write the alignments to this file, or each query to a file in this folder, which exists or ends with "
        "/. [stdout]",
    ),
    Option(
        "database", list, SEQUENCES, ("report",), metavar="DB", file="input or URL",
        help="Database of the run, if its path has changed; for whole sequences and organisms of subjects. "
        "For several databases, repeat the option in their order.",
    ),
    # --- queries and databases ---
    Option(
        "query_format", str, INPUT, SEARCHES, "auto", metavar="NAME",
        choices=("auto", "fasta", "pssm", "asn1", "hmm", "aligned", "a3m", "stockholm"),
        help="Format of the queries: fasta (or FASTQ), pssm (psiblast -out_ascii_pssm), asn1 (psiblast -out_pssm), "
        "hmm (HMMER3), aligned (FASTA), a3m (or A2M), stockholm. All but fasta are profiles with "
        "position-specific scores; auto recognises pssm, asn1, hmm and stockholm.",
    ),
    Option(
        "in_pssm", list, INPUT, SEARCHES, metavar="FILE", file="input", is_local=True,
        help="File of profiles to search with, also without query files: checkpoints of --save-pssm or psiblast, "
        "PSSMs as text, HMMER3 models, Stockholm.",
    ),
    Option(
        "db", list, INPUT, SEARCHES, metavar="DB", file="input or URL",
        help="Database; may be repeated: all are searched as one.",
    ),
    # --- run ---
    Option(
        "resume", str, RUN, STORED, metavar="RUN", completion="runs", is_local=True,
        help="Continue a run, given by its number or as latest. If none matches, a new run starts.",
    ),
    Option(
        "shard", str, RUN, (*SEARCHES, "allpairs"), "1/1", metavar="I/N", is_local=True,
        help="Search one shard of the queries: i/n with i from 1 to n; auto in a job array, or auto/n if its tasks "
        "are numbered from 1 to n. {shard} in the name of an output becomes, for example, 3-of-8.",
    ),
    # --- output ---
    Option(
        "format", str, OUTPUT, ("query", "allpairs", "rbh", "report"), "table",
        otherwise={"allpairs": "blast6", "rbh": "blast6"}, short="-f", metavar="NAME", completion="formats",
        help="{formats}.",
    ),
    Option(
        "format", str, OUTPUT, ("batch",), "none", short="-f", metavar="NAME", completion="formats",
        help="Also print the results, in a format of `swsearch query`. [none; table with --out]",
    ),
    Option(
        "format", str, OUTPUT, ("msa",), "a3m", short="-f", choices=("a3m", "sto", "afasta"),
        help="Format of the alignments.",
    ),
    Option(
        "format", str, OUTPUT, ("domains",), "table", short="-f",
        choices=("table", "domtblout", "tsv", "jsonl", "html"),
        help="Format of the domains; domtblout is that of hmmscan.",
    ),
    Option(
        "format", str, OUTPUT, ("align",), "table", short="-f",
        choices=("table", "tsv", "json", "jsonl", "pairwise"),
        help="Format of the results.",
    ),
    Option(
        "format", str, OUTPUT, ("kernels",), "table", short="-f", choices=("table", "json"),
        help="Format of the output: a table for readers, or JSON for programs.",
    ),
    Option(
        "fields", str, OUTPUT, (*REPORTS, "allpairs", "rbh"), metavar="NAMES", completion="fields", needs=("format",),
        help="Columns of the report, by BLAST's names, separated by blanks or commas.",
    ),
    Option(
        "width", int, OUTPUT, (*REPORTS, "allpairs", "rbh"), minimum=20, maximum=10_000, is_local=True,
        needs=("format",),
        help="--format table: columns of a line. [width of the terminal; 100 in files and pipes]",
    ),
    Option(
        "lca_top", float, OUTPUT, (*REPORTS, "allpairs"), minimum=0, maximum=100, metavar="PERCENT", needs=("format",),
        help="Taxa of queries (lca, kraken, taxa-html) are those of hits at most this far below the best bit score. "
        "[10]",
    ),
    Option(
        "out", Path, OUTPUT, (*STORED, "report", "align", "domains", "kernels"), short="-o", file="output",
        help="File for the results. [stdout]",
    ),
    Option(
        "plot", Path, OUTPUT, SEARCHES, file="output", is_local=True,
        help="File for a histogram of all scores and their expected distribution (.png, .svg, .pdf); computes every "
        "score.",
    ),
    Option(
        "save_pssm", Path, OUTPUT, REPORTS, metavar="FILE", file="output", is_local=True,
        help="File for the profile of each query's last round, as a PSI-BLAST checkpoint (ASN.1), which can be a "
        "query file.",
    ),
    Option(
        "events", Path, OUTPUT, STORED, file="output", is_local=True,
        help="File to which each event is appended, as a line of JSON.",
    ),
    Option(
        "explain", bool, OUTPUT, SEARCHES, False, is_local=True,
        help="Print which kernels the engine would use, and why; do not search.",
    ),
    Option(
        "store", str, OUTPUT, STORED, DEFAULT_STORE, file="store",
        help="SQLite file or database URL for the hits, or none.",
    ),
    Option(
        "store", str, OUTPUT, ("report",), DEFAULT_STORE, file="kept store",
        help="SQLite file or database URL for the hits.",
    ),
    Option(
        "store", str, OUTPUT, SERVICE, DEFAULT_STORE, file="created store",
        help="SQLite file or database URL for the hits; a missing file is created.",
    ),
    Option(
        "stage_store", str, OUTPUT, STORED, "auto", choices=("auto", "always", "never"), is_local=True,
        help="Write the store on this machine and publish it as complete files; auto: if it is on a network file "
        "system.",
    ),
    Option(
        "quiet", bool, OUTPUT, (*ALL_SEARCHES, "align", "domains", "index"), False, short="-q",
        help="Print only errors on stderr.",
    ),
    # --- sequences in and beside the report ---
    Option(
        "aligned", bool, SEQUENCES, REPORTS, False, needs=("format",),
        help="--format fasta: write the aligned parts, one for each alignment. [whole sequences]",
    ),
    Option(
        "flank", int, SEQUENCES, REPORTS, minimum=0, needs=("format",),
        help="--format fasta: write the aligned parts with this many residues on each side.",
    ),
    Option(
        "unaligned", Path, SEQUENCES, SEARCHES, metavar="FILE", file="output", is_local=True,
        help="FASTA file for the queries without hits.",
    ),
    Option(
        "aligned_queries", Path, SEQUENCES, SEARCHES, metavar="FILE", file="output", is_local=True,
        help="FASTA file for the queries with hits.",
    ),
    Option(
        "msa_coverage", float, ROWS, (*REPORTS, "msa"), 0.0, metavar="PERCENT", needs=("format",),
        help="Minimum coverage of the query by a row, in percent (hhfilter -cov).",
    ),
    Option(
        "msa_query_identity", float, ROWS, (*REPORTS, "msa"), 0.0, metavar="PERCENT", needs=("format",),
        help="Minimum identity of a row with the query, in percent (hhfilter -qid).",
    ),
    Option(
        "msa_max_identity", int, ROWS, (*REPORTS, "msa"), 100, otherwise={"msa": 95}, metavar="PERCENT",
        needs=("format",),
        help="Maximum identity of two rows, in percent (hhfilter -id).",
    ),
    Option(
        "msa_diff", int, ROWS, (*REPORTS, "msa"), 0, otherwise={"msa": 3000}, needs=("format",),
        help="Keep at least this many of the most diverse rows in every block of 50 columns (hhfilter -diff); 0: no "
        "filter.",
    ),
    Option(
        "msa_filter_above", int, ROWS, (*REPORTS, "msa"), 0, otherwise={"msa": 1000}, needs=("format",),
        help="Apply --msa-max-identity and --msa-diff only to alignments with more rows than this.",
    ),
    # --- which hits ---
    Option(
        "query", list, CHOICE, ("report",), metavar="ID",
        help="Report only this query, given by its identifier or accession. The option may be repeated.",
    ),
    Option(
        "alphabet", str, CHOICE, SEARCHES, label="Queries are", choices=("protein", "dna"),
        help="Alphabet of the queries. [detected]",
    ),
    Option(
        "top", int, CHOICE, (*REPORTS, "msa"), 100,
        otherwise={"report": None, "msa": FAMILY_TOP, "allpairs": EVERY_SUBJECT, "cluster": EVERY_SUBJECT, "rbh": 1},
        short="-k", label="Hits to report",
        range=Range(1, EVERY_SUBJECT, f"a number of subjects, 1 to {EVERY_SUBJECT:,}, or all (0)"),
        words={"all": EVERY_SUBJECT, "0": EVERY_SUBJECT}, minimum=1,
        help="Maximum number of subjects for each query, or all. A chromosome is one subject; each alignment has a "
        "line.",
    ),
    Option(
        "evalue", float, CHOICE, (*ALL_SEARCHES, "report", "domains"), 10.0,
        otherwise={
            "report": None, "msa": FAMILY_EVALUE, "domains": DOMAIN_EVALUE, **dict.fromkeys(COMPARISONS, PAIR_EVALUE)
        },
        short="-e", label="Maximum E-value", range=Range(0, math.inf, "a number above 0", is_above=True),
        help="Maximum E-value of a reported hit.",
    ),
    Option(
        "ties", str, CHOICE, SEARCHES, "cut", label="Ties", choices=("cut", "all"),
        help="cut: at most --top subjects; all: also those equal to the last.",
    ),
    Option(
        "strand", str, CHOICE, STORED, "both", label="Strand", choices=("both", "plus", "minus"),
        help="Strands of a DNA query that are searched.",
    ),
    Option(
        "translate", str, CHOICE, SEARCHES, label="Translate", choices=("query", "subject", "both", "none"),
        help="Translate DNA in six frames: query (against proteins), subject (with proteins), both, or none. [on the "
        "command line, what queries and database need]",
    ),
    Option(
        "genetic_code", int, CHOICE, SEARCHES, label="Genetic code", needs=("translate",),
        help="NCBI's genetic code for --translate. [1]",
    ),
    Option(
        "thresholds", str, CHOICE, ("domains",), "GA", choices=("GA", "TC", "NC", "none"),
        help="Where a model has these thresholds, they decide in place of --evalue: gathering (GA), trusted (TC) or "
        "noise (NC) thresholds.",
    ),
    Option(
        "overlaps", bool, CHOICE, ("domains",), False,
        help="Also report domains that share more than half of their aligned residues with a better one.",
    ),
    Option(
        "max_hsps", int, CHOICE, REPORTS, label="Alignments per subject",
        range=Range(1, EVERY_SUBJECT, f"a number of alignments of a subject, 1 to {EVERY_SUBJECT:,}"), minimum=1,
        help="Alignments per subject. [1; translated or long DNA: all with E <= 10]",
    ),
    Option(
        "count_hsps", bool, CHOICE, SEARCHES, False, label="Count alignments",
        help="Count each subject's alignments (n_hsps).",
    ),
    Option(
        "max_intron", int, CHOICE, SEARCHES, label="Largest intron", needs=("translate", "subject"),
        range=Range(1, 10**7, "a number of bases, 1 to 10,000,000"), metavar="BASES",
        help="Join alignments of a protein with a genome that may be exons of one gene, with introns up to this "
        "length; they have one E-value.",
    ),
    # --- scoring ---
    Option(
        "matrix", str, SCORING, (*ALL_SEARCHES, "align"), label="Matrix", metavar="NAME", file="input or URL",
        completion="matrices",
        help="Substitution matrix. A name (`swsearch matrices`) or a file. [protein: BLOSUM62]",
    ),
    Option(
        "match", int, SCORING, (*STORED, "align"), label="Match",
        help="Score of two equal bases. [DNA: 2]",
    ),
    Option(
        "mismatch", int, SCORING, (*STORED, "align"), label="Mismatch",
        help="Score of two different bases. [DNA: -3]",
    ),
    Option(
        "gap_open", int, SCORING, (*ALL_SEARCHES, "align"), label="Gap opening",
        help="A gap of k residues costs open + k * extend. [the matrix's; BLOSUM62: 11, DNA: 5]",
    ),
    Option(
        "gap_extend", int, SCORING, (*ALL_SEARCHES, "align"), label="Gap extension",
        help="See --gap-open. [BLOSUM62: 1, DNA: 2]",
    ),
    Option(
        "dbsize", int, SCORING, STORED, label="Database size",
        range=Range(1, 10**17, "a number of residues, at least 1, at most 10^17"),
        help="Residues to which E-values refer. [actual]",
    ),
    Option(
        "mask", str, SCORING, ALL_SEARCHES, "none", label="Mask queries", metavar="NAME[,NAME…]",
        help="Mask queries: none, or tantan, seg (protein), dust (DNA), lower (lower-case letters), separated by "
        "commas.",
    ),
    Option(
        "mask_mode", str, SCORING, ALL_SEARCHES, "soft", label="Masking mode", choices=("soft", "hard"),
        needs=("mask",),
        help="soft: masked residues do not find subjects, but are aligned; hard: they become X or N.",
    ),
    Option(
        "composition", str, SCORING, ALL_SEARCHES, "adjust", label="Composition", choices=("adjust", "bias", "none"),
        help="adjust: E-values account for the composition of what is aligned; bias: residues frequent nearby score "
        "lower; for proteins.",
    ),
    Option(
        "sensitive", bool, CHOICE, (*SEARCHES, "msa"), False, label="Sensitive",
        help="Also find remote relatives. For proteins.",
    ),
    Option(
        "contexts", str, CHOICE, (*SEARCHES, "msa"), label="Contexts", metavar="FILE", file="input or URL",
        needs=("sensitive",),
        is_local=True,
        help="Contexts for --sensitive (CS-BLAST format).",
    ),
    # --- rounds ---
    Option(
        "iterations", int, ROUNDS, (*SEARCHES, "msa"), 1, otherwise={"msa": FAMILY_ITERATIONS}, label="Rounds",
        range=Range(1, 100, "a whole number, 1 to 100"), minimum=1,
        help="Maximum number of rounds; each searches with a profile of the previous round's included subjects. For "
        "proteins.",
    ),
    Option(
        "inclusion_evalue", float, ROUNDS, (*SEARCHES, "msa"), INCLUSION_EVALUE, label="Inclusion E-value",
        needs=("iterations",),
        range=Range(0, sys.float_info.max, "a number above 0, and not inf", is_above=True),
        help="Maximum E-value for the next round's profile, at most --evalue.",
    ),
    # --- filters ---
    Option(
        "min_score", int, FILTERS, (*STORED, "report"), label="Minimum raw score", range=_COUNT,
        help="Minimum raw score.",
    ),
    Option(
        "min_bits", float, FILTERS, (*STORED, "report"), label="Minimum bit score",
        range=Range(0, EVERY_SUBJECT, f"a number, 0 to {EVERY_SUBJECT:,}"),
        help="Minimum bit score.",
    ),
    Option(
        "min_identity", float, FILTERS, (*STORED, "report"), label="Minimum identity, %", range=_PERCENTAGE,
        help="Minimum percentage of identical letters.",
    ),
    Option(
        "min_query_coverage", float, FILTERS, (*STORED, "report"), label="Minimum query coverage, %", range=_PERCENTAGE,
        help="Minimum percentage of the query that the alignment spans.",
    ),
    Option(
        "min_subject_coverage", float, FILTERS, (*STORED, "report"), label="Minimum subject coverage, %",
        range=_PERCENTAGE,
        help="Minimum percentage of the subject that the alignment spans.",
    ),
    Option(
        "min_alignment_length", int, FILTERS, (*STORED, "report"), label="Minimum alignment length", range=_COUNT,
        help="Minimum number of columns, including gaps.",
    ),
    Option(
        "min_length", int, FILTERS, STORED, label="Minimum subject length", range=_COUNT,
        help="Minimum length of a searched subject, in residues.",
    ),
    Option(
        "max_length", int, FILTERS, STORED, label="Maximum subject length", range=_COUNT,
        help="Maximum length of a searched subject, in residues.",
    ),
    Option(
        "id_pattern", str, FILTERS, STORED, label="Identifier pattern", metavar="REGEX",
        help="Search only subjects whose identifier matches this regular expression.",
    ),
    Option(
        "include", str, FILTERS, STORED, label="Included subjects", metavar="FILE", file="input or URL",
        is_local=True,
        help="Search only these subjects: a file of identifiers or accessions, one on each line. An accession "
        "without a version matches all versions.",
    ),
    Option(
        "exclude", str, FILTERS, ALL_SEARCHES, label="Excluded subjects", metavar="FILE", file="input or URL",
        is_local=True,
        help="Do not search these; a file as for --include.",
    ),
    Option(
        "taxid", str, FILTERS, ALL_SEARCHES, label="Organisms", metavar="ID[,ID…]",
        help="Search only subjects with these NCBI taxonomy ids (OX= in UniProt's headers), and those below "
        "them if the database has a taxonomy. --taxonomy or SWSEARCH_TAXONOMY provides one.",
    ),
    Option(
        "taxid_map", str, FILTERS, (*ALL_SEARCHES, "report"), label="Taxonomy ids of subjects", metavar="FILE",
        file="input or URL", is_local=True,
        help="For --taxid and reports: file with lines of identifier and taxonomy ids, or NCBI's accession2taxid; "
        "ids in headers are then ignored.",
    ),
    Option(
        "taxonomy", str, FILTERS, (*ALL_SEARCHES, "report"), label="Taxonomy", metavar="PATH", file="input or URL",
        is_local=True,
        help="For --taxid and reports: NCBI's taxdump (folder, taxdump.tar.gz, taxdmp.zip or nodes.dmp), instead of "
        "the taxonomy of the database.",
    ),
    # --- machine ---
    Option(
        "engine", str, MACHINE, (*ALL_SEARCHES, "domains", *SERVICE), "auto",
        choices=("auto", "cuda", "cpu", "reference"), is_local=True,
        help="Engine to use; never changes the hits.",
    ),
    Option(
        "threads", int, MACHINE, (*ALL_SEARCHES, "domains", "index", "kernels", *SERVICE), short="-p", is_local=True,
        help=_THREADS_HELP,
    ),
    Option(
        "devices", str, MACHINE, (*ALL_SEARCHES, "domains", *SERVICE), is_local=True,
        help="GPUs of the cuda engine by their CUDA numbers, such as 0,1. [0]",
    ),
    Option(
        "no_bound", bool, MACHINE, STORED, False, is_local=True,
        help="Exclude no subject by an upper bound; for comparison, never changes the hits.",
    ),
    Option(
        "partition_residues", int, MACHINE, STORED, is_local=True,
        help="Residues passed to the engine at a time; never changes the hits.",
    ),
    Option(
        "cluster", str, MACHINE, ("batch", *COMPARISONS), metavar="PLACE",
        help="Search with the workers of a Dask cluster: tcp://host:port, a scheduler file, or local:N for N "
        "workers on this machine.",
    ),
    Option(
        "slices", str, MACHINE, ("batch", *COMPARISONS), "auto", choices=("auto", "yes", "no"), needs=("cluster",),
        help="With --cluster: whether each worker holds slices (segments) of the database instead of the whole.",
    ),
    Option(
        "deadline", float, MACHINE, ("batch", *COMPARISONS), DEADLINE_SECONDS, minimum=0.1, needs=("cluster",),
        help="With --cluster: seconds after which the work of a worker that does not answer may be given to others.",
    ),
    # --- align ---
    Option(
        "pairs", bool, "", ("align",), False,
        help="Take the pairs from QUERY: its first and second record, third and fourth, and so on.",
    ),
    Option(
        "mode", str, "", ("align",), "local", choices=("local", "global", "semiglobal", "edit", "lcs"),
        help="Kind of alignment.",
    ),
    Option(
        "free_ends", str, "", ("align",), needs=("mode", "semiglobal", "edit"),
        help="Ends whose gaps are free, for semiglobal and edit: both, query, subject (the whole query is aligned), "
        "query-start, subject-end, …, or edlib's HW or SHW. [both for semiglobal]",
    ),
    Option(
        "text", bool, "", ("align",), False,
        help="Take QUERY and SUBJECT as the texts themselves, for edit and lcs.",
    ),
    Option(
        "alphabet", str, "", ("align",), choices=("protein", "dna"),
        help="Alphabet of the sequences. [detected]",
    ),
    Option(
        "costs", str, "", ("align",),
        help="A set of costs: nw2009 (indel 3, substitution 1, match 0) or sw2023 (match 1, others -1, gap -2).",
    ),
    Option(
        "cigar", bool, "", ("align",), opposite="--score-only",
        help="Compute the path of the alignment, or only its score. [path up to 25 million cells; always for "
        "pairwise]",
    ),
    Option(
        "engine", str, MACHINE, ("align",), "auto", choices=("auto", "cuda", "cpu", "reference"),
        help="Engine that computes the alignment. reference keeps complete matrices; auto uses a GPU for billions of "
        "cells.",
    ),
    Option(
        "kernel", str, MACHINE, ("align",), "diamond", choices=("diamond", "wavefront"),
        help="Kernel of the GPU; wavefront computes scores of global alignments with linear gaps.",
    ),
    Option(
        "serial", bool, "", ("align",), False,
        help="Use the reference implementation, as --engine reference does.",
    ),
    Option(
        "matrix_out", Path, "", ("align",), file="output",
        help="Write the matrix of one small pair to this file, separated by tabs.",
    ),
    Option(
        "threads", int, MACHINE, ("align",), short="-p",
        help=_THREADS_HELP,
    ),
    Option(
        "plot", Path, "", ("align",), file="output",
        help="Write a dot plot of the pair to this .png, .svg or .pdf file.",
    ),
    # --- index ---
    Option(
        "out", Path, "", ("index",), short="-o", file="database",
        help="Database to build: a folder that does not exist yet. [of one file x.fasta: x.db]",
    ),
    Option(
        "blastdb", list, "", ("index",),
        help="Import this BLAST database, named as for BLAST's -db. Requires blastdbcmd. The option may be repeated.",
    ),
    Option(
        "alphabet", str, "", ("index",), choices=("protein", "dna"),
        help="Alphabet of the sequences. [detected and printed]",
    ),
    Option(
        "skip_bad", bool, "", ("index",), False,
        help="Leave out records that are empty or have wrong letters, and print the first ten.",
    ),
    Option(
        "skipped", Path, "", ("index",), file="output", needs=("skip_bad",),
        help="With --skip-bad: list all records that are left out in this file; - is stdout.",
    ),
    Option(
        "slices", int, "", ("index",), 1,
        help="Divide the sequences into this many slices, so that each of as many workers can hold one.",
    ),
    Option(
        "taxonomy", str, ORGANISMS, ("index",), metavar="PATH", file="input or URL",
        help="Store the names and lineages of NCBI's taxdump (folder, taxdump.tar.gz, taxdmp.zip or nodes.dmp).",
    ),
    Option(
        "taxid_map", str, ORGANISMS, ("index",), metavar="FILE", file="input or URL",
        help="File with lines of identifier and taxonomy ids, or NCBI's accession2taxid. [OX= and TaxID= in headers]",
    ),
    Option(
        "force", bool, "", ("index",), False,
        help="Replace an existing database.",
    ),
    # --- serve and worker ---
    Option(
        "databases", str, "", SERVICE, metavar="FOLDER", file="input or URL",
        help="Also offer the databases in this folder, including those that are added later.",
    ),
    Option(
        "host", str, "", ("serve",), "127.0.0.1",
        help="Address to listen on; an address other than a loopback address requires tokens.",
    ),
    Option(
        "port", int, "", ("serve",), 8765, minimum=0, maximum=65535,
        help="Port to listen on; 0 chooses a free port.",
    ),
    Option(
        "worker", bool, "", ("serve",), True, opposite="--no-worker",
        help="Start a worker process beside the web process.",
    ),
    Option(
        "expiry_days", float, "", SERVICE, 30.0, minimum=0,
        help="Number of days after which a finished search is deleted with its results; 0 keeps all.",
    ),
    Option(
        "give_up_after", int, "", SERVICE, 3, minimum=1,
        help="Number of workers that may die while searching a query before the query fails.",
    ),
    Option(
        "limit", list, "", ("serve",), metavar="NAME=N",
        help="Set a limit, such as search_queries=100. The option may be repeated.",
    ),
    Option(
        "protocol", list, "", ("serve",), metavar="NAME",
        help="Also offer the protocol of another service: blast or tickets. The option may be repeated.",
    ),
    Option(
        "trusted_proxy", list, "", ("serve",), metavar="ADDRESS",
        help="Address or network of a reverse proxy whose X-Forwarded headers are trusted. The option may be "
        "repeated.",
    ),
    Option(
        "sso_header", str, "", ("serve",), "", metavar="NAME",
        help="Header in which the trusted proxy names the user who is signed in.",
    ),
    Option(
        "subject_sets", str, "", SERVICE, metavar="FOLDER",
        help="Folder for subjects that are sent with searches, or none to refuse such searches. [next to the store, "
        "if it is a file]",
    ),
    Option(
        "families", list, "", ("serve",), metavar="FILE", file="input",
        help="Models of HMMER, such as Pfam-A.hmm; pages show the domains of a protein. The option may be repeated.",
    ),
    Option(
        "root_path", str, "", ("serve",), "", metavar="PATH",
        help="Path under which a proxy offers the server, such as /swsearch.",
    ),
    Option(
        "hints", bool, "", ("worker",), False, is_hidden=True,
        help="Whether the server that started the worker sends hints.",
    ),
)  # fmt: skip
"""All options, in the order of the help within a panel. An option that means something else in a command has a row of
its own for it."""

SEARCH_OPTIONS: Final[dict[str, Option]] = {row.name: row for row in OPTIONS if row.is_of_search}
"""The options that decide which hits are found, by their names."""
SEARCH_FILES: Final = tuple(row.name for row in SEARCH_OPTIONS.values() if row.metavar in ("FILE", "PATH"))
"""Those whose values are files, for filters on subjects, organisms and contexts; ``matrix`` may be one. The parameter
``chosen_digest`` of a run identifies the subjects that passed, ``contexts_digest`` the library."""
FLAGS: Final = frozenset(flag for row in OPTIONS for flag in row.flags)
SWITCHES: Final = frozenset(flag for row in OPTIONS for flag in row.flags if row.type is bool)
"""How the options are written on a command line, and which of them are followed by no value."""


def offered(command: str) -> tuple[Option, ...]:
    """The options that the table has for a command."""
    return tuple(row for row in OPTIONS if command in row.commands)


def option_of(name: str, command: str | None = None) -> Option:
    """The row of an option, in a command or by its first row; a command need not offer it.

    >>> option_of("top").default, option_of("format", "batch").default
    (100, 'none')
    """
    rows = [row for row in OPTIONS if row.name == name]
    return next((row for row in rows if command in row.commands), rows[0])
