"""Options that several commands share, each defined once; :mod:`swsearch.cli.store_options` has those of stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.models import TyperPath

from swsearch.cli import completion
from swsearch.errors import InputError
from swsearch.file_registry import FileRegistry, registry
from swsearch.search.option_meanings import CHOICE, FILTERS, MEANINGS, ROUNDS, SCORING
from swsearch.words import quoted

if TYPE_CHECKING:
    from swsearch.search.needs import QueryNeeds

INPUT = "Queries and databases"
RUN = "Run"
OUTPUT = "Output"
MACHINE = "Machine"
ROWS = "Rows of a3m, sto and afasta"
SEQUENCES = "Sequences"
ORGANISMS = "Organisms"
GROUPS: Final = (INPUT, SCORING, CHOICE, FILTERS, ROUNDS, OUTPUT, SEQUENCES, ORGANISMS, ROWS, MACHINE, RUN)
"""The groups of options in the help, in this order; those without a group come last."""


SHORT: Final = {"out": "-o", "format": "-f", "evalue": "-e", "top": "-k", "threads": "-p", "quiet": "-q"}
"""The short name of each option that has one, the same in all commands; most are DIAMOND's."""


def names(option: str) -> tuple[str, ...]:
    """The names of an option as they are written, the short one after the long one.

    >>> names("top"), names("max_hsps")
    (('--top', '-k'), ('--max-hsps',))
    """
    long = f"--{option.replace('_', '-')}"
    return (long, SHORT[option]) if option in SHORT else (long,)


class NamedFile(TyperPath):
    """The type of an option or argument that names a file, a store or a database.

    It is told to the registry of the command (:mod:`swsearch.file_registry`) before the command begins. Files that are
    named in another way are told when they are opened.

    Parameters
    ----------
    tell : callable
        Tells the registry the name; takes the registry, the option and the name.
    is_written : bool
        Whether the command writes what is named.
    name : str
        The name of the type, for the help; ``str`` for what may be a URL.
    """

    def __init__(
        self, tell: Callable[[FileRegistry, str, str], None], *, is_written: bool = False, name: str = "path"
    ) -> None:
        super().__init__()
        self.tell = tell
        self.is_written = is_written
        self.name = name

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as it is, if it may be a URL; otherwise, a path."""
        return value if self.name == "str" else super().convert(value, param, ctx)


def _read(registry: FileRegistry, _option: str, name: str) -> None:
    registry.read_named(name)


def _keep(registry: FileRegistry, _option: str, store: str) -> None:
    registry.keep_store(store)


INPUT_PATH: Final = NamedFile(_read)
INPUT_NAME: Final = NamedFile(_read, name="str")
OUTPUT_FILE: Final = NamedFile(FileRegistry.write, is_written=True)
NEW_DATABASE: Final = NamedFile(FileRegistry.write_database, is_written=True)
CREATED_STORE: Final = NamedFile(FileRegistry.write_store, is_written=True, name="str")
KEPT_STORE: Final = NamedFile(_keep, name="str")
_NAME_FILES: Final = ("matrix", "include", "exclude", "taxid_map", "taxonomy")
"""The options of a search whose values name files."""


def tell_files(parameters: Iterable[Any], values: Mapping[str, Any]) -> None:
    """Tell the registry which files a command line names, with the share in place of ``{shard}`` in outputs.

    Results on stdout are told when they begin, because some commands refuse two of them with a better message. Here it
    matters only that stdout may have been redirected to a file.

    Raises
    ------
    InputError
        An output must not be written.
    """
    registry().write("", "-")
    for one in parameters:
        value = values.get(one.name)
        if not isinstance(one.type, NamedFile) or value is None:
            continue
        option = max(one.opts, key=len)
        for name in map(str, value if isinstance(value, (list, tuple)) else [value]):
            if not one.type.is_written:
                one.type.tell(registry(), option, name)
            elif name != "-":
                one.type.tell(registry(), option, _of_share(name, values.get("shard")))


def _of_share(name: str, shard: str | None) -> str:
    """The name of an output with the share of ``--shard`` in place of ``{shard}``, if the command has this option."""
    if shard is None or "{shard}" not in name:
        return name
    from swsearch.hits.shards import asked_shard

    return asked_shard(shard, os.environ).named(name)


def _option(name: str) -> Any:
    """The option of a search with this name, with its meaning from :mod:`swsearch.search.option_meanings`."""
    meaning = MEANINGS[name]
    return typer.Option(
        *names(name),
        help=meaning.help,
        rich_help_panel=meaning.group,
        min=meaning.minimum,
        metavar=f"[{'|'.join(meaning.choices)}]" if meaning.choices else meaning.metavar,
        click_type=INPUT_NAME if name in _NAME_FILES else None,
        autocompletion=completion.matrices if name == "matrix" else completion.one_of(meaning.choices),
    )


def one_of(*choices: str, names: Sequence[str] = (), group: str | None = None, help: str) -> Any:
    """An option with few values, which the help and the shell name."""
    return typer.Option(
        *names,
        metavar=f"[{'|'.join(choices)}]",
        autocompletion=completion.one_of(choices),
        rich_help_panel=group,
        help=help,
    )


Top = Annotated[int, _option("top")]
Evalue = Annotated[float, _option("evalue")]
FewerTop = Annotated[int | None, _option("top")]
SmallerEvalue = Annotated[float | None, _option("evalue")]
FewerHsps = Annotated[int | None, _option("max_hsps")]
OfQuery = Annotated[
    list[str] | None,
    typer.Option(
        "--query",
        metavar="ID",
        help="Report this query alone, by identifier or accession; may be given several times.",
        rich_help_panel=CHOICE,
    ),
]
Ties = Annotated[str, _option("ties")]
Strand = Annotated[str, _option("strand")]
Matrix = Annotated[str | None, _option("matrix")]
Match = Annotated[int | None, _option("match")]
Mismatch = Annotated[int | None, _option("mismatch")]
GapOpen = Annotated[int | None, _option("gap_open")]
GapExtend = Annotated[int | None, _option("gap_extend")]
Translate = Annotated[str | None, _option("translate")]
GeneticCode = Annotated[int | None, _option("genetic_code")]
MaxHsps = Annotated[int, _option("max_hsps")]
Alphabet = Annotated[str | None, _option("alphabet")]
QueryFormat = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=completion.one_of(("auto", "fasta", "pssm", "asn1", "hmm", "aligned", "a3m", "stockholm")),
        rich_help_panel=INPUT,
        help="auto, fasta (or FASTQ), pssm (psiblast -out_ascii_pssm), asn1 (psiblast -out_pssm), hmm (HMMER3), "
        "aligned (FASTA), a3m (or A2M), stockholm. All but fasta are profiles with scores of their own at each "
        "position; auto knows pssm, asn1, hmm and stockholm.",
    ),
]
DbSize = Annotated[int | None, _option("dbsize")]
MinScore = Annotated[int | None, _option("min_score")]
MinBits = Annotated[float | None, _option("min_bits")]
MinIdentity = Annotated[float | None, _option("min_identity")]
MinQueryCoverage = Annotated[float | None, _option("min_query_coverage")]
MinSubjectCoverage = Annotated[float | None, _option("min_subject_coverage")]
MinAlignmentLength = Annotated[int | None, _option("min_alignment_length")]
MinLength = Annotated[int | None, _option("min_length")]
MaxLength = Annotated[int | None, _option("max_length")]
IdPattern = Annotated[str | None, _option("id_pattern")]
Include = Annotated[str | None, _option("include")]
Exclude = Annotated[str | None, _option("exclude")]
Taxid = Annotated[str | None, _option("taxid")]
TaxidMap = Annotated[str | None, _option("taxid_map")]
Taxonomy = Annotated[str | None, _option("taxonomy")]
DatabaseTaxonomy = Annotated[
    str | None,
    typer.Option(
        "--taxonomy",
        metavar="PATH",
        click_type=INPUT_NAME,
        help="NCBI's taxdump (folder, taxdump.tar.gz, taxdmp.zip or nodes.dmp), whose names and lineages are stored.",
        rich_help_panel=ORGANISMS,
    ),
]
DatabaseTaxidMap = Annotated[
    str | None,
    typer.Option(
        "--taxid-map",
        metavar="FILE",
        click_type=INPUT_NAME,
        help="Lines of identifier and taxonomy ids, or NCBI's accession2taxid. [OX= and TaxID= in headers]",
        rich_help_panel=ORGANISMS,
    ),
]
Iterations = Annotated[int, _option("iterations")]
InclusionEvalue = Annotated[float, _option("inclusion_evalue")]
Mask = Annotated[str, _option("mask")]
MaskMode = Annotated[str, _option("mask_mode")]
Composition = Annotated[str, _option("composition")]
Engine = Annotated[
    str, one_of("auto", "cuda", "cpu", "reference", group=MACHINE, help="What computes; never changes the hits.")
]
Threads = Annotated[
    int | None,
    typer.Option(*names("threads"), help="CPU threads. [the cores this process may use]", rich_help_panel=MACHINE),
]
Devices = Annotated[
    str | None,
    typer.Option(help="GPUs by their CUDA numbers, such as 0,1; for the cuda engine. [0]", rich_help_panel=MACHINE),
]
Kernel = Annotated[
    str,
    one_of(
        "strip",
        "simt",
        "striped",
        "partitioned",
        group=MACHINE,
        help="Kernel of the cuda engine: strip, or one of CUDASW++ 2.0; never changes the hits.",
    ),
]
NoBound = Annotated[
    bool,
    typer.Option(
        "--no-bound",
        help="Exclude no subject by an upper bound; for comparison, never changes the hits.",
        rich_help_panel=MACHINE,
    ),
]
PartitionResidues = Annotated[
    int | None,
    typer.Option(help="Residues given to the engine at a time; never changes the hits.", rich_help_panel=MACHINE),
]
Format = Annotated[
    str,
    typer.Option(
        *names("format"),
        metavar="NAME",
        autocompletion=completion.formats,
        help="table, pairwise, html, blast6, blast7, xml, xml2, json2 (BLAST's), tsv, csv, parquet, json, jsonl, sam, "
        "a3m, sto, afasta, fasta (the sequences of the hits), lca (the taxon of each query), kraken, "
        "taxa-html (queries by taxon) or multiqc.",
        rich_help_panel=OUTPUT,
    ),
]


def _table_or_json(name: str) -> str:
    """The value of :data:`TableFormat`, checked."""
    if name not in ("table", "json"):
        raise InputError(f"--format {quoted(name)}: choose table or json")
    return name


TableFormat = Annotated[
    str,
    typer.Option(
        *names("format"),
        metavar="[table|json]",
        autocompletion=completion.one_of(("table", "json")),
        help="A table for readers, or JSON for programs.",
        rich_help_panel=OUTPUT,
        callback=_table_or_json,
    ),
]
MsaCoverage = Annotated[
    float,
    typer.Option(
        metavar="PERCENT", help="Rows with residues in so much of the query (hhfilter -cov).", rich_help_panel=ROWS
    ),
]
MsaQueryIdentity = Annotated[
    float,
    typer.Option(
        metavar="PERCENT", help="Rows whose residues equal the query's so often (hhfilter -qid).", rich_help_panel=ROWS
    ),
]
MsaMaxIdentity = Annotated[
    int,
    typer.Option(
        metavar="PERCENT", help="Rows at most so identical to a longer one (hhfilter -id).", rich_help_panel=ROWS
    ),
]
MsaDiff = Annotated[
    int,
    typer.Option(
        help="Leave similar rows out where so many diverse ones cover 50 columns (hhfilter -diff); 0: keep them.",
        rich_help_panel=ROWS,
    ),
]
MsaFilterAbove = Annotated[
    int,
    typer.Option(
        help="Leave --msa-max-identity and --msa-diff out of alignments with at most so many rows.",
        rich_help_panel=ROWS,
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        autocompletion=completion.fields,
        help="Columns by BLAST's names, separated by blanks or commas.",
        rich_help_panel=OUTPUT,
    ),
]
Width = Annotated[
    int | None,
    typer.Option(
        min=20,
        max=10_000,
        help="--format table: columns of a line. [those of the terminal; in files and pipes 100]",
        rich_help_panel=OUTPUT,
    ),
]
Aligned = Annotated[
    bool,
    typer.Option(
        "--aligned",
        help="--format fasta: the aligned parts, one for each alignment. [whole sequences]",
        rich_help_panel=SEQUENCES,
    ),
]
Flank = Annotated[
    int | None,
    typer.Option(
        min=0, help="--format fasta: the aligned parts with so many residues on each side.", rich_help_panel=SEQUENCES
    ),
]
LcaTop = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=100,
        metavar="PERCENT",
        help="Taxa of queries (lca, kraken, taxa-html) are those of hits with bit scores at most so much below the "
        "best. [10]",
        rich_help_panel=OUTPUT,
    ),
]
Unaligned = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        click_type=OUTPUT_FILE,
        help="FASTA file for the queries without hits.",
        rich_help_panel=SEQUENCES,
    ),
]
AlignedQueries = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", click_type=OUTPUT_FILE, help="FASTA file for the queries with hits.", rich_help_panel=SEQUENCES
    ),
]
BatchFormat = Annotated[
    str,
    typer.Option(
        *names("format"),
        metavar="NAME",
        autocompletion=completion.formats,
        help="Print the results too, in a format of `swsearch query`. [none; table with --out]",
        rich_help_panel=OUTPUT,
    ),
]
SavePssm = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        click_type=OUTPUT_FILE,
        help="File for the profile of each query's last round, as PSI-BLAST's checkpoint (ASN.1); a query file for "
        "later searches.",
        rich_help_panel=OUTPUT,
    ),
]
InPssm = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        click_type=INPUT_PATH,
        rich_help_panel=INPUT,
        help="File of profiles to search with, beside the query files or instead of them: checkpoints of --save-pssm "
        "or psiblast, PSSMs as text, HMMER3 models, Stockholm.",
    ),
]
Db = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DB",
        click_type=INPUT_NAME,
        rich_help_panel=INPUT,
        help="Database; given several times, all are searched as one.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        autocompletion=completion.runs,
        help="Go on with a run: its number, or latest. A new run starts where none fits.",
        rich_help_panel=RUN,
    ),
]
Shard = Annotated[
    str,
    typer.Option(
        metavar="I/N",
        rich_help_panel=RUN,
        help="Search one share of the queries: i/n, i from 1 to n; auto in a job array, or auto/n where tasks are "
        "numbered from 1 to n. {shard} in the name of an output becomes 3-of-8 or so.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Search with the workers of a Dask cluster: tcp://host:port, a scheduler file, or local:N for N workers "
        "on this machine.",
        metavar="PLACE",
        rich_help_panel=MACHINE,
    ),
]
Slices = Annotated[
    str,
    one_of(
        "auto",
        "yes",
        "no",
        group=MACHINE,
        help="With --cluster: whether each worker holds slices (segments) of the database instead of all of it.",
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        help="With --cluster: seconds after which the work of a worker that does not answer is given to others, at the "
        "earliest.",
        min=0.1,
        rich_help_panel=MACHINE,
    ),
]
Events = Annotated[
    Path | None,
    typer.Option(click_type=OUTPUT_FILE, help="File that takes a line of JSON for each event.", rich_help_panel=OUTPUT),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        click_type=OUTPUT_FILE,
        help="File for a histogram of all scores beside the statistics (.png, .svg, .pdf); computes every score.",
        rich_help_panel=OUTPUT,
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Print which kernels the engine will use for the queries, and why, instead of searching.",
        rich_help_panel=OUTPUT,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(*names("out"), click_type=OUTPUT_FILE, help="File for the results. [stdout]", rich_help_panel=OUTPUT),
]
Quiet = Annotated[bool, typer.Option(*names("quiet"), help="Say nothing but errors on stderr.", rich_help_panel=OUTPUT)]


def check_alphabet(alphabet: str | None, needs: QueryNeeds) -> None:
    """Refuse an ``--alphabet`` that is not the alphabet of the queries of this search.

    Raises
    ------
    InputError
        The alphabets differ; the message names the options with which queries of this alphabet can be searched.
    """
    from swsearch.sequences.alphabet import ALPHABETS

    if alphabet is None or alphabet == needs.alphabet.name:
        return
    if alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    other = needs.advice(ALPHABETS[alphabet])
    if needs.translate is not None:
        taken = f"with --translate {needs.translate} queries are {needs.alphabet.name}"
        raise InputError(f"--alphabet {alphabet}: {taken}; {other}")
    taken = f"without --translate queries are {needs.alphabet.name}"
    raise InputError(f"--alphabet {alphabet}: {taken}; leave --alphabet out, or {other}")


def device_list(devices: str | None) -> list[int] | None:
    """Device numbers from the value of ``--devices``; None if the option is not used.

    Raises
    ------
    InputError
        The value is not a list of numbers.

    >>> device_list("0,1")
    [0, 1]
    """
    if devices is None:
        return None
    numbers = whole_numbers(devices)
    if numbers is None:
        raise InputError(f"--devices {quoted(devices)}: give CUDA numbers separated by commas, such as 0,1")
    return numbers


def whole_numbers(text: str) -> list[int] | None:
    """The integers in a text of nonnegative integers, separated by commas.

    The result is None if the text has another form, or if a number has more than nine digits.

    >>> whole_numbers("0, 12"), whole_numbers("1,,2"), whole_numbers("-1")
    ([0, 12], None, None)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) <= 9 for word in words):
        return None
    return [int(word) for word in words]


def field_list(fields: str | None) -> list[str] | None:
    """Field names from ``--fields``.

    >>> field_list("qseqid sseqid,evalue")
    ['qseqid', 'sseqid', 'evalue']
    """
    return None if fields is None else fields.replace(",", " ").split()
