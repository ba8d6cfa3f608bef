"""The meaning of each option of a search, written once for the command line and for the pages of the search service.

:data:`MEANINGS` has an entry for each field of :class:`swsearch.search.options.SearchOptions`, and for ``--alphabet``.
The module imports nothing that takes time, because ``--help`` needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SCORING: Final = "Scoring"
CHOICE: Final = "Which hits"
ROUNDS: Final = "Iterated searches with profiles"
FILTERS: Final = "Filters, before the list is cut at --top"


@dataclass(frozen=True)
class Meaning:
    """One option.

    Attributes
    ----------
    label : str
        Its name in a form.
    help : str
        What it does, as ``--help`` prints it; other options are written ``--name``, a default that depends on the
        database in brackets.
    group : str
        Heading under which help and forms show it.
    choices : tuple of str
        All values of an option with few values; empty otherwise.
    minimum : int or None
        Smallest value that the command line accepts.
    metavar : str or None
        Word for the value in the help of the command line; None for the default, its type.
    """

    label: str
    help: str
    group: str
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    metavar: str | None = None


MEANINGS: Final[dict[str, Meaning]] = {
    "alphabet": Meaning("Queries are", "What the queries are. [detected]", CHOICE, choices=("protein", "dna")),
    "top": Meaning("Hits to report", "Subjects reported for each query.", CHOICE, minimum=1),
    "evalue": Meaning("Largest E-value", "Largest E-value reported.", CHOICE),
    "ties": Meaning("Ties", "cut: exactly --top; all: also those equal to the last.", CHOICE, choices=("cut", "all")),
    "strand": Meaning(
        "Strand", "Strands of the query that are searched; for DNA.", CHOICE, choices=("both", "plus", "minus")
    ),
    "translate": Meaning(
        "Translate",
        "query (against proteins), subject (with proteins) or both: search DNA as protein, in six frames.",
        CHOICE,
        choices=("query", "subject", "both"),
    ),
    "genetic_code": Meaning("Genetic code", "NCBI's number of the code for --translate. [1]", CHOICE),
    "max_hsps": Meaning("Alignments of a subject", "Alignments of one subject that are reported.", CHOICE, minimum=1),
    "matrix": Meaning(
        "Matrix",
        "A matrix by name (swsearch matrices lists them), or a file. [protein: BLOSUM62]",
        SCORING,
        metavar="NAME",
    ),
    "match": Meaning("Match", "Score of equal bases. [DNA: 2]", SCORING),
    "mismatch": Meaning("Mismatch", "Score of different bases. [DNA: -3]", SCORING),
    "gap_open": Meaning(
        "Gap opening",
        "A gap of k residues costs open + k * extend. [that of the matrix; BLOSUM62: 11, DNA: 5]",
        SCORING,
    ),
    "gap_extend": Meaning("Gap extension", "See --gap-open. [BLOSUM62: 1, DNA: 2]", SCORING),
    "dbsize": Meaning("Database size", "Residues that E-values are scaled to. [those of the database]", SCORING),
    "mask": Meaning(
        "Mask queries",
        "Mask queries: none; tantan, seg (protein), dust (DNA), lower (lower-case letters), joined by commas.",
        SCORING,
        metavar="NAME[,NAME…]",
    ),
    "mask_mode": Meaning(
        "Masking mode",
        "soft: masked residues find no subject but align; hard: they become X or N.",
        SCORING,
        choices=("soft", "hard"),
    ),
    "composition": Meaning(
        "Composition",
        "adjust: E-values consider what is aligned; bias: scores are lower for what is frequent nearby; for protein.",
        SCORING,
        choices=("adjust", "bias", "none"),
    ),
    "iterations": Meaning(
        "Rounds",
        "Largest number of rounds; each searches with a profile of the subjects that the round before included. "
        "For proteins.",
        ROUNDS,
        minimum=1,
    ),
    "inclusion_evalue": Meaning(
        "Inclusion E-value", "Largest E-value of a subject that is included in the next round's profile.", ROUNDS
    ),
    "min_score": Meaning("Lowest raw score", "Lowest raw score.", FILTERS),
    "min_bits": Meaning("Lowest bit score", "Lowest bit score.", FILTERS),
    "min_identity": Meaning("Lowest identity, %", "Lowest percentage of equal letters in the alignment.", FILTERS),
    "min_query_coverage": Meaning(
        "Lowest query coverage, %", "Lowest percentage of the query between the alignment's ends.", FILTERS
    ),
    "min_subject_coverage": Meaning(
        "Lowest subject coverage, %", "Lowest percentage of the subject between the alignment's ends.", FILTERS
    ),
    "min_alignment_length": Meaning("Shortest alignment", "Fewest columns of the alignment, gaps included.", FILTERS),
    "min_length": Meaning("Shortest subject", "Shortest subject that is searched, in residues.", FILTERS),
    "max_length": Meaning("Longest subject", "Longest subject that is searched, in residues.", FILTERS),
    "id_pattern": Meaning(
        "Identifier pattern",
        "Search subjects whose identifier has a match of this regular expression.",
        FILTERS,
        metavar="REGEX",
    ),
    "include": Meaning(
        "Only these subjects",
        "Search these subjects alone: identifiers or accessions, one a line. An accession without a version "
        "names every version.",
        FILTERS,
        metavar="FILE",
    ),
    "exclude": Meaning(
        "Without these subjects", "Do not search these subjects; as for --include.", FILTERS, metavar="FILE"
    ),
    "taxid": Meaning(
        "Organisms",
        "Search subjects of these NCBI taxonomy ids alone (OX= in UniProt's headers), and of all below them if the "
        "database has a taxonomy. --taxonomy or SWSEARCH_TAXONOMY gives one.",
        FILTERS,
        metavar="ID[,ID…]",
    ),
    "taxid_map": Meaning(
        "Taxonomy ids of subjects",
        "For --taxid and reports: lines of identifier and taxonomy ids, or NCBI's accession2taxid; headers then do not "
        "count.",
        FILTERS,
        metavar="FILE",
    ),
    "taxonomy": Meaning(
        "Taxonomy",
        "For --taxid and reports: NCBI's taxdump (folder, taxdump.tar.gz, taxdmp.zip or nodes.dmp), in place of what "
        "the database has stored.",
        FILTERS,
        metavar="PATH",
    ),
}
