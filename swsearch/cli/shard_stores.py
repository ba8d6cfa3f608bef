"""The stores and runs that ``swsearch runs merge`` is given: names with ``{shard}``, and runs as ``STORE#RUN``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.shards import PLACEHOLDER

_LABEL: Final = r"(\d+)-of-(\d+)"
_RUN: Final = re.compile(r"(.+)#(\d{1,18}|latest)", re.DOTALL)


def stores_of(pattern: str) -> list[str]:
    """The existing stores that a name with ``{shard}`` stands for, in the order of their shards.

    A name without ``{shard}`` stands for itself, whether it exists or not.

    Raises
    ------
    InputError
        There is no such store, or there are stores of different numbers of shards.
    """
    if PLACEHOLDER not in pattern:
        return [pattern]
    path = Path(pattern)
    if PLACEHOLDER in str(path.parent):
        raise InputError(f"{pattern}: {PLACEHOLDER} stands for shards in the name of a file, not of its folder")
    before, *between = (re.escape(part) for part in path.name.split(PLACEHOLDER))
    # Further occurrences in the name stand for the same shard.
    form = re.compile(before + f"(?P<label>{_LABEL})" + "(?P=label)".join(between), re.DOTALL)
    names = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    found = {name: match for name in names if (match := form.fullmatch(name))}
    if not found:
        raise InputError(f"{pattern}: there is no such store of any shard; name the stores of the shards")
    counts = sorted({int(match[3]) for match in found.values()})
    if len(counts) > 1:
        one = pattern.replace(PLACEHOLDER, f"*-of-{counts[-1]}")
        several = " and ".join(str(count) for count in counts)
        raise InputError(f"{pattern}: there are stores of {several} shards; name those of one batch, such as {one}")
    in_order = sorted(found, key=lambda name: int(found[name][2]))
    return [str(path.with_name(name)) for name in in_order]


def named_runs(name: str) -> tuple[str, str | None]:
    """A store, and its run that ``STORE#RUN`` names; a file whose own name has this form is a store.

    >>> named_runs("hits.sqlite#3"), named_runs("hits.sqlite")
    (('hits.sqlite', '3'), ('hits.sqlite', None))
    """
    match = _RUN.fullmatch(name)
    if match is None or Path(name).exists():
        return name, None
    return match[1], match[2]
