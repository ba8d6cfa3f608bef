"""The parameters of the tools of EBI's job dispatcher: what the server says about them, and the search they make.

:data:`TOOLS` has a :class:`Tool` for ``fasta`` and one for ``ncbiblast``. A parameter of a tool that is not in its
list is refused, with the reason where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swsearch.errors import InputError, Refused
from swsearch.scoring.matrix import matrix_names, named_matrix
from swsearch.scoring.scheme import default_gap, default_scheme
from swsearch.sequences.alphabet import ALPHABETS, PROTEIN
from swsearch.service.databases import OfferedDatabase
from swsearch.service.requests import Submission
from swsearch.service.web.protocols.common import (
    PROGRAMS,
    Program,
    composition_of,
    is_off,
    number_of,
    program_named,
    whole_of,
)
from swsearch.words import shortened

LISTED: Final = 50
"""Subjects in a list of hits, if the client does not say how many; the clients' own default."""
ALL_HSPS: Final = 100
"""Alignments of a subject, if the client wants all of them."""
_SHORT_NAMES: Final = {"BL": "BLOSUM", "P": "PAM"}
"""Beginnings of the names that matrices have in the FASTA package, and in full."""
_CLIENTS_OWN: Final = frozenset({
    "debugLevel", "maxJobs", "outfile", "outformat", "pollFreq", "verbose", "quiet", "multifasta", "useSeqId",
    "asyncjob", "polljob", "resultTypes", "status", "params", "paramDetail", "version", "jobid", "baseUrl", "help",
})  # fmt: skip
"""Options of EBI's clients for themselves, which they send too."""
_LOW_COMPLEXITY: Final = frozenset({"seg", "t", "true", "l", "yes", "1"})
_RANGE: Final = re.compile(r"(\d+|START)-(\d+|END)", re.I)


@dataclass(frozen=True)
class Parameter:
    """A parameter as the server describes it.

    Attributes
    ----------
    label, description : str
    kind : str
        ``STRING``, ``INTEGER``, ``DOUBLE`` or ``BOOLEAN``.
    values : tuple of str
        The values that can be chosen, the default first; empty if any can.
    """

    label: str
    description: str
    kind: str = "STRING"
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tool:
    """A tool of the dispatcher.

    Attributes
    ----------
    name : str
    parameters : mapping of str to Parameter
        Those that are accepted.
    refused : mapping of str to str
        Those that are refused unless their value says no, each with what to do.
    search : callable
        The program and the options of the parameters that were sent, for a database.
    """

    name: str
    parameters: Mapping[str, Parameter]
    refused: Mapping[str, str]
    search: Callable[[Mapping[str, str], OfferedDatabase], tuple[Program, dict[str, Any]]]

    def described(self, name: str, databases: Sequence[OfferedDatabase]) -> Parameter:
        """A parameter with its values.

        Raises
        ------
        InputError
            There is no such parameter.
        """
        parameter = self.parameters.get(name)
        if parameter is None:
            raise InputError(f"{self.name} has no parameter {shortened(name)!r}; choose {', '.join(self.parameters)}")
        if name == "database":
            values = tuple(database.name for database in databases)
            return Parameter(parameter.label, parameter.description, parameter.kind, values)
        return parameter

    def submission(
        self, fields: Sequence[tuple[str, str]], current: Callable[[str], OfferedDatabase]
    ) -> tuple[Submission, OfferedDatabase, Program]:
        """The search of a request, its database and its program.

        Raises
        ------
        InputError
            A parameter cannot be used.
        """
        sent: dict[str, str] = {}
        databases = [value.strip() for name, value in fields if name == "database" and value.strip()]
        for name, value in fields:
            if name in self.refused and not is_off(value):
                raise InputError(f"{name}={shortened(value)} is not available: {self.refused[name]}")
            if name not in {"email", "title"} | self.parameters.keys() | self.refused.keys() | _CLIENTS_OWN:
                raise InputError(f"{self.name} has no parameter {shortened(name)!r}; leave it out")
            if name != "database" and name in sent and sent[name] != value:
                raise InputError(f"{name} is sent twice, with different values")
            sent[name] = value
        sent = {name: value.strip() for name, value in sent.items() if value.strip()}
        if not databases:
            raise InputError("database is missing; name one of the databases of this server")
        if len(set(databases)) > 1:
            raise Refused(
                "several_databases",
                f"{len(set(databases))} databases are named; a search here is of one, because E-values depend on it: "
                "submit a job for each",
            )
        if "sequence" not in sent:
            raise InputError("sequence is missing; send one in FASTA")
        if re.fullmatch(r"[A-Za-z]\w*:\w+(\.\d+)?", sent["sequence"]):
            raise InputError(f"sequence={shortened(sent['sequence'])} is a name of an entry; send the sequence itself")
        database = current(databases[0])
        program, options = self.search(sent, database)
        program.check(database)
        return Submission(sent["sequence"], database.name, options), database, program


# --- what both tools have ---


def _common(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    """The options of the parameters that both tools have."""
    options: dict[str, Any] = {"translate": program.translate, "top": LISTED}
    listed = [whole_of(name, sent[name]) for name in ("scores", "alignments") if name in sent]
    if listed:
        options["top"] = max(listed)
        if options["top"] < 1:
            raise InputError("scores and alignments: at least 1 subject must be asked for")
    if "seqrange" in sent and sent["seqrange"].upper() != "START-END":
        raise InputError("seqrange is not available: send the part of the sequence that is to be searched")
    _check_type(sent.get("stype", ""), program)
    options |= _scores(sent, program)
    masker = sent.get("filter", "")
    if not is_off(masker):
        if masker.lower() not in _LOW_COMPLEXITY:
            raise InputError(f"filter={shortened(masker)} is not available: choose none or seg")
        options |= {"mask": "dust" if program.aligned == "dna" else "seg", "mask_mode": "hard"}
    code = whole_of("transltable", sent.get("transltable", "1"))
    if program.translate is None and code != 1:
        raise InputError(f"transltable={code} has no meaning for {program.name}, which does not translate")
    return options | ({"genetic_code": code} if program.translate else {})


def _check_type(kind: str, program: Program) -> None:
    asked = {"protein": "protein", "dna": "dna", "rna": "dna", "nucleotide": "dna", "vector": "dna"}.get(kind.lower())
    if kind and asked is None:
        raise InputError(f"stype={shortened(kind)}: choose protein, dna or rna")
    if asked not in (None, program.query):
        raise InputError(f"stype={kind}, but {program.name} searches with {program.query}")


def _scores(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    options: dict[str, Any] = {}
    matrix = sent.get("matrix", "")
    if not is_off(matrix):
        if program.aligned == "dna":
            raise InputError("matrix is for protein; for DNA send match_scores")
        options["matrix"] = _matrix(matrix)
    pair = sent.get("match_scores", "")
    if not is_off(pair):
        if program.aligned != "dna":
            raise InputError("match_scores is for DNA; for protein send matrix")
        scores = pair.replace("/", ",").split(",")
        if len(scores) != 2:
            raise InputError(f"match_scores={shortened(pair)}: send two numbers, such as 2,-3")
        options["match"], options["mismatch"] = (whole_of("match_scores", score) for score in scores)
    return options


def _matrix(name: str) -> str:
    """A matrix by its name, or by that of the FASTA package, such as BL62."""
    given = name.upper()
    for short, full in _SHORT_NAMES.items():
        if re.fullmatch(rf"{short}\d+", given):
            given = given.replace(short, full)
    available = matrix_names(PROTEIN)
    if given not in available:
        raise InputError(f"matrix={shortened(name)} is not available; choose {', '.join(available)}")
    return given


def _taxids(text: str) -> str:
    if not re.fullmatch(r"\d{1,10}(\s*,\s*\d{1,10})*", text):
        raise InputError(f"taxids={shortened(text)}: send taxonomy ids separated by commas")
    return re.sub(r"\s", "", text)


def _whole(values: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


# --- fasta ---


def _fasta(sent: Mapping[str, str], database: OfferedDatabase) -> tuple[Program, dict[str, Any]]:
    name = sent.get("program", "ssearch").lower()
    if name not in ("ssearch", "fasta"):
        raise InputError(f"program={shortened(name)} is not available: choose ssearch, or blastx … of ncbiblast")
    program = Program(name, database.alphabet, database.alphabet, None)
    options = _common(sent, program)
    options |= _first_residue_costs(sent, database.alphabet, options.get("matrix"))
    if "expupperlim" in sent:
        options["evalue"] = number_of("expupperlim", sent["expupperlim"])
    if sent.get("explowlim", "0").strip("0.") != "":
        raise InputError(f"explowlim={shortened(sent['explowlim'])} is not available: leave out the best hits yourself")
    options["max_hsps"] = 1 if is_off(sent.get("hsps", "")) else ALL_HSPS
    strand = {"both": "both", "none": "both", "top": "plus", "bottom": "minus"}.get(sent.get("strand", "both").lower())
    if strand is None:
        raise InputError(f"strand={shortened(sent['strand'])}: choose both, top or bottom")
    if database.alphabet == "dna":
        options["strand"] = strand
    if sent.get("stats", "1") != "1":
        raise InputError(f"stats={shortened(sent['stats'])} is not available: E-values here are those of the matrix")
    if "dbrange" in sent:
        found = _RANGE.fullmatch(sent["dbrange"])
        if found is None:
            raise InputError(f"dbrange={shortened(sent['dbrange'])}: send two lengths, such as 100-250")
        options |= {
            option: int(length)
            for option, length in zip(("min_length", "max_length"), found.groups(), strict=True)
            if length.isdecimal()
        }
    return program, options


def _first_residue_costs(sent: Mapping[str, str], alphabet: str, matrix: str | None) -> dict[str, Any]:
    """Gap costs; ``gapopen`` is the cost of the first residue here, with or without a minus sign."""
    if "gapopen" not in sent and "gapext" not in sent:
        return {}
    usual = default_gap(default_scheme(ALPHABETS[alphabet]).matrix if matrix is None else named_matrix(matrix))
    extend = abs(whole_of("gapext", sent["gapext"])) if "gapext" in sent else usual.extend
    first = abs(whole_of("gapopen", sent["gapopen"])) if "gapopen" in sent else usual.open + usual.extend
    if first < extend:
        raise InputError(f"gapopen={first}: the first residue of a gap must cost as much as each other one, {extend}")
    return {"gap_open": first - extend, "gap_extend": extend}


# --- ncbiblast ---


def _ncbiblast(sent: Mapping[str, str], _database: OfferedDatabase) -> tuple[Program, dict[str, Any]]:
    program = program_named(sent.get("program", ""), "program")
    options = _common(sent, program)
    task = sent.get("task", program.name).lower()
    if task not in (program.name, f"{program.name}-fast"):
        raise InputError(f"task={shortened(task)} is not available: leave it out, and choose matrix or match_scores")
    if "exp" in sent:
        options["evalue"] = number_of("exp", sent["exp"])
    for name, option in (("gapopen", "gap_open"), ("gapext", "gap_extend")):
        if sent.get(name, "-1") != "-1":  # the clients' value for the usual cost
            options[option] = whole_of(name, sent[name])
    if not is_off(sent.get("hsps", "")):
        options["max_hsps"] = whole_of("hsps", sent["hsps"])
    if "compstats" in sent:
        options |= composition_of("compstats", sent["compstats"], program.aligned)
    if "taxids" in sent:
        options["taxid"] = _taxids(sent["taxids"])
    if is_off(sent.get("gapalign", "true")):
        raise InputError(
            "gapalign=false is not available: alignments here have gaps; to have none, let gapopen be high"
        )
    return program, options


# --- their descriptions ---

_NO_EFFECT: Final = "It serves a heuristic, or the layout of a page, and has no effect here."
_SEQUENCE: Final = {
    "sequence": Parameter("Sequence", "The query, in FASTA or as letters alone."),
    "stype": Parameter("Sequence type", "What the query is.", values=("protein", "dna", "rna")),
    "database": Parameter("Database", "The database to search. A job searches one."),
}
_LISTS: Final = {
    "scores": Parameter("Scores", f"Subjects in the list of hits; {LISTED} by default.", "INTEGER"),
    "alignments": Parameter("Alignments", "The same; the larger number counts.", "INTEGER"),
    "filter": Parameter("Filter", "Masks residues of low complexity: SEG, or DUST for DNA.", values=("none", "seg")),
    "transltable": Parameter("Genetic code", "NCBI's number of the genetic code of a translation.", "INTEGER"),
    "seqrange": Parameter("Sequence range", "The whole sequence is searched.", values=("START-END",)),
}
_MATCH: Final = Parameter("Match scores", "DNA: scores of equal and different bases, such as 2,-3, the default.")
_MATRIX: Final = Parameter(
    "Matrix", "Protein: the substitution matrix.",
    values=("BLOSUM62", *(name for name in matrix_names(PROTEIN) if name != "BLOSUM62")),
)  # fmt: skip
_EXPECT: Final = Parameter("E-value", "Largest E-value of a hit; 10 by default.", "DOUBLE")
_EXTENSION: Final = Parameter("Gap extension", "Cost of each further residue of a gap.", "INTEGER")

_FASTA_TOOL: Final = Tool(
    "fasta",
    {
        "program": Parameter("Program", "Both names mean the exact comparison.", values=("ssearch", "fasta")),
        **_SEQUENCE,
        "matrix": _MATRIX,
        "match_scores": _MATCH,
        "gapopen": Parameter(
            "Gap open", "Cost of the first residue of a gap: 12 by default for protein, 7 for DNA.", "INTEGER"
        ),
        "gapext": _EXTENSION,
        "hsps": Parameter("Alignments of a subject", "Whether all of them are reported, or the best.", "BOOLEAN",
                          ("false", "true")),
        "expupperlim": _EXPECT,
        "explowlim": Parameter("Lowest E-value", "Hits are reported down to 0.", "DOUBLE", ("0",)),
        "strand": Parameter("Strand", "DNA: the strands that are searched.", values=("both", "top", "bottom")),
        **_LISTS,
        "dbrange": Parameter("Lengths of subjects", "Subjects that are searched, by their lengths, such as 100-250."),
        "stats": Parameter("Statistics", "E-values are those of the matrix.", values=("1",)),
        "ktup": Parameter("Word size", _NO_EFFECT, "INTEGER"),
        "hist": Parameter("Histogram", _NO_EFFECT, "BOOLEAN", ("false", "true")),
        "scoreformat": Parameter("Format", _NO_EFFECT, values=("default",)),
        "annotsym": Parameter("Symbols of annotations", _NO_EFFECT),
    },
    {"annotfeats": "the databases of this server have no annotations"},
    _fasta,
)  # fmt: skip
_BLAST_TOOL: Final = Tool(
    "ncbiblast",
    {
        "program": Parameter("Program", "What is compared with what.", values=tuple(PROGRAMS)),
        **_SEQUENCE,
        "matrix": _MATRIX,
        "match_scores": _MATCH,
        "gapopen": Parameter(
            "Gap open", "Cost of a gap, without that of its residues: 11 by default for protein, 5 for DNA.", "INTEGER"
        ),
        "gapext": _EXTENSION,
        "exp": _EXPECT,
        "compstats": Parameter(
            "Composition",
            "Whether E-values consider the composition of what is aligned.",
            values=("D", "F", "1", "2", "3"),
        ),
        "hsps": Parameter("Alignments of a subject", "Largest number; 1 by default.", "INTEGER"),
        "taxids": Parameter("Organisms", "Taxonomy ids, separated by commas, of the subjects that are searched."),
        **_LISTS,
        "gapalign": Parameter("Gaps", "Alignments have gaps.", "BOOLEAN", ("true",)),
        "task": Parameter("Task", "The name of the program.", values=tuple(PROGRAMS)),
        "dropoff": Parameter("Drop-off", _NO_EFFECT, "INTEGER"),
        "wordsize": Parameter("Word size", _NO_EFFECT, "INTEGER"),
        "align": Parameter("Layout", _NO_EFFECT, "INTEGER", _whole(range(12))),
    },
    {
        "negative_taxids": "choose the organisms to search with taxids",
    },
    _ncbiblast,
)
TOOLS: Final = {tool.name: tool for tool in (_FASTA_TOOL, _BLAST_TOOL)}
"""The tools by name."""
