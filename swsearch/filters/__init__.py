"""Filters: which subjects are aligned (length, identifiers, taxonomy), and which alignments are reported."""
