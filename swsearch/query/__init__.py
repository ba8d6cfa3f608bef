"""Query profiles: the scores of a query against every subject letter; masking and composition correction."""
