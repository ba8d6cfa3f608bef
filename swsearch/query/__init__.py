"""Queries as profiles of scores against every subject letter; masking and composition correction."""
