"""A run: a search of many queries against a database, with its results stored and written as a report.

A run takes query files and a searcher, numbers the queries from 0, and searches those that are not in the store yet. If
there is a store, each query is committed with its hits as soon as it is searched. A run that was killed can therefore
be resumed at the next query, and the shards of a batch, each with a part of the queries, can be merged into one run
(:mod:`swsearch.merge`); both give the same bytes as one uninterrupted run. Queries with the same letters are searched
once. Queries may be profiles; a run is then resumed only with profiles of the same scores.

``preparation``  reads the query files once, before anything is computed or stored; selects the run of the store to
                 write to, and refuses a run that does not fit
``search``       searches and commits; its entry point is :class:`Run`, whose results are given to the steps of
                 :mod:`swsearch.report.base`
``comparisons``  are steps of searches of all against all: clusters and reciprocal best hits
"""

from swsearch.report.base import Step
from swsearch.run.preparation import Survey, survey
from swsearch.run.search import Run, RunOutcome

__all__ = ["Run", "RunOutcome", "Step", "Survey", "survey"]
