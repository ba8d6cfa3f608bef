"""Alignments of reported hits: traceback, CIGAR, and the check that rescores them."""
