"""Alignments of reported hits: traceback, coordinates on bases, and an independent check of their scores."""
