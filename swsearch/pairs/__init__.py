"""Pairs: exact alignment of two sequences or texts over all cells: local, global, semi-global, edit distance or LCS.

==================  ===============================================================================
module              holds
==================  ===============================================================================
``sequence``        a sequence of a pair: residues of an alphabet, or the letters of a text
``pair_alignment``  modes and costs, pairs as arrays, and the best alignments from a backend
``aligner``         alignment of a stream of pairs, each by a suitable backend
``pair_matrices``   the score matrix of a small pair, and a dot plot, as files
``pair_report``     table, tsv, json, jsonl, pairwise; an alignment as a list of edits
==================  ===============================================================================

The backends are ``swsearch.engine.cpu.pairs``, ``swsearch.engine.reference``, and ``short_pairs``, ``diamonds``
and ``wavefront`` in ``swsearch.engine.cuda.pairs``. docs/design/diamond.md defines the modes, and which one of several
optimal alignments is returned.
"""
