"""Domains: which families of a library of hidden Markov models the proteins of a database have, and where.

``annotation``   the search of all models, what is reported of each protein, and the overlaps of its domains
``model_library``   the models of some files, whose scores are kept in the user's cache
``decoding``     envelopes, scores and alignments of one family in some proteins
``domain_report``   the formats
"""
