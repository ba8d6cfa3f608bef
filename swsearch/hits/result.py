"""The results of a search and their computational cost, as plain records that the store saves and reports print."""

from __future__ import annotations

import base64
import os
import shlex
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from operator import attrgetter
from pathlib import PurePath
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.hit import Hit
from swsearch.hits.limits import by_evalue, shortest_long_subject
from swsearch.options import SEARCH_FILES
from swsearch.sequences.alphabet import N_AMINO_ACIDS
from swsearch.sequences.genetic_code import STANDARD_CODE


@dataclass(frozen=True, eq=False)
class Pssm:
    """The scores of the twenty amino acids at each position of a query.

    Attributes
    ----------
    scores : int8 array, shape (length, 20)
        In the order of the alphabet, ``ARNDCQEGHILKMFPSTWYV``, and in the units of the search's matrix.
    has_relatives : bool
        Whether they come from more than one sequence, or may do so. It is not stored.
    """

    scores: NDArray[np.int8]
    has_relatives: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pssm) and np.array_equal(self.scores, other.scores)

    def __hash__(self) -> int:
        return hash(self.scores.tobytes())

    def as_text(self) -> str:
        """The scores as a store keeps them: compressed, in base 64."""
        return base64.b64encode(zlib.compress(np.ascontiguousarray(self.scores).tobytes())).decode("ascii")

    @classmethod
    def from_text(cls, text: str, length: int) -> Self:
        """The inverse of :meth:`as_text`, for a query of ``length`` positions.

        Raises
        ------
        ValueError
            The text is damaged, or the PSSM is that of a query of another length.
        """
        try:
            values = zlib.decompress(base64.b64decode(text, validate=True))
        except zlib.error as error:
            raise ValueError(f"the scores of a PSSM are damaged: {error}") from error
        if len(values) != length * N_AMINO_ACIDS:
            raise ValueError(f"the scores of a PSSM are damaged: {len(values)} values for {length} positions")
        return cls(np.frombuffer(values, dtype=np.int8).reshape(-1, N_AMINO_ACIDS))


@dataclass(frozen=True)
class SearchStats:
    """The computational cost of one query.

    Attributes
    ----------
    cells : int
        Number of cells of the alignment matrices that were scored, over all strands or frames.
    score_seconds, total_seconds : float
        Wall time of the engine, and of all steps for this query.
    n_rescored : int
        Number of subjects scored again in a wider integer type.
    n_scores : int
        Number of scores that were needed: subjects times strands or frames. Not stored, and 0 in stored results.
    n_bounded : int
        Number of these that were not computed, because a bound proved that they are too low. Not stored either.
    """

    cells: int
    score_seconds: float
    total_seconds: float
    n_rescored: int
    n_scores: int = field(default=0, compare=False)
    n_bounded: int = field(default=0, compare=False)

    def __add__(self, other: SearchStats) -> SearchStats:
        """The cost of both, as of two rounds or of two slices of a database."""
        return SearchStats(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def gcups(self) -> float:
        """Billions of cell updates per second of engine time."""
        return self.cells / self.score_seconds / 1e9 if self.score_seconds > 0 else 0.0


@dataclass(frozen=True)
class QueryResult:
    """One query and its ranked hits.

    Attributes
    ----------
    number : int
        Index of the query in the run, from 0.
    header : str
        The query's header without ``>``.
    letters : str
        The query as written.
    hits : tuple of Hit
        Hits ordered by ``rank``, and those of one subject by ``hsp``.
    n_passed : int
        Number of subjects that passed the filters on subjects, scores and E-values, before alignments were filtered and
        the list was cut to the top N.
    stats : SearchStats
    n_rounds : int
        Number of rounds of an iterated search; 1 if it was not iterated.
    converged : bool
        Whether the last round found no subject to include that was not included before.
    pssm : Pssm or None
        The profile that the last round searched with; None if that was the query itself.
    n_stored : int or None
        Number of subjects of the stored result of which this is a part (:mod:`swsearch.report.narrowing`); ``n_passed``
        then counts those of them that passed. None if this is the result of the search.
    """

    number: int
    header: str
    letters: str
    hits: tuple[Hit, ...]
    n_passed: int
    stats: SearchStats
    n_rounds: int = 1
    converged: bool = False
    pssm: Pssm | None = None
    n_stored: int | None = None

    @property
    def length(self) -> int:
        """Query length in residues, or in bases if it is DNA."""
        return len(self.letters)

    @property
    def is_iterated(self) -> bool:
        """Whether this is the result of an iterated search, whose first round converges if it is the only one."""
        return self.n_rounds > 1 or self.converged

    @property
    def n_subjects(self) -> int:
        """Number of subjects among the hits."""
        return self.hits[-1].rank if self.hits else 0

    @property
    def by_subject(self) -> list[tuple[Hit, ...]]:
        """The hits of each subject, in their order."""
        return [tuple(several) for _, several in groupby(self.hits, key=attrgetter("rank"))]

    def alignments(self, rank: int) -> tuple[Hit, ...]:
        """The alignments of the subject with this rank, best first."""
        first = bisect_left(self.hits, rank, key=lambda hit: hit.rank)
        return self.hits[first : bisect_right(self.hits, rank, lo=first, key=lambda hit: hit.rank)]


def n_left_out(top: object, n_subjects: int, n_passed: int) -> int:
    """Number of subjects that passed and are behind the end of a list of ``top`` subjects; 0 if it has fewer.

    Parameters
    ----------
    top : object
        The parameter of the run; None for a list that is not cut.
    n_subjects, n_passed : int
        Numbers of subjects that are listed, and that passed.
    """
    is_full = isinstance(top, int) and n_subjects >= top
    return max(0, n_passed - n_subjects) if is_full else 0


FILES_READ: Final = "files_read"
"""Parameter with the paths of all files that the search has read, as words of a command line; absent if there are none.
They have no influence on the hits, and protect these files from reports of the run."""
TAXONOMY_DIGEST: Final = "taxonomy_digest"
"""Parameter with the SHA-256 of the taxonomy that the searched database has stored; absent if it has none."""
CONTEXTS_DIGEST: Final = "contexts_digest"
"""Parameter with the SHA-256 of the library of contexts; absent if it is that of the program."""


ALL_AGAINST_ALL: Final = "all_against_all"
"""Parameter of a run whose queries are the subjects, each compared only with those before it
(:mod:`swsearch.query.profile`); other runs do not have it."""


DIGEST_JOINT: Final = "+"
"""Stands between the digests of several databases that are searched as one."""


@dataclass(frozen=True)
class DatabaseInfo:
    """The database that a run searched, or several that it searched as one.

    Attributes
    ----------
    paths : tuple of str
        The path of each database, absolute and without symbolic links; in runs of older programs, as the user wrote it.
        Reports print only :attr:`name`.
    digests : tuple of str
        SHA-256 of the content of each database.
    generation : int
        The sum of the generations of several databases.
    alphabet : str
        ``protein`` or ``dna``.
    n_subjects, n_residues : int
        Those of all databases together.
    """

    paths: tuple[str, ...]
    digests: tuple[str, ...]
    generation: int
    alphabet: str
    n_subjects: int
    n_residues: int

    @property
    def path(self) -> str:
        """The path, for users; those of several databases are words of a command line."""
        return self.paths[0] if len(self.paths) == 1 else shlex.join(self.paths)

    @property
    def digest(self) -> str:
        """The digest, for users; those of several databases are joined by ``+``."""
        return DIGEST_JOINT.join(self.digests)

    @property
    def names(self) -> tuple[str, ...]:
        """The last part of each path."""
        return tuple(PurePath(path).name or path for path in self.paths)

    @property
    def name(self) -> str:
        """The last part of the path. Reports print it because it does not depend on how the path was written.

        The names of several databases are separated by blanks, as BLAST prints them.

        >>> DatabaseInfo(("/data/proteins.db",), ("0af3",), 1, "protein", 2, 700).name
        'proteins.db'
        """
        return " ".join(self.names)


@dataclass(frozen=True)
class RunInfo:
    """The record of one run: parameters of the search, scoring, statistics, database and program.

    It determines the hits completely, so that a stored hit can be reproduced. ``engine`` and ``threads`` do not affect
    the hits; they are stored for information, and no report of hits prints them.

    Attributes
    ----------
    command : str
        The command line, or ``python`` for a call from a script.
    parameters : dict of str to str, int, float, bool or None
        Search options by their names, as values that JSON can represent.
    matrix : str
        Name of the substitution matrix.
    matrix_scores : str
        The matrix as text in NCBI's format, so that positives can be shown without the matrix file.
    gap_open, gap_extend : int
    lam, k : float or None
        Karlin-Altschul λ and K of the bit scores; None if the scheme has no statistics.
    statistics : str
        The source of λ and K, or the reason why there are none.
    search_space : int
        Database size to which E-values refer, in residues, multiplied by the number of comparisons (strands or frames)
        of a query and a subject.
    database : DatabaseInfo
    program : str
        Name and version of the program.
    engine : str
    threads : int
    """

    command: str
    parameters: dict[str, str | int | float | bool | None]
    matrix: str
    matrix_scores: str
    gap_open: int
    gap_extend: int
    lam: float | None
    k: float | None
    statistics: str
    search_space: int
    database: DatabaseInfo
    program: str
    engine: str
    threads: int

    def differences(self, found: RunInfo) -> str:
        """The differences by which ``found`` is a different search; empty if there are none.

        Engine, threads, command and paths of files are ignored.
        """
        # Instead of these parameters, the values that they determine are compared.
        # A taxonomy changes reports and the choice of subjects, which is compared, but no hit.
        decided = {"matrix", "match", "mismatch", "gap_open", "gap_extend", TAXONOMY_DIGEST, FILES_READ, *SEARCH_FILES}
        names = sorted({*self.parameters, *found.parameters} - decided)
        pairs: dict[str, tuple[object, object]] = {
            "database": (self.database.digests, found.database.digests),
            "matrix": (self.matrix_scores, found.matrix_scores),
            "gap costs": ((self.gap_open, self.gap_extend), (found.gap_open, found.gap_extend)),
            "search space": (self.search_space, found.search_space),
            "program": (self.program, found.program),
            **{
                f"--{name.replace('_', '-')}": (self.parameters.get(name), found.parameters.get(name)) for name in names
            },
        }
        if "--chosen-digest" in pairs:
            pairs["the choice of subjects"] = pairs.pop("--chosen-digest")
            del pairs["--chosen-subjects"]
        if "--all-against-all" in pairs:
            pairs["what queries are compared with"] = pairs.pop("--all-against-all")
        if "--contexts-digest" in pairs:
            pairs["--contexts"] = pairs.pop("--contexts-digest")
        if "--query-digest" in pairs:
            pairs["what the profiles score"] = pairs.pop("--query-digest")
        return ", ".join(f"{name} differs" for name, (one, other) in pairs.items() if one != other)

    @property
    def reported_parameters(self) -> dict[str, str | int | float | bool | None]:
        """The parameters without paths, because these depend on the folder in which a search was started.

        A matrix file and a library of contexts are represented by their names. Files for filters on subjects are
        omitted; ``chosen_digest`` represents them.
        """
        paths = (FILES_READ, *SEARCH_FILES)
        shown = {name: value for name, value in self.parameters.items() if name not in paths}
        for name in ("matrix", "contexts"):
            if isinstance(path := self.parameters.get(name), str):
                shown[name] = os.path.basename(path)
        return shown

    @property
    def sources(self) -> list[str]:
        """The files and databases that the search has read: paths, URLs of databases, and ``<stdin>`` or ``<pipe>``."""
        read = self.parameters.get(FILES_READ)
        with suppress(ValueError):
            return [*self.database.paths, *shlex.split(str(read or ""))]
        return [*self.database.paths]

    def having_read(self, paths: Sequence[str]) -> RunInfo:
        """The record of a search that has read these files."""
        return replace(self, parameters={**self.parameters, FILES_READ: shlex.join(paths)}) if paths else self

    @property
    def translates(self) -> str | None:
        """The translated side: ``query``, ``subject``, ``both`` or None."""
        translate = self.parameters.get("translate")
        return None if translate is None else str(translate)

    @property
    def genetic_code(self) -> int | None:
        """NCBI's number of the genetic code of the translation; None if neither side was translated."""
        return int(self.parameters.get("genetic_code") or STANDARD_CODE) if self.translates else None

    @property
    def orders_alignments(self) -> bool:
        """Whether lists are in the order of alignments; with ``--max-hsps``, they are in that of subjects."""
        return self.parameters.get("max_hsps") is None

    def listed(self, query: QueryResult) -> Sequence[Hit]:
        """The hits of a query in the order of a list.

        That is the order of the E-values of alignments, or with ``--max-hsps`` that of subjects, each with its
        alignments. Reports that group the alignments of a subject always have the second.
        """
        return by_evalue(query.hits) if self.orders_alignments else query.hits

    def chains(self, query: QueryResult) -> list[list[Hit]]:
        """The hits of a query in the order of a list, those of a chain together (:mod:`swsearch.hits.chains`)."""
        if self.max_intron is None:
            return [[hit] for hit in self.listed(query)]
        from swsearch.hits.chains import chains_of  # only here: most runs have no chains

        return chains_of(self.listed(query), self.max_intron)

    @property
    def lists_several(self) -> bool:
        """Whether a subject may have several alignments."""
        if not self.orders_alignments:
            return self.parameters["max_hsps"] != 1
        return shortest_long_subject(self.database.alphabet, self.translates) is not None

    @property
    def counts_alignments(self) -> bool:
        """Whether the alignments of each subject were counted (:attr:`swsearch.hits.hit.Hit.n_hsps`)."""
        return bool(self.parameters.get("count_hsps"))

    @property
    def max_intron(self) -> int | None:
        """Largest number of bases between two alignments of a chain; None if there are no chains."""
        value = self.parameters.get("max_intron")
        return None if value is None else int(value)

    @property
    def iterations(self) -> int:
        """Largest number of rounds of a query; 1 if the search was not iterated."""
        return int(self.parameters.get("iterations") or 1)

    @property
    def is_sensitive(self) -> bool:
        """Whether subjects were ranked by their Forward scores."""
        return bool(self.parameters.get("sensitive"))

    @property
    def query_alphabet(self) -> str:
        """The alphabet of the queries, ``protein`` or ``dna``."""
        return "dna" if self.translates in ("query", "both") else self.aligned_alphabet

    @property
    def aligned_alphabet(self) -> str:
        """The alphabet of the aligned sequences after any translation, ``protein`` or ``dna``."""
        return "protein" if self.translates else self.database.alphabet
