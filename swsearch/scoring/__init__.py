"""Scoring: substitution matrices, gap costs, and the scheme that holds both."""
