"""Engines: what scores a query against subjects. One protocol; a reference, a CPU and a CUDA implementation."""
