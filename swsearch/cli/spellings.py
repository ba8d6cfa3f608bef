"""How BLAST+, DIAMOND, MMseqs2, SSEARCH and others spell their options, and what swsearch calls the same: one table.

:data:`SPELLINGS` has a row for each option that needs one. It needs none if its name is an option of swsearch, with one
dash or two and with ``_`` or ``-`` between its words, and has the same meaning: ``-evalue``, ``--max_hsps``.
:mod:`swsearch.cli.wording` uses the table, and ``docs/reference/names.md`` shows it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

BLAST: Final = "BLAST+"
DIAMOND: Final = "DIAMOND"
MMSEQS: Final = "MMseqs2"
SSEARCH: Final = "SSEARCH"
OTHERS: Final = "other programs"

FIRST: Final = "QUERY"
"""Stands for a positional argument before the others: a query file, or the FASTA file of ``swsearch index``."""
LAST: Final = "DB"
"""Stands for the last positional argument: the database."""

LEAVE_OUT: Final = "leave it out"
_PLACES: Final = {FIRST: "the first argument", LAST: "the last argument"}

Converted = list[tuple[str, str | None]]
"""Options of swsearch with their values; None is the value of an option that takes none."""


class NoCounterpart(ValueError):
    """A value that has none here; the message says what to do."""


@dataclass(frozen=True)
class Spelling:
    """An option of another program.

    Attributes
    ----------
    name : str
        The option as it is written.
    program : str
        The program.
    here : str
        The option of swsearch with the same values, :data:`FIRST` or :data:`LAST`. If ``convert`` is given, a text for
        readers. Empty if swsearch has no such option.
    takes : int
        Number of values, 0 or 1.
    convert : callable, optional
        Function of the value that returns options of swsearch.
    names_databases : bool
        Whether the value may name several databases, separated by blanks (:func:`databases_of`).
    takes_fields : bool
        Whether names of fields may follow the value as separate words.
    reason : str
        Why swsearch has no such option.
    instead : str
        What to do then.
    """

    name: str
    program: str
    here: str = ""
    takes: int = 1
    convert: Callable[[str], Converted] | None = None
    takes_fields: bool = False
    names_databases: bool = False
    reason: str = ""
    instead: str = LEAVE_OUT

    def own(self, value: str | None) -> Converted:
        """The options of swsearch that mean the same."""
        if self.convert is not None:
            return self.convert(value or "")
        return [(self.here, value)]

    @property
    def meaning(self) -> str:
        """What it means here, for readers."""
        return self.reason or _PLACES.get(self.here, self.here)


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


def _named(names: dict[str, str], value: str) -> str:
    """The format that has this number."""
    if value not in names:
        raise NoCounterpart("`swsearch query --help` lists the formats under --format")
    return names[value]


def _outfmt(value: str) -> Converted:
    """``6 std qlen`` of BLAST and DIAMOND."""
    number, *fields = value.replace(",", " ").split() or [""]
    found: Converted = [("--format", _named(_BLAST_FORMATS, number))]
    return [*found, ("--fields", " ".join(fields))] if fields else found


def _format_output(value: str) -> Converted:
    """``query,target,evalue`` of MMseqs2."""
    names = value.split(",")
    unknown = [name for name in names if name not in _MMSEQS_FIELDS]
    if unknown:
        raise NoCounterpart(
            f"{unknown[0]} is not among the fields; --fields has BLAST's names, such as pident and qcovs"
        )
    return [("--format", "blast6"), ("--fields", " ".join(_MMSEQS_FIELDS[name] for name in names))]


def _format_mode(value: str) -> Converted:
    return [("--format", _named(_MMSEQS_FORMATS, value))]


def _m(value: str) -> Converted:
    return [("--format", _named(_SSEARCH_FORMATS, value))]


def _percent(*options: str) -> Callable[[str], Converted]:
    """A fraction as a percentage of these options."""

    def convert(value: str) -> Converted:
        try:
            percentage = f"{100 * float(value):.6g}"
        except ValueError:
            raise NoCounterpart(f"say {options[0]} PERCENT") from None
        return [(option, percentage) for option in options]

    return convert


def _switch(option: str, if_yes: str, if_no: str) -> Callable[[str], Converted]:
    """A yes or no as one of two values of an option."""

    def convert(value: str) -> Converted:
        if value.lower() not in (*_YES, *_NO):
            raise NoCounterpart(f"say {option} {if_yes} or {option} {if_no}")
        return [(option, if_yes if value.lower() in _YES else if_no)]

    return convert


def _composition(value: str) -> Converted:
    """The number of BLAST and DIAMOND for composition-based statistics."""
    return [("--composition", "none" if value.lower() in _NO else "adjust")]


def _alternatives(value: str) -> Converted:
    """Further alignments of a subject, as the number of all."""
    if not value.isdecimal():
        raise NoCounterpart("say --max-hsps N, the number of all alignments of a subject")
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


def _fixed(option: str, value: str | None = None) -> Callable[[str], Converted]:
    """An option that stands for one value of an option of swsearch."""
    return lambda _: [(option, value)]


def _one_of(option: str, values: dict[str, str]) -> Callable[[str], Converted]:
    """A number for one of the values of an option."""

    def convert(value: str) -> Converted:
        if value not in values:
            raise NoCounterpart(f"say {option} {' or '.join(dict.fromkeys(values.values()))}")
        return [(option, values[value])]

    return convert


# --- reasons ---

_EXHAUSTIVE: Final = "every search is exhaustive"
_BOUNDED: Final = "the memory that a search needs has a limit"
_COMPLETE: Final = "identifiers are always kept as they are"


def _none(program: str, names: str, takes: int, reason: str, instead: str = LEAVE_OUT) -> tuple[Spelling, ...]:
    """Options without a counterpart."""
    return tuple(Spelling(name, program, takes=takes, reason=reason, instead=instead) for name in names.split())


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
    Spelling("-html", BLAST, "--format html", 0, _fixed("--format", "html")),
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
    Spelling("-seg", BLAST, "--mask seg or none", convert=_switch("--mask", "seg", "none")),
    Spelling("-dust", BLAST, "--mask dust or none", convert=_switch("--mask", "dust", "none")),
    Spelling("-lcase_masking", BLAST, "--mask lower", 0, _fixed("--mask", "lower")),
    Spelling("-soft_masking", BLAST, "--mask-mode soft or hard", convert=_switch("--mask-mode", "soft", "hard")),
    Spelling("-num_iterations", BLAST, "--iterations"),
    Spelling("-inclusion_ethresh", BLAST, "--inclusion-evalue"),
    Spelling("-out_pssm", BLAST, "--save-pssm"),
    Spelling(
        "-dbtype", BLAST, "--alphabet protein or dna",
        convert=_one_of("--alphabet", {"prot": "protein", "nucl": "dna"}),
    ),
    *_none(
        BLAST, "-task -word_size -threshold -window_size -xdrop_ungap -xdrop_gap -xdrop_gap_final", 1, _EXHAUSTIVE
    ),
    *_none(BLAST, "-ungapped -no_greedy -use_sw_tback", 0, _EXHAUSTIVE),
    *_none(BLAST, "-culling_limit -best_hit_overhang -best_hit_score_edge", 1, "no hit is hidden by another"),
    *_none(BLAST, "-subject_besthit", 0, "no hit is hidden by another"),
    *_none(BLAST, "-num_descriptions", 1, "the table has a line for each hit", "say --top N"),
    *_none(BLAST, "-searchsp", 1, "the search space follows from the database", "say --dbsize N, its residues"),
    *_none(BLAST, "-query_loc -subject_loc", 1, "sequences are searched as a whole",
           "`swsearch db fetch DB IDENTIFIER --range FROM-TO` writes a part of one"),
    *_none(BLAST, "-mt_mode", 1, "the program chooses how threads share the work"),
    *_none(BLAST, "-remote", 0, "searches are not sent to NCBI", "for a `swsearch serve`, say --server URL"),
    *_none(BLAST, "-parse_seqids -hash_index -parse_deflines", 0, _COMPLETE),
    *_none(BLAST, "-title", 1, "a database has the name of its folder"),
    *_none(BLAST, "-show_gis", 0, _COMPLETE),
    *_none(BLAST, "-line_length", 1, "the lines of pairwise alignments have 60 columns"),
    *_none(BLAST, "-sorthits -sorthsps", 1, "hits are in the order of their E-values"),
    *_none(BLAST, "-gilist -ipglist", 1, "subjects are known by identifier", "say --include FILE"),
    *_none(BLAST, "-negative_gilist -negative_ipglist", 1, "subjects are known by identifier", "say --exclude FILE"),
    *_none(BLAST, "-taxidlist", 1, "taxonomy ids are given on the command line", "say --taxid ID,ID"),
    *_none(BLAST, "-negative_taxids -negative_taxidlist", 1, "taxonomy ids choose subjects", "say --exclude FILE"),
    *_none(BLAST, "-entrez_query", 1, "no search asks Entrez", "say --taxid ID or --id-pattern REGEX"),
    *_none(BLAST, "-db_soft_mask -db_hard_mask", 1, "subjects are not masked"),
    *_none(
        BLAST, "-import_search_strategy -export_search_strategy", 1, "a stored run keeps its options",
        "`swsearch runs show` prints them",
    ),
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
    Spelling(
        "--include-lineage", DIAMOND, '--fields "qseqid lca evalue lcalineage"', 0,
        _fixed("--fields", "qseqid lca evalue lcalineage"),
    ),
    *_none(
        DIAMOND,
        "--faster --fast --mid-sensitive --sensitive --more-sensitive --very-sensitive --ultra-sensitive --iterate "
        "--swipe --long-reads",
        0, _EXHAUSTIVE,
    ),
    *_none(DIAMOND, "--block-size -b --index-chunks -c --tmpdir -t", 1, _BOUNDED),
    *_none(DIAMOND, "--top", 1, "--top is a number of subjects, not a percentage of the best score",
           "say --top N, or --lca-top PERCENT for --format lca"),
    *_none(DIAMOND, "--compress", 1, "the name of the file decides", "end it with .gz or .zst"),
    *_none(DIAMOND, "--header", 0, "titles belong to the format", "say --format tsv or --format blast7"),
    *_none(DIAMOND, "--frameshift -F", 1, "an alignment stays in one frame"),
    *_none(DIAMOND, "--verbose", 0, "messages are printed unless --quiet is given"),
    *_none(DIAMOND, "--log", 0, "the log of a command is a file", "say --log FILE"),
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
    Spelling("--format-mode", MMSEQS, "--format", convert=_format_mode),
    Spelling("--translation-table", MMSEQS, "--genetic-code"),
    Spelling("--alt-ali", MMSEQS, "--max-hsps, one more", convert=_alternatives),
    Spelling(
        "--comp-bias-corr", MMSEQS, "--composition bias or none", convert=_switch("--composition", "bias", "none")
    ),
    Spelling("--mask", MMSEQS, "--mask tantan or none", convert=_switch("--mask", "tantan", "none")),
    Spelling("--sub-mat", MMSEQS, "--matrix"),
    Spelling("--gpu", MMSEQS, "--engine cuda or cpu", convert=_switch("--engine", "cuda", "cpu")),
    Spelling("--taxon-list", MMSEQS, "--taxid"),
    Spelling(
        "--strand", MMSEQS, "--strand", convert=_one_of("--strand", {"0": "minus", "1": "plus", "2": "both"})
    ),
    *_none(MMSEQS, "-s -k --k-score --spaced-kmer-pattern --max-rejected --max-accept", 1, _EXHAUSTIVE),
    *_none(MMSEQS, "--exhaustive-search --prefilter-mode --alignment-mode", 1, _EXHAUSTIVE),
    *_none(MMSEQS, "--split --split-memory-limit --db-load-mode --disk-space-limit", 1, _BOUNDED),
    *_none(MMSEQS, "--cov-mode", 1, "-c stands for both sides",
           "say --min-query-coverage PERCENT or --min-subject-coverage PERCENT in place of -c"),
    *_none(MMSEQS, "--gap-open --gap-extend", 1, "a gap of k residues costs open + k * extend here",
           "11 and 1 of MMseqs2 are --gap-open 10 --gap-extend 1"),
    *_none(MMSEQS, "-a", 0, "every reported hit has its alignment"),
    *_none(MMSEQS, "-v", 1, "messages are printed unless --quiet is given"),
    *_none(MMSEQS, "--remove-tmp-files --compressed --search-type --dbtype", 1, "nothing here depends on it"),
    # --- SSEARCH ---
    Spelling("-E", SSEARCH, "--evalue"),
    Spelling("-T", SSEARCH, "--threads"),
    Spelling("-O", SSEARCH, "--out"),
    Spelling("-b", SSEARCH, "--top"),
    Spelling("-d", SSEARCH, "--top"),
    Spelling("-m", SSEARCH, "--format", convert=_m),
    Spelling("-s", SSEARCH, "--matrix", convert=_matrix),
    Spelling("-f", SSEARCH, "--gap-open", convert=_negated("--gap-open")),
    Spelling("-g", SSEARCH, "--gap-extend", convert=_negated("--gap-extend")),
    Spelling("-r", SSEARCH, "--match and --mismatch", convert=_match_mismatch),
    Spelling("-S", SSEARCH, "--mask lower", 0, _fixed("--mask", "lower")),
    Spelling("-3", SSEARCH, "--strand plus", 0, _fixed("--strand", "plus")),
    Spelling("-i", SSEARCH, "--strand minus", 0, _fixed("--strand", "minus")),
    Spelling("-n", SSEARCH, "--alphabet dna", 0, _fixed("--alphabet", "dna")),
    Spelling("-p", SSEARCH, "--alphabet protein", 0, _fixed("--alphabet", "protein")),
    *_none(SSEARCH, "-z", 1, "the statistics are known and not fitted"),
    *_none(SSEARCH, "-Z", 1, "the size of a database is its number of residues", "say --dbsize N"),
    *_none(SSEARCH, "-k", 1, "nothing is shuffled"),
    *_none(SSEARCH, "-M", 1, "there is an option for each limit", "say --min-length N and --max-length N"),
    # --- other programs ---
    Spelling("--output", OTHERS, "--out"),
    Spelling("--cpu", OTHERS, "--threads"),
    Spelling("-j", OTHERS, "--threads"),
)  # fmt: skip
"""All spellings, those of one program together."""
