"""Exhaustive Smith-Waterman search of protein and DNA databases.

The data's way, and the folder of each step:

===============  ===============================================================================
FASTA            ``sequences``  alphabets, records, reading
scoring          ``scoring``    substitution matrices, gap costs
packed database  ``database``   the format, building, memory-mapped reading, partitions
query profile    ``query``      scores of every query position against every letter
engine           ``engine``     scores of every subject: ``reference``, ``cpu``, ``cuda``
top hits         ``hits``       the records: score columns, hits, alignments, results
traceback        ``alignment``  coordinates and CIGAR of reported hits, and the check that rescores them
statistics       ``statistics`` bit scores and E-values
composition      ``search``     the steps above in order, the exact top N
store            ``store``      runs and hits in SQLite or PostgreSQL
report           ``report``     one file a format
shell            ``cli``        the ``swsearch`` command
===============  ===============================================================================
"""

__version__ = "0.1.0"
