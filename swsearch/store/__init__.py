"""The store: runs, queries and ranked hits in SQLite or PostgreSQL.

:class:`~swsearch.store.repository.HitStore` takes and returns the records of :mod:`swsearch.hits`; rows and
sessions are private to this package. SQLAlchemy is imported when a store is opened, Alembic when one is upgraded.
"""
