"""The store: runs, queries and ranked hits in SQLite or PostgreSQL.

:class:`~swsearch.store.repository.HitStore` takes and returns the records of :mod:`swsearch.hits`; nobody outside this
folder sees a row or a session. SQLAlchemy is imported when a store is opened, Alembic when one is upgraded.
"""
