"""The CPU engine: one subject per SIMD lane, several threads."""
