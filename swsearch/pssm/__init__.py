"""Position-specific queries, which are read from a PSSM or estimated from a multiple alignment."""
