"""Parameters of tests of which ``make test`` runs one or a few and ``make test-all`` the others (CONTRIBUTING.md)."""

from collections.abc import Iterable

import pytest


def mostly_thorough(values: Iterable[object], *often: object) -> list[object]:
    """Return the values as parameters of a test; all but the last arguments are for ``make test-all``."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=() if value in often else pytest.mark.thorough
        )
        for value in values
    ]
