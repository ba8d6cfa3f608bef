"""Pairs: exact alignment of two sequences or texts over all cells, local, global, semi-global, edit distance or LCS.

===============  ==================================================================================
``scoring``      scores of letters and costs of gaps, and the named cost sets
``sequence``     a sequence of a pair: residues of an alphabet, or a text as it is written
``align``        modes, pairs as arrays, and the best alignments by a backend
``aligner``      a stream of pairs, each by the backend that suits it
``matrix_file``  the score matrix of a small pair as a file
``edits``        an alignment as a list of edits, and the common subsequence
``report``       table, tsv, json, jsonl, pairwise
``dotplot``      a dot-plot of a pair
===============  ==================================================================================

The backends are ``swsearch.engine.cpu.pairs``, ``swsearch.engine.reference_pairs``, and ``short_pairs``,
``diamond_pairs`` and ``wavefront`` in ``swsearch.engine.cuda``. docs/design/diamond.md defines the modes and which of
several optimal alignments is returned.
"""
