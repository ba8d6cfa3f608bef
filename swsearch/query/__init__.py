"""Queries as the engines see them: the profile of scores against every subject letter."""
