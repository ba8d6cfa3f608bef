"""Benchmarks behind ``swsearch bench``: workloads, every kernel on the same data, and other programs beside them.

The command line alone imports this package.
"""
