"""How BLAST+, DIAMOND, MMseqs2, SSEARCH and others spell options that swsearch has: one table.

:data:`SPELLINGS` has a row for each option that needs one. It needs none if its name is an option of swsearch, with one
dash or two and with ``_`` or ``-`` between its words, and has the same meaning: ``-evalue``, ``--max_hsps``. The parser
of a command (:mod:`swsearch.cli.command`) knows these names beside its own; ``docs/reference/names.md`` shows them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from swsearch.cli.command import (
    PROGRAMS,
    context_of,
    is_long_name,
    is_refusal,
    one_dash_names,
    replace_names,
    value_behind,
)
from swsearch.cli.command_line import texts, words_of
from swsearch.cli.configuration import in_plain_words
from swsearch.errors import DatabaseError, SwSearchError, UsageError
from swsearch.options import SWITCHES
from swsearch.words import quoted

BLAST: Final = "BLAST+"
DIAMOND: Final = "DIAMOND"
MMSEQS: Final = "MMseqs2"
SSEARCH: Final = "SSEARCH"
OTHERS: Final = "other programs"
ALL_PROGRAMS: Final = (BLAST, DIAMOND, MMSEQS, SSEARCH, OTHERS)

FIRST: Final = "QUERY"
"""Stands for a positional argument before the others: a query file, or the FASTA file of ``swsearch index``."""
LAST: Final = "DB"
"""Stands for the last positional argument: the database."""
_PLACES: Final = {FIRST: "the first argument", LAST: "the last argument"}

Converted = list[tuple[str, str | None]]
"""Options of swsearch with their values; None is the value of an option that takes none."""


class Spelling(NamedTuple):
    """An option of another program.

    Attributes
    ----------
    name : str
        The option as it is written.
    program : str
        The program.
    here : str
        The option of swsearch with the same values, :data:`FIRST` or :data:`LAST`. If ``convert`` is given, a text for
        readers; empty if the name means something else here.
    takes : int
        Number of values, 0 or 1.
    convert : callable, optional
        Function of the value that returns options of swsearch; a UsageError for one that has none says what to do.
    takes_fields : bool
        Whether names of fields may follow the value as separate words.
    names_databases : bool
        Whether the value may name several databases, separated by blanks (:func:`databases_of`).
    """

    name: str
    program: str
    here: str
    takes: int = 1
    convert: Callable[[str], Converted] | None = None
    takes_fields: bool = False
    names_databases: bool = False

    @property
    def is_short(self) -> bool:
        """Whether it is one letter, which only a command line of its program may have: swsearch has other ones."""
        return len(self.name) == 2

    @property
    def names(self) -> list[str]:
        """Its names; an option of BLAST+ may also be written with two dashes, as those of swsearch."""
        return [self.name, f"-{self.name}"] if self.program == BLAST else [self.name]

    @property
    def meaning(self) -> str:
        """What it means here, for readers."""
        return _PLACES.get(self.here, self.here)

    def own(self, value: str | None) -> Converted:
        """The options of swsearch that mean the same."""
        if self.convert is not None:
            return self.convert(value or "")
        return [(self.here, value)]

    def described(self, value: str | None) -> str:
        """What it is here with this value, as the end of a sentence about it."""
        if self.convert is None or (self.takes and value is None and self.here):
            return f"is {self.meaning}"
        try:
            return f"is {shlex.join(word for pair in self.own(value) for word in pair if word)}"
        except UsageError as advice:
            return f"has no counterpart; {advice}"


def databases_of(value: str) -> list[str]:
    """The databases that a value of BLAST's ``-db`` names; a name with a blank is in quotes, or that of a file.

    >>> databases_of("swissprot trembl"), databases_of('"my proteins" swissprot'), databases_of("it's")
    (['swissprot', 'trembl'], ['my proteins', 'swissprot'], ["it's"])
    """
    if os.path.exists(value):
        return [value]
    try:
        return shlex.split(value) or [value]
    except ValueError:
        return [value]


# --- values ---

_BLAST_FORMATS: Final = {
    "0": "pairwise", "5": "xml", "6": "blast6", "7": "blast7", "10": "csv", "15": "json2", "16": "xml2", "17": "sam",
    "101": "sam", "102": "lca", "tab": "blast6",
}  # fmt: skip
"""Names of the numbers of ``-outfmt``; 101, 102 and ``tab`` are DIAMOND's."""
_MMSEQS_FORMATS: Final = {"0": "blast6", "1": "sam", "3": "html", "4": "tsv"}
_SSEARCH_FORMATS: Final = {"0": "pairwise", "8": "blast6", "8C": "blast7", "9": "blast7", "B": "pairwise", "7": "xml"}
"""Names of the numbers of ``-m``, also of ``blastall``."""
_MMSEQS_FIELDS: Final = {
    "query": "qseqid", "target": "sseqid", "evalue": "evalue", "gapopen": "gapopen", "pident": "pident",
    "nident": "nident", "qstart": "qstart", "qend": "qend", "qlen": "qlen", "tstart": "sstart", "tend": "send",
    "tlen": "slen", "alnlen": "length", "raw": "score", "bits": "bitscore", "cigar": "cigar", "qseq": "full_qseq",
    "tseq": "full_sseq", "theader": "stitle", "qaln": "qseq", "taln": "sseq", "mismatch": "mismatch",
    "qframe": "qframe", "tframe": "sframe", "taxid": "staxid", "taxname": "ssciname",
}  # fmt: skip
_SSEARCH_MATRICES: Final = {
    "BL50": "BLOSUM50", "BL62": "BLOSUM62", "BP62": "BLOSUM62", "BL80": "BLOSUM80", "P250": "PAM250",
}  # fmt: skip
_YES: Final = ("yes", "true", "t", "1")
_NO: Final = ("no", "false", "f", "0")


def _one_of(option: str, values: Mapping[str, str], advice: str = "") -> Callable[[str], Converted]:
    """A value of another program for one of an option; other values have none, and this advice."""

    def convert(value: str) -> Converted:
        if value not in values:
            raise UsageError(advice or f"say {option} {' or '.join(dict.fromkeys(values.values()))}")
        return [(option, values[value])]

    return convert


def _format_of(names: Mapping[str, str]) -> Callable[[str], Converted]:
    """The format by its name elsewhere."""
    return _one_of("--format", names, "`swsearch query --help` lists the formats under --format")


def _outfmt(value: str) -> Converted:
    """``6 std qlen`` of BLAST and DIAMOND."""
    number, *fields = value.replace(",", " ").split() or [""]
    found = _format_of(_BLAST_FORMATS)(number)
    return [*found, ("--fields", " ".join(fields))] if fields else found


def _format_output(value: str) -> Converted:
    """``query,target,evalue`` of MMseqs2."""
    names = value.split(",")
    unknown = [name for name in names if name not in _MMSEQS_FIELDS]
    if unknown:
        raise UsageError(f"{unknown[0]} is not among the fields; --fields has BLAST's names, such as pident and qcovs")
    return [("--format", "blast6"), ("--fields", " ".join(_MMSEQS_FIELDS[name] for name in names))]


def _percent(*options: str) -> Callable[[str], Converted]:
    """A fraction as a percentage of these options."""

    def convert(value: str) -> Converted:
        try:
            percentage = f"{100 * float(value):.6g}"
        except ValueError:
            raise UsageError(f"say {options[0]} PERCENT") from None
        return [(option, percentage) for option in options]

    return convert


def _composition(value: str) -> Converted:
    """The number of BLAST and DIAMOND for composition-based statistics."""
    return [("--composition", "none" if value.lower() in _NO else "adjust")]


def _alternatives(value: str) -> Converted:
    """Further alignments of a subject, as the number of all."""
    if not value.isdecimal():
        raise UsageError("say --max-hsps N, the number of all alignments of a subject")
    return [("--max-hsps", str(int(value) + 1))]


def _negated(option: str) -> Callable[[str], Converted]:
    """A penalty, which SSEARCH writes with a minus, as a cost."""
    return lambda value: [(option, value.removeprefix("-"))]


def _match_mismatch(value: str) -> Converted:
    """``+5/-4`` of SSEARCH."""
    match, _, mismatch = value.partition("/")
    return [("--match", match.removeprefix("+")), ("--mismatch", mismatch)]


def _matrix(value: str) -> Converted:
    return [("--matrix", _SSEARCH_MATRICES.get(value.upper(), value))]


# --- rows of some kinds ---


def _switch(name: str, program: str, option: str, if_yes: str, if_no: str) -> Spelling:
    """A yes or no, which is one of two values of an option."""
    values = dict.fromkeys(_YES, if_yes) | dict.fromkeys(_NO, if_no)
    convert = _one_of(option, values, f"say {option} {if_yes} or {option} {if_no}")
    return Spelling(name, program, f"{option} {if_yes} or {if_no}", convert=lambda value: convert(value.lower()))


def _value(name: str, program: str, option: str, value: str) -> Spelling:
    """An option without a value that stands for one value of an option of swsearch."""
    shown = f'"{value}"' if " " in value else value
    return Spelling(name, program, f"{option} {shown}", 0, lambda _: [(option, value)])


def _different(name: str, program: str, advice: str, takes: int = 1) -> Spelling:
    """An option that has the name of one of swsearch and another meaning."""
    return Spelling(name, program, "", takes, _one_of("", {}, advice))


_GAPS: Final = "11 and 1 of MMseqs2 are --gap-open 10 --gap-extend 1"
_EXHAUSTIVE: Final = "every search is exhaustive; leave it out (for remote relatives of proteins, say --sensitive)"
SPELLINGS: Final[tuple[Spelling, ...]] = (
    # --- BLAST+ ---
    Spelling("-query", BLAST, FIRST),
    Spelling("-in", BLAST, FIRST),
    Spelling("-db", BLAST, LAST, names_databases=True),
    Spelling("-subject", BLAST, LAST),
    Spelling("-num_threads", BLAST, "--threads"),
    Spelling("-logfile", BLAST, "--log"),
    Spelling("-max_target_seqs", BLAST, "--top"),
    Spelling("-num_alignments", BLAST, "--top"),
    Spelling("-outfmt", BLAST, "--format and --fields", convert=_outfmt, takes_fields=True),
    _value("-html", BLAST, "--format", "html"),
    Spelling("-gapopen", BLAST, "--gap-open"),
    Spelling("-gapextend", BLAST, "--gap-extend"),
    Spelling("-reward", BLAST, "--match"),
    Spelling("-penalty", BLAST, "--mismatch"),
    Spelling("-perc_identity", BLAST, "--min-identity"),
    Spelling("-qcov_hsp_perc", BLAST, "--min-query-coverage"),
    Spelling("-seqidlist", BLAST, "--include"),
    Spelling("-negative_seqidlist", BLAST, "--exclude"),
    Spelling("-taxids", BLAST, "--taxid"),
    Spelling("-query_gencode", BLAST, "--genetic-code"),
    Spelling("-db_gencode", BLAST, "--genetic-code"),
    Spelling("-comp_based_stats", BLAST, "--composition adjust or none", convert=_composition),
    _switch("-seg", BLAST, "--mask", "seg", "none"),
    _switch("-dust", BLAST, "--mask", "dust", "none"),
    _value("-lcase_masking", BLAST, "--mask", "lower"),
    _switch("-soft_masking", BLAST, "--mask-mode", "soft", "hard"),
    Spelling("-num_iterations", BLAST, "--iterations"),
    Spelling("-inclusion_ethresh", BLAST, "--inclusion-evalue"),
    Spelling("-out_pssm", BLAST, "--save-pssm"),
    Spelling(
        "-dbtype", BLAST, "--alphabet protein or dna",
        convert=_one_of("--alphabet", {"prot": "protein", "nucl": "dna"}),
    ),
    _different("-word_size", BLAST, _EXHAUSTIVE),
    # --- DIAMOND ---
    Spelling("--query", DIAMOND, FIRST),
    Spelling("-q", DIAMOND, FIRST),
    Spelling("--in", DIAMOND, FIRST),
    Spelling("--db", DIAMOND, LAST),
    Spelling("-d", DIAMOND, LAST),
    Spelling("--max-target-seqs", DIAMOND, "--top"),
    Spelling("--outfmt", DIAMOND, "--format and --fields", convert=_outfmt, takes_fields=True),
    Spelling("-f", DIAMOND, "--format and --fields", convert=_outfmt, takes_fields=True),
    Spelling("--id", DIAMOND, "--min-identity"),
    Spelling("--query-cover", DIAMOND, "--min-query-coverage"),
    Spelling("--subject-cover", DIAMOND, "--min-subject-coverage"),
    Spelling("--min-score", DIAMOND, "--min-bits"),
    Spelling("--gapopen", DIAMOND, "--gap-open"),
    Spelling("--gapextend", DIAMOND, "--gap-extend"),
    Spelling("--query-gencode", DIAMOND, "--genetic-code"),
    Spelling("--comp-based-stats", DIAMOND, "--composition adjust or none", convert=_composition),
    Spelling(
        "--masking", DIAMOND, "--mask",
        convert=_one_of("--mask", {"0": "none", "none": "none", "1": "tantan", "tantan": "tantan", "seg": "seg"}),
    ),
    Spelling("--al", DIAMOND, "--aligned-queries"),
    Spelling("--un", DIAMOND, "--unaligned"),
    Spelling("--taxonlist", DIAMOND, "--taxid"),
    Spelling("--taxonmap", DIAMOND, "--taxid-map"),
    Spelling("--taxonnodes", DIAMOND, "--taxonomy"),
    _value("--include-lineage", DIAMOND, "--fields", "qseqid lca evalue lcalineage"),
    _different("--top", DIAMOND, "say --top N, or --lca-top PERCENT for taxa"),
    _different("--log", DIAMOND, "say --log FILE", takes=0),
    *(
        _different(name, DIAMOND, _EXHAUSTIVE, takes=0)
        for name in ("--fast", "--mid-sensitive", "--sensitive", "--more-sensitive", "--very-sensitive",
                     "--ultra-sensitive")
    ),
    # --- MMseqs2 ---
    Spelling("--max-seqs", MMSEQS, "--top"),
    Spelling("--min-seq-id", MMSEQS, "--min-identity, in percent", convert=_percent("--min-identity")),
    Spelling(
        "-c", MMSEQS, "--min-query-coverage and --min-subject-coverage, in percent",
        convert=_percent("--min-query-coverage", "--min-subject-coverage"),
    ),
    Spelling("--min-aln-len", MMSEQS, "--min-alignment-length"),
    Spelling("--num-iterations", MMSEQS, "--iterations"),
    Spelling("--e-profile", MMSEQS, "--inclusion-evalue"),
    Spelling("--format-output", MMSEQS, "--format blast6 --fields, by BLAST's names", convert=_format_output),
    Spelling("--format-mode", MMSEQS, "--format", convert=_format_of(_MMSEQS_FORMATS)),
    Spelling("--translation-table", MMSEQS, "--genetic-code"),
    Spelling("--alt-ali", MMSEQS, "--max-hsps, one more", convert=_alternatives),
    _switch("--comp-bias-corr", MMSEQS, "--composition", "bias", "none"),
    _switch("--mask", MMSEQS, "--mask", "tantan", "none"),
    Spelling("--sub-mat", MMSEQS, "--matrix"),
    _switch("--gpu", MMSEQS, "--engine", "cuda", "cpu"),
    Spelling("--taxon-list", MMSEQS, "--taxid"),
    Spelling(
        "--strand", MMSEQS, "--strand", convert=_one_of("--strand", {"0": "minus", "1": "plus", "2": "both"})
    ),
    _different("--gap-open", MMSEQS, _GAPS),
    _different("--gap-extend", MMSEQS, _GAPS),
    _different("-k", MMSEQS, "every search is exhaustive; leave it out"),
    _different("-s", MMSEQS, _EXHAUSTIVE),
    # --- SSEARCH ---
    Spelling("-E", SSEARCH, "--evalue"),
    Spelling("-T", SSEARCH, "--threads"),
    Spelling("-O", SSEARCH, "--out"),
    Spelling("-b", SSEARCH, "--top"),
    Spelling("-d", SSEARCH, "--top"),
    Spelling("-m", SSEARCH, "--format", convert=_format_of(_SSEARCH_FORMATS)),
    Spelling("-s", SSEARCH, "--matrix", convert=_matrix),
    Spelling("-f", SSEARCH, "--gap-open", convert=_negated("--gap-open")),
    Spelling("-g", SSEARCH, "--gap-extend", convert=_negated("--gap-extend")),
    Spelling("-r", SSEARCH, "--match and --mismatch", convert=_match_mismatch),
    _value("-S", SSEARCH, "--mask", "lower"),
    _value("-3", SSEARCH, "--strand", "plus"),
    _value("-i", SSEARCH, "--strand", "minus"),
    _value("-n", SSEARCH, "--alphabet", "dna"),
    _value("-p", SSEARCH, "--alphabet", "protein"),
    _different("-k", SSEARCH, "nothing is shuffled; leave it out"),
    # --- other programs ---
    Spelling("--output", OTHERS, "--out"),
    Spelling("--cpu", OTHERS, "--threads"),
    Spelling("-j", OTHERS, "--threads"),
    _different("--pident", OTHERS, "say --min-identity PERCENT; --fields pident is its column"),
)  # fmt: skip
"""All spellings, those of one program together."""


_PROGRAMS_OF_SUITES: Final = ("diamond", "mmseqs", "blast")
"""Words that may stand before the others: ``swsearch diamond blastp``."""


@dataclass(frozen=True)
class ProgramWord:
    """A word that another program uses.

    Attributes
    ----------
    programs : tuple of str
        The programs whose options may follow; empty if those of swsearch follow.
    command : str
        The command of swsearch.
    options : dict of str to str
        Options that it needs to do the same.
    places : tuple of str
        What the positional arguments are: ``query``, ``queries`` (all but those that follow), ``db``, ``out``, ``m8``
        (an output in the format blast6), ``clusters`` (the beginning of the names of two outputs), and ``unused``. By
        default, as in swsearch.
    subjects : str
        The alphabet of the databases that the program searches with queries of the same alphabet; empty if it searches
        both.
    """

    programs: tuple[str, ...]
    command: str = "query"
    options: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    subjects: str = ""


_MMSEQS_PLACES: Final = ("query", "db", "m8", "unused")
_CLUSTERS: Final = ProgramWord((MMSEQS,), "cluster", places=("query", "clusters", "unused"))

PROGRAM_WORDS: Final[dict[str, ProgramWord]] = {
    "search": ProgramWord((MMSEQS,), places=_MMSEQS_PLACES),
    "easy-search": ProgramWord((MMSEQS,), places=_MMSEQS_PLACES),
    "easy-rbh": ProgramWord((MMSEQS,), "rbh", places=_MMSEQS_PLACES),
    "easy-cluster": _CLUSTERS,
    "easy-linclust": _CLUSTERS,
    "createdb": ProgramWord((MMSEQS,), "index", places=("queries", "out")),
    "blastp": ProgramWord((BLAST, DIAMOND), subjects="protein"),
    "blastn": ProgramWord((BLAST,), subjects="dna"),
    "megablast": ProgramWord((BLAST,), subjects="dna"),
    "psiblast": ProgramWord((BLAST,), subjects="protein"),
    "blastx": ProgramWord((BLAST, DIAMOND), options={"translate": "query"}),
    "tblastn": ProgramWord((BLAST,), options={"translate": "subject"}),
    "tblastx": ProgramWord((BLAST,), options={"translate": "both"}),
    "makeblastdb": ProgramWord((BLAST,), "index"),
    "makedb": ProgramWord((DIAMOND,), "index"),
    "ssearch36": ProgramWord((SSEARCH,)),
    "ssearch": ProgramWord((SSEARCH,)),
    "fasta36": ProgramWord((SSEARCH,)),
}
"""Words whose arguments are put into the words of swsearch."""

_MISSING: Final = {"query": ["QUERY…", "DB"], "index": ["FASTA…"], "rbh": ["A", "B"], "cluster": ["DB"]}
_NAMES: Final = {here: {row.name for row in SPELLINGS if row.here == here} for here in (FIRST, LAST)}
_INDEX: Final = "swsearch index FASTA… --out DB"
_QUERY: Final = "swsearch query QUERY… DB"
LINES: Final[dict[str, str]] = {
    "blastall": _QUERY,
    "formatdb": _INDEX,
    "blastdbcmd": "swsearch db fetch DB IDENTIFIER…; swsearch db export DB; swsearch db info DB",
    "blastdbcheck": "swsearch db verify DB",
    "dbinfo": "swsearch db info DB",
    "getseq": "swsearch db export DB",
    "hmmscan": "swsearch domains PROTEINS MODELS…",
    "hmmsearch": "swsearch query MODELS… DB --sensitive, or swsearch domains DB MODELS…",
    "phmmer": "swsearch query QUERY… DB --sensitive",
    "jackhmmer": "swsearch query QUERY… DB --sensitive --iterations 5",
    "convertalis": "swsearch report latest --format blast6",
    "view": "swsearch report latest --format blast6",
    "info": "swsearch db info DB",
    "fetch": "swsearch db fetch DB IDENTIFIER…",
    "list": "swsearch runs list",
    "show": "swsearch runs show latest",
    "help": "swsearch --help",
    "-help": "swsearch --help",
    "version": "swsearch --version",
    "-version": "swsearch --version",
    "-V": "swsearch --version",
    "-v": "swsearch --version",
}
"""Words that are answered without their arguments."""


def answer(arguments: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """The message for arguments that begin with no command of swsearch; None if nothing is known about them.

    Parameters
    ----------
    arguments : sequence of str
        The command line, without ``swsearch``.
    commands : mapping of str to command of Typer
        The commands of swsearch.

    Returns
    -------
    str or None
        The line that does what is meant.
    """
    word = arguments[0]
    of = ""
    if word in _PROGRAMS_OF_SUITES:
        if len(arguments) == 1 or arguments[1] not in {*PROGRAM_WORDS, *LINES}:
            return f"{word} is another program; here it is: {_INDEX}, then {_QUERY}"
        of = f"{word} "
        arguments = arguments[1:]
        word = arguments[0]
    if word in LINES:
        return f"{of}{word} is not a command of swsearch; here it is: {LINES[word]}"
    if word not in PROGRAM_WORDS:
        return None
    meant = PROGRAM_WORDS[word]
    if of == "diamond ":
        meant = replace(meant, programs=(DIAMOND,))
    source = f"a command of {' and '.join(meant.programs)}" if meant.programs else "no command of swsearch"
    return f"{of}{word} is {source}; here it is: {_line(arguments[1:], meant, commands[meant.command])}"


def _line(arguments: Sequence[str], meant: ProgramWord, command: Any) -> str:
    """The line of swsearch; options without a counterpart are left out of it, and named behind it with the reason."""
    context = context_of(command, meant.command)
    context.meta[PROGRAMS] = meant.programs or None
    missing = _MISSING[meant.command]
    opts, rest, problems = _parsed(arguments, context)
    has_only_last = not opts.keys() & _NAMES[FIRST] and bool(opts.keys() & _NAMES[LAST])
    replace_names(context, opts, problems)
    if opts.get("help"):
        return f"swsearch {meant.command} --help"
    names = [one.name for one in command.params if one.param_type_name == "argument"]
    words = _placed([word for name in names for word in texts(opts.pop(name, None))] + rest, opts, meant.places)
    if "db" in opts:
        missing = missing[:1]
    if len(words) < len(missing):  # the names of the arguments stand for those that are not given
        words = [*missing[:1], *words] if words and has_only_last else [*words, *missing[len(words) :]]
    if meant.command == "index":
        opts.setdefault("out", "DB")
    elif meant.command == "query" and not {"translate", "server"} & {*meant.options, *opts}:
        *queries, database = [*words, *texts(opts.get("db"))]
        if (side := _translated_side(queries, database, meant.subjects)) is not None:
            opts["translate"] = side
            queries_are = "the queries are DNA, the database is protein"
            problems.append(queries_are if side == "query" else "the queries are proteins, the database is DNA")
    line = words_of(meant.command, command.params, {names[0]: words, **meant.options, **opts})
    shown = " ".join(word if word in (*missing, "DB") else shlex.quote(word) for word in line)
    return f"{shown} ({'; '.join(problems)})" if problems else shown


def _translated_side(queries: Sequence[str], database: str, usual: str) -> str | None:
    """The side to translate if queries and database have different alphabets (``usual`` if it cannot be opened)."""
    from swsearch.database.opening import load_catalogue
    from swsearch.search.queries import QueryFiles, offered_translation
    from swsearch.sequences.alphabet import ALPHABETS, DNA, PROTEIN

    if not all(map(os.path.isfile, queries)):  # a pipe can be read once
        return None
    try:
        files = QueryFiles.of(queries, "auto")
        if os.path.isfile(database):
            sequences = QueryFiles.of([database], "fasta")
            holds = DNA if offered_translation(sequences, PROTEIN) else PROTEIN
        else:
            with suppress(DatabaseError):
                usual = load_catalogue(Path(database)).alphabet
            if not usual:
                return None
            holds = ALPHABETS[usual]
        return offered_translation(files, holds)
    except (SwSearchError, OSError):  # the search itself reports what is wrong with its files
        return None


def _parsed(arguments: Sequence[str], context: Any) -> tuple[dict[str, Any], list[str], list[str]]:
    """What the parser finds in the words that it knows, the arguments that are left, and a refusal of each other word.

    The word behind an unknown option is its value unless it is an option, or a file where files have no options.
    """
    programs = context.meta[PROGRAMS] or ()
    have_only_options = BLAST in programs or DIAMOND in programs
    words = list(arguments)
    if have_only_options:  # an unknown name is not a short option with its value, as -f oo for -foo
        known = one_dash_names(context)
        words = [f"-{word}" if is_long_name(word) and word not in known else word for word in words]
    shown = list(arguments)
    problems: list[str] = []
    while True:
        left = list(words)
        try:
            opts, rest, _ = context.command.make_parser(context).parse_args(left)
            return opts, rest, problems
        except Exception as error:
            if not is_refusal(error):
                raise
            at = len(words) - len(left) - 1  # the parser takes the words from the list
            if hasattr(error, "possibilities"):  # an unknown option
                value = value_behind(words, at)
                has_value = value is not None and (have_only_options or not os.path.exists(value))
                n_words = 2 if has_value else 1
                problems.append(f"no such option: {shlex.join(shown[at : at + n_words])}")
            else:
                n_words = 1
                problem = in_plain_words(str(getattr(error, "message", error))).rstrip(".")
                problems.append(f"{problem[:1].lower()}{problem[1:]}")
            del words[at : at + n_words], shown[at : at + n_words]


def _placed(words: list[str], opts: dict[str, Any], places: Sequence[str]) -> list[str]:
    """The positional arguments of another program where swsearch has them; an output becomes an option."""
    if not places:
        return words
    n_first = max(len(words) - len(places) + 1, min(len(words), 1)) if places[0] == "queries" else 1
    placed, rest = words[:n_first], words[n_first:]
    for word, place in zip(rest, [*places[1:], *["unused"] * len(rest)], strict=False):
        if place == "db":
            placed.append(word)
        elif place == "clusters":
            opts |= {"out": f"{word}_cluster.tsv", "representatives": f"{word}_rep_seq.fasta"}
        elif place in ("out", "m8"):
            opts["out"] = word
            if place == "m8":
                opts.setdefault("format", "blast6")
    return placed


def refuse_other_words(arguments: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Refuse a command line that begins with another program's word, an option of a search, or a file.

    A word that is similar to one of another program is taken for it.

    Raises
    ------
    UsageError
        The message is the line of swsearch that does what is meant.
    """
    if not arguments:
        return
    if (message := answer(arguments, commands)) is not None:
        raise UsageError(message)
    word = arguments[0]
    known = [name for name in (*commands, *PROGRAM_WORDS, *LINES) if not name.startswith("-")]
    similar = get_close_matches(word, known, n=1)
    # Typer itself suggests commands of swsearch.
    if similar and similar[0] not in commands and not word.startswith("-") and not os.path.exists(word):
        meant = answer([similar[0], *arguments[1:]], commands)
        raise UsageError(f"there is no command {quoted(word)}; {meant}")
    for place, (before, one) in enumerate(pairwise(arguments), 1):
        if word[:1] == "-" and one in commands and (before in SWITCHES or before[:1] != "-"):  # as --top 5 query Q D
            own = ["swsearch", *arguments[place:], *arguments[:place]]
            raise UsageError(f"options follow the command: {shlex.join(own)}")
    if word.startswith("-") or os.path.exists(word):  # as ``swsearch -query Q -db D`` and ``swsearch Q D``
        line = _line(arguments, ProgramWord(()), commands["query"])
        raise UsageError(f"the command is missing; here it is: {line}")
