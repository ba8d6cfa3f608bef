"""Filters: selection of the subjects to align (length, identifiers, taxonomy) and of the alignments to report."""
