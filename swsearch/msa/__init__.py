"""Multiple alignments as arrays of codes: the selection of rows, and the diversity of an alignment.

=============  ===================================================================================
``row_filter``  :class:`RowFilter`: which rows of an alignment are kept, by HH-suite's definitions
``diversity``   Neff and the number of amino acids of a column
=============  ===================================================================================

An alignment is a uint8 array of shape (n_rows, n_columns): residue codes of an alphabet, other letters, and 31 for a
gap. Row 0 is the query. This package knows neither hits nor files; :mod:`swsearch.report.anchored` makes such arrays of
the hits of a query.
"""
