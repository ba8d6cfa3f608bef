"""Reports: a run and a stream of query results as text, one module a format.

A format writes each query as it comes and holds none, so a report of a million queries takes the memory of one. Formats
print what decides the hits and the hits; never the engine, threads, times or paths, so a report is the same bytes
whatever computed it and wherever. A database goes by the last part of its path.
"""
