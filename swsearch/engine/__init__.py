"""Engines, which score queries against subjects: one protocol with a reference, a CPU and a CUDA implementation."""
