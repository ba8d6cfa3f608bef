"""The CPU engine, which scores one subject per SIMD lane on several threads, and the pair backend of the CPU."""
