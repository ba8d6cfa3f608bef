"""The options of ``swsearch allpairs``, ``cluster`` and ``rbh``, whose queries are sequences of a database.

Those of their searches, then those of their runs; :func:`swsearch.cli.search_arguments.takes_arguments` adds them to
the commands.
"""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.cli import options, store_options
from swsearch.cli.search_arguments import ClusterRunChoice, SearchChoice
from swsearch.search import defaults


@dataclass(frozen=True, eq=False, repr=False)
class PairSearchArguments(SearchChoice):
    """The options of a search of all against all: those of a search that have a meaning for pairs of sequences."""

    evalue: options.Evalue = defaults.PAIR_EVALUE
    strand: options.Strand = defaults.STRAND
    matrix: options.Matrix = None
    match: options.Match = None
    mismatch: options.Mismatch = None
    gap_open: options.GapOpen = None
    gap_extend: options.GapExtend = None
    dbsize: options.DbSize = None
    mask: options.Mask = defaults.MASK
    mask_mode: options.MaskMode = defaults.MASK_MODE
    composition: options.Composition = defaults.COMPOSITION
    min_score: options.MinScore = None
    min_bits: options.MinBits = None
    min_identity: options.MinIdentity = None
    min_query_coverage: options.MinQueryCoverage = None
    min_subject_coverage: options.MinSubjectCoverage = None
    min_alignment_length: options.MinAlignmentLength = None
    min_length: options.MinLength = None
    max_length: options.MaxLength = None
    id_pattern: options.IdPattern = None
    include: options.Include = None
    exclude: options.Exclude = None
    taxid: options.Taxid = None
    taxid_map: options.TaxidMap = None
    taxonomy: options.Taxonomy = None
    engine: options.Engine = "auto"
    threads: options.Threads = None
    devices: options.Devices = None
    kernel: options.Kernel = "strip"
    no_bound: options.NoBound = False
    partition_residues: options.PartitionResidues = None
    store: store_options.Store = store_options.DEFAULT_STORE
    quiet: options.Quiet = False

    @property
    def cuts_lists(self) -> bool:
        """Whether a list of hits may end where a larger ``--top`` would continue it: there is no such option."""
        return False

    @property
    def top(self) -> int:
        """The number of subjects of a query: no pair is cut off."""
        return defaults.EVERY_SUBJECT


@dataclass(frozen=True, eq=False, repr=False)
class BestHitSearchArguments(PairSearchArguments):
    """The options of a search for the best hit of each query."""

    @property
    def top(self) -> int:
        """The number of subjects of a query."""
        return 1


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonRunArguments(ClusterRunChoice):
    """The options of a run whose queries are sequences of a database. The command itself writes what it finds."""

    resume: options.Resume = None
    out: options.Out = None
    events: options.Events = None
    stage_store: store_options.StageStore = "auto"
    cluster: options.Cluster = None
    slices: options.Slices = "auto"
    deadline: options.Deadline = defaults.DEADLINE_SECONDS


@dataclass(frozen=True, eq=False, repr=False)
class ReciprocalRunArguments(ComparisonRunArguments):
    """The options of the two runs whose best hits are compared, and of the report of the reciprocal ones."""

    format_name: options.Format = "blast6"
    fields: options.Fields = None
    width: options.Width = None


@dataclass(frozen=True, eq=False, repr=False)
class PairRunArguments(ReciprocalRunArguments):
    """The options of a run of all against all, which prints one line for each pair."""

    lca_top: options.LcaTop = None
    shard: options.Shard = "1/1"
