"""Hostile input: files and arrays that no correct program writes, and how the program handles them.

``checks`` states what must hold of every reader of text, ``targets`` has the readers with inputs to mutate,
``mutation`` mutates them, and ``guided`` leads them by coverage. ``regressions`` holds inputs that failed in the past,
in one folder for each target, which ``test_parsers.py`` repeats.
"""
