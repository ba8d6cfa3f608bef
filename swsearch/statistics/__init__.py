"""Bit scores and E-values: Karlin-Altschul statistics with the finite-size correction."""
