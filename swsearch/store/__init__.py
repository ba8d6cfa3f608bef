"""The store: runs, queries and ranked hits in SQLite or PostgreSQL, and the searches of a service.

:class:`~swsearch.store.store.Store` takes and returns the records of :mod:`swsearch.hits`; rows and connections are
private to this package. SQLAlchemy is imported when a store is opened, Alembic when one is upgraded.

======================  ================================================================================
module                  noun
======================  ================================================================================
``store``               the store: its repositories as attributes
``session``             the connections of an open store; transactions
``connections``         URLs, engines, SQLite's settings, fast inserts, messages of errors
``models``, ``schema``  tables and types of columns; creation, revision and upgrade
``runs``                ``store.runs``: the record of a run, who works on it, which may be deleted
``results``, ``views``  ``store.results``: queries and hits; ``store.views``: pages and columns of them
``searches``            ``store.searches``: what was submitted; records of it are in ``search_records``
``queue``               ``store.queue``: claim, complete, retry; ``scheduling`` says whose turn it is
``accounts``            ``store.accounts``: tokens of owners, links to searches
``staged_store``        stores on network file systems
======================  ================================================================================
"""
