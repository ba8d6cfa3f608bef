"""Faults of one line that the tests must find: the measure by which tests are added, merged or deleted.

``mutations.txt`` lists them, one for each kind of fault that was ever mended. ``make mutants`` runs the tests of each
with the faulty line in the place of the right one, and names every fault that no test has found.
"""
