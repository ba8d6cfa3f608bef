"""Scoring: substitution matrices, gap costs, the scheme of both, and the statistics of scores (E-values)."""
