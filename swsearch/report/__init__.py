"""Reports: a run and a stream of query results as text, one module for each format.

Most formats write each query as it comes, so a report of a million queries takes the memory of one. Formats print the
hits and everything that determines them, but never the engine, threads, times or paths. So the same search gives the
same bytes with every engine and on every machine. A database is called by the last part of its path.
"""
