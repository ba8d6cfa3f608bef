"""Hostile input: files and arrays that no sound program wrote, and what the program makes of them.

``databases``       packed databases, damaged and crafted, under every command that opens one
``parsers``         every text that is read: sequences, matrices, profiles, lists, taxonomies, CIGARs, catalogues
``foreign_values``  values in a store of hits that no program wrote
``arrays``          arguments of the native module that do not fit
``native``          the native kernels under sanitizers, driven by bytes

Each module has a function for one trial, and ``run``, a part of the campaign. ``guided`` lets coverage lead the trials
of parsers (Atheris); ``checks`` and ``mutation`` are what both do with an input. ``regressions`` holds inputs that once
failed, a folder for each target; ``test_fuzz.py`` repeats these and the first trials of each part.
"""
