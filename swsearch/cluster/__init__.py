"""A search on several workers of a Dask cluster: of one machine with several GPUs, or of many machines.

:func:`open_cluster_searcher` is the entry point; ``swsearch batch --cluster`` calls it. The process that calls it is
the *driver*: it reads the queries, deals them to the workers, and receives the results in their order. A worker is any
``dask worker`` in whose environment this program is installed.

``searcher``    a planned search with the workers of a cluster as its engine
``dispatcher``  which worker gets which part; lost and silent workers
``parts``       what the dispatcher keeps account of
``connection``  what is needed of Dask
``tasks``       what travels between the driver and a worker
``residents``   what a worker keeps open, and what it does
"""

from swsearch.cluster.searcher import ClusterSearcher, open_cluster_searcher

__all__ = ["ClusterSearcher", "open_cluster_searcher"]
