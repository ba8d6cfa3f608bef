"""The store: runs, queries and ranked hits in SQLite or PostgreSQL, and the searches of a service.

:class:`~swsearch.store.store.Store` takes and returns the records of :mod:`swsearch.hits`; rows and connections are
private to this package. A search writes an ordinary file by :mod:`~swsearch.store.run_file` alone; whatever else opens
a store imports SQLAlchemy, and Alembic to upgrade one.

======================  ================================================================================
module                  noun
======================  ================================================================================
``store``               the store: its connections and transactions, its repositories as attributes
``run_file``            how runs are written; a store's file, as a search opens it
``driver``, ``rows``    plain statements, SQLite's settings, messages of errors; the values of rows
``connections``         URLs, engines and transactions of SQLAlchemy
``models``, ``schema``  tables and types of columns; creation, revision and upgrade
``runs``                ``store.runs``: the record of a run, who works on it, which may be deleted
``results``             ``store.results``: queries and hits, pages and columns of them
``searches``            ``store.searches``: what was submitted; records of it are in ``search_records``
``queue``               ``store.queue``: claim, complete, retry; ``scheduling`` says whose turn it is
``accounts``            ``store.accounts``: tokens of owners, links to searches
``staged_store``        stores on network file systems
======================  ================================================================================
"""
