"""The CPU engine: one subject a SIMD lane, several threads."""
