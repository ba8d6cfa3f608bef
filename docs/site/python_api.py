"""The reference of the Python functions and classes, one page each, made from their docstrings.

The pages are those of ``swsearch.__all__`` and of the classes that these functions take and return. A test fails if a
class that a function returns has no page.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Final

import swsearch

FOLDER: Final = "python"
RELATED: Final = (
    "swsearch.api.SearchResults",
    "swsearch.database.builder.BuildReport",
    "swsearch.database.reader.PackedDatabase",
    "swsearch.hits.hit.Alignment",
    "swsearch.hits.result.RunInfo",
    "swsearch.hits.result.SearchStats",
    "swsearch.domains.annotation.AnnotatedProtein",
    "swsearch.domains.annotation.FoundFamily",
    "swsearch.domains.annotation.FoundDomain",
    "swsearch.domains.decoding.Domain",
    "swsearch.pairs.pair_alignment.PairAlignment",
    "swsearch.search.searcher.Searcher",
    "swsearch.sequences.record.SequenceRecord",
)
"""Classes that public functions take or return, by the paths from which they can be imported."""
PATHS: Final = {
    path.rpartition(".")[2]: path for path in (*(f"swsearch.{name}" for name in swsearch.__all__), *RELATED)
}
"""The objects that have a page: name → path from which it is imported."""
_KINDS: Final = ("Functions", "Classes", "Results and their parts", "Errors")


def python_pages() -> dict[str, str]:
    """The pages: name with suffix → reStructuredText."""
    pages = {}
    kinds: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _KINDS}
    for name, path in PATHS.items():
        kind, page = _page(path)
        pages[f"{FOLDER}/{name}.rst"] = page
        kinds[kind].append((name, _summary(_resolved(path))))
    pages[f"{FOLDER}/index.rst"] = _index(kinds)
    return pages


def home_of(path: str) -> str:
    """The full name of the object at a path: the module that defines it, and its name there."""
    found = _resolved(path)
    return f"{found.__module__}.{found.__qualname__}"


def _resolved(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _page(path: str) -> tuple[str, str]:
    """The kind of an object, and its page."""
    found = _resolved(path)
    name = path.rpartition(".")[2]
    title = f"{name}\n{'=' * len(name)}\n\n"
    if not inspect.isclass(found):
        return "Functions", f"{title}.. autofunction:: {path}\n"
    if issubclass(found, BaseException):
        # The hierarchy is drawn in the docstring of its module.
        module = import_module(found.__module__)
        names = [key for key, one in vars(module).items() if inspect.isclass(one) and issubclass(one, found)]
        entries = "".join(f"\n.. autoexception:: {module.__name__}.{key}\n   :show-inheritance:\n" for key in names)
        return "Errors", f"{title}.. automodule:: {module.__name__}\n{entries}"
    kind = "Results and their parts" if path in RELATED else "Classes"
    return kind, f"{title}.. autoclass:: {path}\n   :members:\n"


def _summary(found: Any) -> str:
    return (inspect.getdoc(found) or "").partition("\n\n")[0].replace("\n", " ")


def _index(kinds: dict[str, list[tuple[str, str]]]) -> str:
    text = [
        "Python\n======\n\n",
        "``import swsearch`` offers the functions of the command line; both give the same hits. The import takes "
        "almost no time: each name is loaded at its first use.\n\n",
        ".. code-block:: python\n\n"
        "   import swsearch\n\n"
        '   for result in swsearch.search_database("queries.fasta", "proteins.db", swsearch.SearchOptions(top=3)):\n'
        "       for hit in result.hits:\n"
        "           print(result.header, hit.rank, hit.subject_id, hit.score, hit.evalue, hit.alignment.cigar)\n\n",
    ]
    for kind, entries in kinds.items():
        text.append(f"{kind}\n{'-' * len(kind)}\n\n.. list-table::\n   :widths: 1 3\n\n")
        text += [f"   * - :doc:`{name}`\n     - {summary}\n" for name, summary in entries]
        text.append("\n")
    names = [name for entries in kinds.values() for name, _ in entries]
    text.append(".. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names))
    return "".join(text)
