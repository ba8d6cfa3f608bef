"""Sentences shared by the reports for readers: the search, the number of subjects that passed, or why none passed."""

from __future__ import annotations

import textwrap
from typing import Final

from swsearch.hits.formatting import cut, one_line
from swsearch.hits.limits import Limits
from swsearch.hits.result import ALL_AGAINST_ALL, QueryResult, RunInfo, n_left_out
from swsearch.sequences.record import split_header
from swsearch.words import counted

LIKELY_EVALUE: Final = 0.001
"""Largest E-value of a hit that is called likely to be related to the query, as is usual for proteins."""
COMPOSITION_NOTE: Final = (
    "Some proteins score high only because they are rich in the same amino acids as the query, not because they are "
    "related to it. The E-value of each alignment is therefore computed anew for the composition of the aligned parts, "
    "and subjects whose E-value is then above the limit are left out. The option composition with the value none turns "
    "this off."
)
"""What the adjustment for composition means, for readers who do not know the program."""
HSP_NOTE: Final = (
    "Column hsp: 1/3 is the first of 3 alignments of the subject; a search with more alignments per subject (max_hsps) "
    "lists the others."
)
"""What the column of counted alignments means."""


def query_line(run: RunInfo, query: QueryResult, width: int | None = None) -> str:
    """The query's header and its length; the description is truncated to a line of ``width`` characters."""
    size = f"({counted(query.length, 'base' if run.query_alphabet == 'dna' else 'residue')})"
    header = one_line(query.header) or "unnamed"
    if width is None:
        return f"{header} {size}"
    return f"{cut(header, max(width - len(size) - 1, len(split_header(header)[0]) + 2))} {size}"


def database_line(run: RunInfo) -> str:
    """The database and its size."""
    database = run.database
    size = counted(database.n_subjects, f"{database.alphabet} sequence")
    return f"{one_line(database.name)}: {size}, {counted(database.n_residues, 'residue')}"


def scoring_line(run: RunInfo) -> str:
    """The scoring scheme, masking and correction of queries, and the database size for E-values.

    If there are no E-values, the reason follows on separate lines.
    """
    opening = f"{run.gap_open} + " if run.gap_open else ""
    matrix = run.matrix
    if run.parameters.get("query_format"):
        matrix = f"position-specific scores on the scale of {run.matrix}"
    elif run.is_sensitive:
        library = run.reported_parameters.get("contexts")
        by = f" by {library}" if library else ""
        matrix = f"scores that the query's context predicts{by}, on the scale of {run.matrix}"
    scheme = f"{matrix}, a gap of k residues costs {opening}{run.gap_extend}k{_treatment(run)}"
    if run.lam is None:
        indent = " " * len("Scoring:  ")
        why = textwrap.fill(f"no E-values: {run.statistics}", 100, initial_indent=indent, subsequent_indent=indent)
        return f"{scheme}\n{why}"
    simulated = " (simulated statistics)" if run.statistics.startswith("simulated") else ""
    what = "E-values of Forward scores" if run.is_sensitive else "E-values"
    return f"{scheme}; {what} for {counted(run.search_space, 'residue')}{simulated}"


def _treatment(run: RunInfo) -> str:
    """Masking and composition correction, if a run has them; runs of older programs do not have these parameters."""
    mask = run.parameters.get("mask")
    masked = "" if mask in (None, "none") else f"; queries masked ({run.parameters.get('mask_mode')}) by {mask}"
    return masked + ("; composition corrected" if run.parameters.get("composition") == "bias" else "")


def search_facts(run: RunInfo) -> dict[str, str]:
    """The database, the scoring, and the frames of a translated search, by their names."""
    facts = {"Database": database_line(run), "Scoring": scoring_line(run), "Frames": _frames_line(run)}
    return {name: fact for name, fact in facts.items() if fact is not None}


def _frames_line(run: RunInfo) -> str | None:
    """The translated side and the genetic code; None if neither side was translated."""
    if run.translates is None:
        return None
    what = {"query": "the query", "subject": "every subject", "both": "the query and every subject"}[run.translates]
    strand = run.parameters.get("strand")
    some = f", of the query those of its {strand} strand" if run.translates != "subject" and strand != "both" else ""
    return f"{what} translated in six frames{some}; genetic code {run.genetic_code}"


def rounds_line(run: RunInfo, query: QueryResult) -> str | None:
    """The number of rounds of an iterated search and how they ended; None if it was not iterated."""
    if run.iterations == 1:
        return None
    limit = f"{run.parameters.get('inclusion_evalue'):g}"
    if query.n_rounds == 1:
        return f"1; converged, because no subject has an E-value of at most {limit}"
    if query.converged:
        return f"{query.n_rounds}; converged, because the last one found no new subject with E <= {limit}"
    return f"{query.n_rounds}; not converged, the last one found new subjects with E <= {limit}"


def hits_line(run: RunInfo, query: QueryResult, n_subjects: int | None = None, n_hits: int | None = None) -> str:
    """The numbers of subjects that passed and that are shown, or the reason why there is none.

    ``n_subjects`` and ``n_hits`` are the numbers of subjects and of alignments of the result; by default, ``query``
    contains all its hits.
    """
    given = run.parameters
    limit = given.get("evalue")
    if run.lam is None or limit in (None, "inf"):
        ruled, advice = "a score above 0", ""
    else:
        ruled, advice = f"an E-value of at most {limit:g}", "; a larger --evalue shows weaker ones"
    least = [
        f"{given[name]:g} {unit}" for name, unit in (("min_score", "score"), ("min_bits", "bits")) if given.get(name)
    ]
    if least:
        ruled, advice = f"{ruled} and at least {' and '.join(least)}", ""
    subjects = counted(run.database.n_subjects, "subject")
    chosen = given.get("chosen_subjects")
    if isinstance(chosen, int):
        subjects = counted(chosen, "chosen subject")
    if given.get(ALL_AGAINST_ALL):
        subjects = "the subjects that are not longer"
    if query.n_stored is not None:
        subjects = counted(query.n_stored, "stored subject")
    if query.n_passed == 0:
        return f"none of {subjects} has {ruled}{advice}"
    has = "has" if query.n_passed == 1 else "have"
    shown = query.n_subjects if n_subjects is None else n_subjects
    n_alignments = len(query.hits) if n_hits is None else n_hits
    several = f", with {counted(n_alignments, 'alignment')}" if run.orders_alignments and n_alignments > shown else ""
    by_score = " by score" if loses_subjects(run, query, shown) else ""
    most = "up to " if not by_score and shown < query.n_passed and _counts_by_score(run, query) else ""
    return f"{most}{query.n_passed:,} of {subjects} {has} {ruled}{by_score}; {_shown(run, query, shown)}{several}"


def filters_alignments(run: RunInfo) -> bool:
    """Whether a run reports only hits whose alignments pass a filter."""
    return Limits.of_run(run.parameters, run.database.alphabet).filter_alignments


def adjusts_evalues(run: RunInfo) -> bool:
    """Whether E-values were adjusted for composition, after the subjects that passed were counted."""
    if run.lam is None or run.iterations > 1 or run.is_sensitive:
        return run.iterations > 1 or run.is_sensitive
    return run.parameters.get("composition") == "adjust" and run.aligned_alphabet == "protein"


def loses_subjects(run: RunInfo, query: QueryResult, shown: int) -> bool:
    """Whether some of the subjects that passed by score are not shown because their E-values were adjusted."""
    return _counts_by_score(run, query) and shown < min(query.n_passed, int(run.parameters["top"] or 0))


def _counts_by_score(run: RunInfo, query: QueryResult) -> bool:
    """Whether the subjects that passed were counted by their scores, before E-values were adjusted."""
    return query.n_stored is None and adjusts_evalues(run)


class ListEnds:
    """Counts the lists of a run that end at ``--top``, and the subjects behind their ends."""

    def __init__(self, run: RunInfo) -> None:
        self._run = run
        self._n_queries = 0
        self._n_lists = 0
        self._n_subjects = 0

    def count(self, n_subjects: int, n_passed: int) -> None:
        """Count a list of ``n_subjects`` of the ``n_passed`` subjects that passed."""
        n_further = n_left_out(self._run.parameters.get("top"), n_subjects, n_passed)
        self._n_queries += 1
        self._n_lists += n_further > 0
        self._n_subjects += n_further

    def message(self, how: str) -> str | None:
        """What is left out, and ``how`` to see it; None if nothing is."""
        if not self._n_lists:
            return None
        lists = "the list ends" if self._n_queries == 1 else f"{self._n_lists:,} of {self._n_queries:,} lists end"
        if self._n_queries > 1 and self._n_lists == 1:
            lists = f"1 of {self._n_queries:,} lists ends"
        # Subjects are counted by their scores, before E-values are adjusted and alignments filtered.
        may_fail = adjusts_evalues(self._run) or filters_alignments(self._run)
        most = "up to " if may_fail and self._n_subjects > 1 else ""
        passes = "passes" if self._n_subjects == 1 else "pass"
        further = f"{most}{counted(self._n_subjects, 'further subject')} {passes}"
        them = "it" if self._n_subjects == 1 else "them"
        return f"{lists} at --top {self._run.parameters['top']}; {further}, and {how} lists {them}"


def _shown(run: RunInfo, query: QueryResult, shown: int) -> str:
    if loses_subjects(run, query, shown):
        after = "after the adjustment for composition" + (" and the filters" if filters_alignments(run) else "")
        if not shown:
            return f"none remains {after}"
        return f"{shown:,} {'remains' if shown == 1 else 'remain'} {after}"
    if not filters_alignments(run):
        if shown >= query.n_passed:
            return "it is shown" if query.n_passed == 1 else "all are shown"
        return "the best one is shown" if shown == 1 else f"the best {shown:,} are shown"
    if not shown:
        return "no alignment passes the filters"
    best = "the best " if shown >= int(run.parameters["top"] or 0) else ""
    if shown == 1:
        return f"{best}one whose alignment passes the filters is shown"
    return f"{best}{shown:,} whose alignments pass the filters are shown"
