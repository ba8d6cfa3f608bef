"""The store: runs, queries and ranked hits in SQLite or PostgreSQL, and the searches of a service.

:class:`~swsearch.store.store.Store` takes and returns the records of :mod:`swsearch.hits`; rows and connections are
private to this package. Every statement is plain SQL. SQLAlchemy reads URLs and keeps the connections to PostgreSQL,
and Alembic upgrades a store; a store in an ordinary file imports neither.

======================  ================================================================================
module                  noun
======================  ================================================================================
``store``               the store: its connections and transactions, its repositories as attributes
``driver``              plain statements, SQLite's settings, messages of errors
``connections``         where a store is; connections and transactions
``rows``, ``schema``    tables, types of columns and values of rows; creation, revision and upgrade
``runs``                ``store.runs``: the record of a run, who works on it, which may be deleted
``results``             ``store.results``: queries and hits, pages and columns of them
``searches``            ``store.searches``: what was submitted; records of it are in ``search_records``
``queue``               ``store.queue``: claim, complete, retry; ``scheduling`` says whose turn it is
``accounts``            ``store.accounts``: tokens of owners, links to searches
``staged_store``        stores on network file systems
======================  ================================================================================
"""
