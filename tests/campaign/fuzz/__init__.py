"""Hostile input: files and arrays that no correct program writes, and how the program handles them.

``databases``       packed databases, damaged and crafted, under every command that opens one
``parsers``         every text that is read: sequences, matrices, profiles, lists, taxonomies, CIGARs, catalogues
``foreign_values``  values in a store of hits that no program wrote
``arrays``          invalid arguments of the native module
``native``          the native kernels under sanitizers, driven by bytes

Each module has a function for one trial, and ``run``, a part of the campaign. ``guided`` runs the parser trials under
coverage guidance (Atheris); ``checks`` and ``mutation`` hold what both ways use. ``regressions`` holds inputs that
failed in the past, in one folder for each target, which ``test_fuzz.py`` repeats.
"""
