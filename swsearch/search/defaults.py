"""Default values of the search options, for the command line and the library; fast to import, for ``--help``."""

from __future__ import annotations

from typing import Final

TOP: Final = 25
EVALUE: Final = 10.0
PAIR_EVALUE: Final = 0.001
"""Of all against all, whose queries have relatives in the database."""
EVERY_SUBJECT: Final = 2**31 - 1
"""The length of a list that is not cut; a database has fewer subjects."""
TIES: Final = "cut"
STRAND: Final = "both"
MASK: Final = "none"
MASK_MODE: Final = "soft"
COMPOSITION: Final = "adjust"
MAX_HSPS: Final = 1
ITERATIONS: Final = 1
INCLUSION_EVALUE: Final = 0.001
FAMILY_ITERATIONS: Final = 3
FAMILY_EVALUE: Final = 0.1
FAMILY_TOP: Final = 10_000
"""Of deep alignments: as on ColabFold's server."""
DEADLINE_SECONDS: Final = 60.0
"""Of a worker of a cluster that does not answer."""
