"""Reports: a run and its query results, written as text.

``formats``    the table of the formats; a format that is chosen is imported by its row
``base``       :class:`Step`, what is done with each result of a run, and :class:`Report`, the step that is the base of
               all formats; :class:`ReportContext` is what a report reads beside results
``fields``     the columns of the tables, which ``tabular`` and ``parquet`` write
``taxa``       the organisms of a hit and the taxon of a query, for columns, ``query_taxa`` and ``taxa_html``
``summary``    sentences that formats share; numbers and rows of alignments are those of :mod:`swsearch.hits.formatting`
``exons``      the parts of a chain with introns between splice sites, for ``genome``
``row_filter``   the rows that a multiple alignment of ``anchored`` keeps
``narrowing``, ``pairing``   stored results with fewer hits; alignments of complexes
other modules   a format, or several of one family

Most formats write each query as soon as its result is available, so a report of a million queries needs the memory of
one. Formats print the hits and everything that determines them, but never the engine, threads, times or paths.
Therefore the same search gives the same bytes with every engine and on every machine. The name of a database is the
last part of its path.
"""
