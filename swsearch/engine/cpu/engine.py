"""TEMPORARY."""

from swsearch import _native
import numpy as np
from swsearch.engine.protocol import EngineInfo
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock


class CpuEngine(ReferenceEngine):
    name = "cpu"

    def __init__(self, threads):
        self.threads = threads

    def score(self, profiles, partition, floors=None, progress=None):
        out = []
        for i, p in enumerate(profiles):
            r = _native.score_ends(
                p.rows,
                p.table,
                p.gap.open,
                p.gap.extend,
                partition.residues,
                np.ascontiguousarray(partition.starts),
                np.ascontiguousarray(partition.lengths),
                self.threads,
                progress,
            )
            b = ScoreBlock(partition.subject_index, np.array([x[0] for x in r], np.int32))
            out.append(b if floors is None else b.at_least(floors[i]))
        return out


def cpu_info():
    return EngineInfo("cpu", True, True, "temporary")
