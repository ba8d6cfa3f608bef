"""Scoring: substitution matrices, gap costs, and the scheme that combines both."""
