"""Types of the native module; simd/ documents each function beside its code."""
