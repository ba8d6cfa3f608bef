"""Pairs: two sequences or texts against each other over all their cells, local, global, semi-global, edit or LCS.

==============  =========================================================================
``scoring``     what letters and gaps are worth, and the named cost sets
``sequence``    what is aligned: residues of an alphabet, or a text as it is written
``align``       one pair through the native kernels or a GPU: score, ends, CIGAR
``batch``       many short pairs at once, on all threads or a GPU
``serial``      whole matrices in NumPy: the reference, and the table of a small pair
``wavefront``   one pair through the GPU's block wavefront
``aligner``     pairs one after another, each the way that suits it
``gpu``         when a pair goes to a GPU, and what is asked of it
``edits``       an alignment in words, and the common subsequence
``report``      table, tsv, json, jsonl, pairwise
``dotplot``     a picture of a pair
==============  =========================================================================

docs/design/diamond.md defines the modes and which of several optimal alignments is given.
"""
