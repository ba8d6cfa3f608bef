"""Pairs: two sequences or texts against each other over all their cells, local, global, semi-global, edit or LCS.

===============  ==================================================================================
``scoring``      scores of letters and costs of gaps, and the named cost sets
``sequence``     a side of a pair: residues of an alphabet, or a text as it is written
``align``        modes, pairs as arrays, and the best alignments by a backend
``aligner``      many pairs one after another, each by the backend that suits it
``matrix_file``  the table of a small pair
``edits``        an alignment in words, and the common subsequence
``report``       table, tsv, json, jsonl, pairwise
``dotplot``      a picture of a pair
===============  ==================================================================================

The backends are ``swsearch.engine.cpu.pairs``, ``swsearch.engine.reference_pairs``, and ``short_pairs``,
``diamond_pairs`` and ``wavefront`` in ``swsearch.engine.cuda``. docs/design/diamond.md defines the modes and which of
several optimal alignments is given.
"""
