"""Times the functions of a program while it runs: :class:`StepFinder` wraps them when their modules are imported."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import inspect
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class StepFinder(importlib.abc.MetaPathFinder):
    """Finds the modules whose functions or imports are steps, and lets their own loaders load them.

    Times are those of the machine's monotonic clock, in seconds; those of several processes can be compared.

    Parameters
    ----------
    note : callable
        Takes the name of a step, its begin and its end.
    steps : mapping of str to collection of str
        The functions and methods that are steps, by module.
    imported : collection of str
        Modules whose import is a step, with the name ``import MODULE``.
    """

    def __init__(
        self,
        note: Callable[[str, float, float], None],
        steps: Mapping[str, Collection[str]],
        imported: Collection[str] = (),
    ) -> None:
        self._note = note
        self._steps = steps
        self._imported = imported
        self._finding: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in self._finding or (name not in self._steps and name not in self._imported):
            return None
        self._finding.add(name)
        began = time.monotonic()
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if name in self._imported:
                self._note(f"import {name}", began, time.monotonic())
            for step in self._steps.get(name, ()):
                self._wrap(module, step)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _wrap(self, module: ModuleType, step: str) -> None:
        """Put a function that is timed in the place of a step."""
        *owners, last = step.split(".")
        owner: Any = functools.reduce(getattr, owners, module)
        found = inspect.getattr_static(owner, last)
        if isinstance(found, classmethod | staticmethod):
            setattr(owner, last, type(found)(self._timed(step, found.__func__)))
        else:
            setattr(owner, last, self._timed(step, found))

    def _timed(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*given: Any, **named: Any) -> Any:
            began = time.monotonic()
            try:
                return function(*given, **named)
            finally:
                self._note(step, began, time.monotonic())

        return wrapper
