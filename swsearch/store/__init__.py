"""The store: runs, queries and ranked hits in SQLite or PostgreSQL."""
