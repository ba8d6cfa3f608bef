"""A search with several worker processes: of one machine with several GPUs, or of a Dask cluster.

:func:`open_cluster_searcher` is the entry point; ``swsearch batch --cluster`` calls it. The process that calls it is
the *driver*: it reads the queries, distributes them to the workers, and receives the results in their order. A worker
is a process that the driver starts, or any ``dask worker`` in whose environment this program is installed.

====================  ===================================================================================
module                holds
====================  ===================================================================================
``cluster_searcher``  a planned search with workers as its engine
``dispatcher``        batches and their parts, which worker gets which; lost and silent workers
``connection``        the interface of a connection to workers
``dask_connection``   the connection to a Dask cluster
``processes``         the connection to processes that the driver starts on its machine
``tasks``             the messages between the driver and a worker
``residents``         what a worker keeps open, and the requests that it performs
====================  ===================================================================================

The entry point is imported when it is used: workers start their GPUs before they import the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swsearch.cluster.cluster_searcher import ClusterSearcher, open_cluster_searcher

__all__ = ["ClusterSearcher", "open_cluster_searcher"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from swsearch.cluster import cluster_searcher

    return getattr(cluster_searcher, name)
