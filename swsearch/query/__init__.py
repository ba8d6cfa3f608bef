"""Queries: their profiles, masking and composition correction, and profile queries that are read or estimated."""
