"""Hostile input: files and arrays that no correct program writes, and how the program handles them.

``checks`` states what must hold of every reader of text, ``test_parsers.py`` has inputs of each reader and mutates
them, and ``guided`` leads them by coverage. ``regressions`` holds inputs that failed in the past, in one folder for
each target, which ``test_parsers.py`` repeats.
"""
