"""Loads one module of swsearch with a line replaced, in a process of the tests and in every process that it starts.

The environment says which: ``SWSEARCH_MUTANT`` is JSON with the name of the module, the right text and the faulty one.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys

MODULE, RIGHT, FAULTY = json.loads(os.environ.get("SWSEARCH_MUTANT", "[null, null, null]"))


class FaultyLoader(importlib.machinery.SourceFileLoader):
    """Compiles the faulty text of a module, and keeps no compiled file of it."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        source = self.get_source(fullname)
        assert source.count(RIGHT) == 1, path
        return compile(source.replace(RIGHT, FAULTY), path, "exec", dont_inherit=True)


class FaultyFinder(importlib.abc.MetaPathFinder):
    """Finds the faulty module; every other module is left to the other finders."""

    def find_spec(self, fullname, path, target=None):
        if fullname != MODULE:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                return importlib.util.spec_from_file_location(
                    fullname, spec.origin, loader=FaultyLoader(fullname, spec.origin),
                    submodule_search_locations=spec.submodule_search_locations,
                )  # fmt: skip
        return None


if MODULE is not None:
    sys.meta_path.insert(0, FaultyFinder())
