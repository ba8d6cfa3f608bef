"""Scores, ends and paths of pairs of sequences on a GPU.

==================  ============================================================================
module              holds
==================  ============================================================================
``diamonds``        the pair backend for long pairs: best scores, ends and paths by diamonds
``diamond_plan``    the shape of strips and diamonds, and the layout of the letters of pairs
``diamond_launch``  the device memory and the launches of a sweep; what strips save for a path
``diamond_paths``   the traceback of a pair from what strips have saved
``short_pairs``     the pair backend for batches of short pairs
==================  ============================================================================
"""
