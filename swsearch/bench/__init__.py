"""The benchmarks of ``swsearch bench``: workloads, all kernels on the same data, and comparison with other programs.

Only the command line imports this package.
"""
