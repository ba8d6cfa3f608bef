"""The parameters of the BLAST URL API, and the programs that they name.

A parameter is taken, has no effect (:data:`WITHOUT_EFFECT`), or is refused with the reason (:data:`REFUSED`). A refused
parameter may be sent with a value that says no. :func:`submission_of` makes a search of those of ``CMD=Put``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swsearch.errors import InputError
from swsearch.service.databases import OfferedDatabase
from swsearch.service.submit import Submission
from swsearch.words import shortened

HITLIST_SIZE: Final = 100
"""Subjects in a list of hits, if the client does not say how many."""

PUT: Final = frozenset({
    "CMD", "PROGRAM", "DATABASE", "QUERY", "EXPECT", "HITLIST_SIZE", "GAPCOSTS", "MATRIX", "MATRIX_NAME", "NUCL_REWARD",
    "NUCL_PENALTY", "FILTER", "LCASE_MASK", "GENETIC_CODE", "DB_GENETIC_CODE", "ENTREZ_QUERY", "PERC_IDENT",
    "COMPOSITION_BASED_STATISTICS",
})  # fmt: skip
"""Parameters of a submission that are taken."""
GET: Final = frozenset({"CMD", "RID", "FORMAT_TYPE", "FORMAT_OBJECT", "ALIGNMENT_VIEW", "ALIGNMENTS"})
"""Parameters of the other requests that are taken."""
WITHOUT_EFFECT: Final = frozenset({
    "WORD_SIZE", "THRESHOLD", "I_THRESH", "DESCRIPTIONS", "NCBI_GI", "EMAIL", "TOOL", "AUTO_FORMAT", "LAYOUT",
    "ENDPOINTS", "QUERY_BELIEVE_DEFLINE", "NUM_THREADS", "JOB_TITLE", "CLIENT", "NUM_OVERVIEW", "SHOW_OVERVIEW",
    "SHOW_LINKOUT", "GET_SEQUENCE", "NEW_VIEW", "DISPLAY_SORT", "DATABASE_SORT", "ENTREZ_LINKS_NEW_WINDOW",
    "RESULTS_FILE", "MASK_CHAR", "MASK_COLOR", "ADV_VIEW", "LINE_LENGTH",
})  # fmt: skip
"""Parameters that are accepted with every value: they serve heuristics, NCBI's pages, or its statistics of clients."""
_MEGABLAST: Final = (
    "every base is compared here; say the scores of megablast with NUCL_REWARD, NUCL_PENALTY and GAPCOSTS"
)
_ONE_ROUND: Final = "this server searches in one round, with a matrix; leave it out"
REFUSED: Final[Mapping[str, str]] = {
    "QUERY_FROM": "send the part of the query that is to be searched",
    "QUERY_TO": "send the part of the query that is to be searched",
    "QUERY_FILE": "send the sequences themselves in QUERY",
    "MEGABLAST": _MEGABLAST,
    "TEMPLATE_TYPE": _MEGABLAST,
    "TEMPLATE_LENGTH": _MEGABLAST,
    "UNGAPPED_ALIGNMENT": "alignments here have gaps; to have none, let GAPCOSTS be high",
    "SHORT_QUERY_ADJUST": "short queries are searched with the parameters that are sent; choose EXPECT and MATRIX",
    "PHI_PATTERN": _ONE_ROUND,
    "OTHER_ADVANCED": "send parameters by their names",
    "SEARCHSP_EFF": "E-values refer to the size of the database",
    "EXPECT_LOW": "hits are not selected when they are fetched; say EXPECT when the search is submitted",
    "EXPECT_HIGH": "hits are not selected when they are fetched; say EXPECT when the search is submitted",
    "FORMAT_ENTREZ_QUERY": "hits are not selected when they are fetched; say ENTREZ_QUERY when the search is submitted",
}
"""Parameters that are refused unless their value says no, each with what to do."""
_TAXID: Final = re.compile(
    r"\(?\s*txid(\d{1,10})\s*\[\s*(?:orgn|organism|porgn)(?:\s*:\s*(exp|noexp))?\s*\]\s*\)?", re.I
)


def checked_parameters(fields: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The parameters of a request by their names in capitals; those that say nothing are left out.

    Raises
    ------
    InputError
        A parameter is unknown, refused, or sent twice.
    """
    found: dict[str, str] = {}
    for given, value in fields:
        name = given.upper()
        if name in REFUSED and not is_off(value):
            raise InputError(f"{name} is not available: {REFUSED[name]}")
        if name == "SERVICE" and value.strip().lower() not in ("", "plain"):
            raise InputError(f"SERVICE={shortened(value)} is not available: {_ONE_ROUND}")
        if name not in PUT | GET | WITHOUT_EFFECT | REFUSED.keys() | {"SERVICE"}:
            raise InputError(f"there is no parameter {shortened(given)}; leave it out")
        if name in found and found[name] != value:
            raise InputError(f"{name} is sent twice, with different values")
        found[name] = value
    return {name: value for name, value in found.items() if value.strip()}


def submission_of(sent: Mapping[str, str]) -> tuple[Submission, Program]:
    """The search of a submission, and its program; raises InputError for a value that cannot be used."""
    program = program_named(sent.get("PROGRAM", ""))
    if "DATABASE" not in sent:
        raise InputError("DATABASE is missing; name one of the databases of this server")
    query = sent.get("QUERY", "")
    if not query:
        raise InputError("QUERY is missing; send sequences in FASTA")
    if re.fullmatch(r"\s*[A-Za-z]\w{3,14}\d(\.\d+)?\s*", query):
        raise InputError(f"QUERY={shortened(query.strip())} looks like an accession; send the sequence itself")
    options: dict[str, Any] = {"top": HITLIST_SIZE, "translate": program.translate, **_scoring(sent, program)}
    if "EXPECT" in sent:
        options["evalue"] = number_of("EXPECT", sent["EXPECT"])
    if "HITLIST_SIZE" in sent:
        options["top"] = whole_of("HITLIST_SIZE", sent["HITLIST_SIZE"])
        if options["top"] < 1:
            raise InputError(f"HITLIST_SIZE={options['top']}: at least 1 subject must be asked for")
    if not is_off(sent.get("PERC_IDENT", "")):
        options["min_identity"] = number_of("PERC_IDENT", sent["PERC_IDENT"])
    options |= _composition(sent, program)
    options |= _masking(sent, program)
    options["genetic_code"] = _genetic_code(sent, program)
    options["taxid"] = _taxid(sent.get("ENTREZ_QUERY", ""))
    return Submission(query, sent["DATABASE"].strip(), options), program


def _scoring(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    options: dict[str, Any] = {}
    names = {sent[name].strip().upper() for name in ("MATRIX", "MATRIX_NAME") if name in sent}
    if len(names) > 1:
        raise InputError("MATRIX and MATRIX_NAME are two names of one parameter, and their values differ; send one")
    for matrix in names:
        if program.aligned == "dna":
            raise InputError(f"MATRIX={shortened(matrix)} is for protein; for blastn send NUCL_REWARD and NUCL_PENALTY")
        options["matrix"] = matrix
    for name, option in (("NUCL_REWARD", "match"), ("NUCL_PENALTY", "mismatch")):
        if name in sent:
            if program.aligned != "dna":
                raise InputError(f"{name} is for blastn; for {program.name} send MATRIX")
            options[option] = whole_of(name, sent[name])
    if "GAPCOSTS" in sent:
        costs = sent["GAPCOSTS"].replace(",", " ").split()
        if len(costs) != 2:
            raise InputError(f"GAPCOSTS={shortened(sent['GAPCOSTS'])}: send two numbers, such as 11 1")
        options["gap_open"], options["gap_extend"] = (whole_of("GAPCOSTS", cost) for cost in costs)
    return options


def _composition(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    """The option for 0 or F, which is none, and for 1, 2, 3, D or T; DNA has none, whatever is sent."""
    value = sent.get("COMPOSITION_BASED_STATISTICS")
    if value is None or program.aligned == "dna":
        return {}
    if not is_off(value) and value.strip().upper() not in ("1", "2", "3", "D", "T", "2005", "2006"):
        raise InputError(f"COMPOSITION_BASED_STATISTICS={shortened(value)} is not available: choose 0, 1, 2 or 3")
    return {"composition": "none" if is_off(value) else "adjust"}


def _masking(sent: Mapping[str, str], program: Program) -> dict[str, Any]:
    """Masks of FILTER and LCASE_MASK; ``m`` in FILTER masks softly: for the choice of subjects, not in alignments."""
    given = sent.get("FILTER", "")
    letters = re.sub(r"[;\s]", "", given)
    maskers = []
    if not is_off(letters.replace("m", "")):
        if letters.replace("m", "").upper() not in ("T", "L"):
            raise InputError(f"FILTER={shortened(given)} is not available: choose F, L or mL")
        maskers.append("dust" if program.aligned == "dna" else "seg")
    if not is_off(sent.get("LCASE_MASK", "")):
        maskers.append("lower")
    if not maskers:
        return {}
    return {"mask": ",".join(maskers), "mask_mode": "soft" if "m" in letters else "hard"}


def _genetic_code(sent: Mapping[str, str], program: Program) -> int | None:
    translated = {
        "GENETIC_CODE": program.translate in ("query", "both"),
        "DB_GENETIC_CODE": program.translate in ("subject", "both"),
    }
    codes = {name: whole_of(name, sent[name]) for name in translated if name in sent}
    for name, code in codes.items():
        if not translated[name] and code != 1:
            raise InputError(f"{name}={code} has no meaning for {program.name}, which does not translate that side")
    used = {codes.get(name, 1) for name, is_used in translated.items() if is_used}
    if len(used) > 1:
        raise InputError("GENETIC_CODE and DB_GENETIC_CODE differ; tblastx has one code for both sides here")
    return used.pop() if used else None


def _taxid(query: str) -> str | None:
    """The taxonomy ids of an Entrez query, such as ``txid9606[ORGN] OR txid10090[ORGN]``; None for all subjects.

    The option ``taxid`` includes the descendants of an organism, as NCBI does, if the database has a taxonomy.
    """
    if is_off(query):
        return None
    found = [_TAXID.fullmatch(part.strip()) for part in re.split(r"\s+OR\s+", query.strip())]
    taxids = [match[1] for match in found if match]
    if len(taxids) < len(found):
        raise InputError(
            f"ENTREZ_QUERY={shortened(query)} is not available: choose organisms as txid9606[ORGN], joined by OR"
        )
    if any((match[2] or "").lower() == "noexp" for match in found if match):
        raise InputError(f"ENTREZ_QUERY={shortened(query)}: organisms include their descendants; leave :noexp out")
    return ",".join(taxids)


# --- programs ---


@dataclass(frozen=True)
class Program:
    """A program of BLAST: the alphabets that it compares, and the value of the option ``translate``."""

    name: str
    query: str
    database: str
    translate: str | None

    def advice(self, queries: str) -> str:
        """The program that searches such a database with queries of another alphabet."""
        fitting = [one.name for one in PROGRAMS.values() if (one.query, one.database) == (queries, self.database)]
        return f"choose {' or '.join(fitting)}"

    @property
    def aligned(self) -> str:
        """The alphabet of the aligned letters."""
        return "dna" if self.translate is None and self.database == "dna" else "protein"

    def check(self, database: OfferedDatabase) -> None:
        """Raise InputError for a database of the other alphabet."""
        alphabet = database.catalogue.alphabet
        if alphabet == self.database:
            return
        others = [other.name for other in PROGRAMS.values() if other.database == alphabet]
        raise InputError(
            f"{self.name} searches databases of {_WORDS[self.database]}, and {database.name} is "
            f"{_WORDS[alphabet]}; choose {', '.join(others[:-1])} or {others[-1]}, or another database"
        )


_WORDS: Final = {"protein": "protein", "dna": "DNA"}
PROGRAMS: Final = {
    program.name: program
    for program in (
        Program("blastp", "protein", "protein", None),
        Program("blastn", "dna", "dna", None),
        Program("blastx", "dna", "protein", "query"),
        Program("tblastn", "protein", "dna", "subject"),
        Program("tblastx", "dna", "dna", "both"),
    )
}
"""The programs by name."""


def program_named(name: str) -> Program:
    """A program, from the value of the parameter ``PROGRAM``; raises InputError if there is none."""
    program = PROGRAMS.get(name.strip().lower())
    if program is None:
        found = f"there is no program {shortened(name)!r}" if name else "PROGRAM is missing"
        raise InputError(f"{found}; choose {', '.join(PROGRAMS)}")
    return program


# --- values ---


def number_of(name: str, value: str) -> float:
    """A real number above 0; raises InputError for any other text."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise InputError(f"{name}={shortened(value)}: a number above 0 is needed")
    return number


def whole_of(name: str, value: str) -> int:
    """A whole number, also with a point, such as 11.0; raises InputError for any other text."""
    try:
        number = float(value)
    except ValueError:
        number = 0.5
    if not number.is_integer() or abs(number) >= 2**31:
        raise InputError(f"{name}={shortened(value)}: a whole number is needed")
    return int(number)


def is_off(value: str) -> bool:
    """Whether a value says no, or nothing.

    >>> [is_off(value) for value in ("", "no", "F", "off", "0", "yes", "L")]
    [True, True, True, True, True, False, False]
    """
    return value.strip().lower() in ("", "no", "none", "off", "false", "f", "0", "n", "(none)")
