"""Fixtures of the command line for the tests of the examples."""

from tests.cli.conftest import few_proteins_db, swsearch

__all__ = ["few_proteins_db", "swsearch"]
