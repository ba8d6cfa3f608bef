"""Position-specific queries, read from a PSSM or estimated from a multiple alignment."""
