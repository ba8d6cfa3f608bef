"""Reports: a run and a stream of query results, written as text, with one module per format.

Most formats write each query as soon as its result is available, so a report of a million queries needs the memory of
one. Formats print the hits and everything that determines them, but never the engine, threads, times or paths.
Therefore the same search gives the same bytes with every engine and on every machine. The name of a database is the
last part of its path.
"""
