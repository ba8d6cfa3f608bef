"""Checks of the arguments of functions, and of the values of options, where they are given.

Each check returns the argument as the program uses it, or raises an error that names it and says what is expected: in
Python as ``top=0``, on the command line as ``--top 0`` (:func:`swsearch.words.option`).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from swsearch.errors import InputError, WrongType
from swsearch.words import a_kind, option

Kind = TypeVar("Kind")


def needed_module(name: str, needed_by: str) -> ModuleType:
    """A module of a package that only some calls need.

    Raises
    ------
    InputError
        It is not installed; the message says what needs it, and how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise InputError(f"{needed_by} needs {name}; `pip install {name}` adds it") from error


def is_path(value: object) -> bool:
    """Whether a value is a path."""
    return isinstance(value, (str, os.PathLike))


def whole_number(name: str, value: Any) -> int:
    """A whole number of any type, such as NumPy's, but no bool, as an int.

    Raises
    ------
    WrongType
        It is none.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError as error:
        raise WrongType(f"{option(name, value)}: a whole number is needed") from error


def number(name: str, value: Any) -> float:
    """A number of any type, but no bool and no text, as a float.

    Raises
    ------
    WrongType
        It is none.
    """
    try:
        if isinstance(value, (bool, str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise WrongType(f"{option(name, value)}: a number is needed") from error


def text(name: str, value: Any) -> str:
    """A string.

    Raises
    ------
    WrongType
        It is none.
    """
    return of_type(name, value, str, "a string")


def path(name: str, value: Any) -> str:
    """A path as a string.

    Raises
    ------
    WrongType
        It is neither a string nor an object of :mod:`pathlib`.
    InputError
        It has a NUL byte, or a character that cannot be encoded.
    """
    found = os.fspath(value) if is_path(value) else None
    if not isinstance(found, str):
        raise WrongType(f"{option(name, value)}: a path is needed")
    try:
        is_name = "\0" not in os.fsdecode(os.fsencode(found))
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise InputError(f"{option(name, value)}: this is not a path; it has a character that file names cannot have")
    return found


def choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of several words.

    Raises
    ------
    InputError
        It is another word; a WrongType if it is not a word.
    """
    if not isinstance(value, str) or value not in choices:
        listed = (" or " if len(choices) == 2 else ", ").join(choices)
        problem = f"{option(name, value)}: choose {listed}"
        raise InputError(problem) if isinstance(value, str) else WrongType(problem)
    return value


def flag(name: str, value: Any) -> bool:
    """True or False.

    Raises
    ------
    WrongType
        It is neither.
    """
    return of_type(name, value, bool, "True or False")


def function(name: str, value: Any) -> None:
    """Refuse what cannot be called, apart from None.

    Raises
    ------
    WrongType
        It cannot be called.
    """
    if value is not None and not callable(value):
        raise WrongType(f"{option(name, value)}: a function is needed")


def of_type(name: str, value: Any, kind: type[Kind], needed: str) -> Kind:
    """An object of a class; ``needed`` is what the message says that it must be.

    Raises
    ------
    WrongType
        It is none.
    """
    if not isinstance(value, kind):
        raise WrongType(f"{option(name)} is {a_kind(value)}; {needed} is needed")
    return value


def optional(name: str, value: Any, kind: type[Kind], needed: str) -> Kind | None:
    """An object of a class, or None; as :func:`of_type`."""
    return None if value is None else of_type(name, value, kind, needed)


def paths(name: str, value: Any) -> list[Any]:
    """A path or several ones, at least one, as a list of those that were given.

    Raises
    ------
    WrongType
        It is neither a path nor an iterable of paths.
    InputError
        There is none, or one is empty or has a NUL byte.
    """
    is_several = not is_path(value) and isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray))
    several = list(value) if is_several else [value]
    for one in several:
        path(name, one)
    if not all(map(os.fspath, several)):
        raise InputError(f"{option(name, value)}: the path is empty")
    if not several:
        raise InputError(f"{option(name, value)}: at least one path is needed")
    return several


def names(name: str, value: Any) -> list[str]:
    """Several strings, as a list; a single string is refused, because it would be taken for its letters.

    Raises
    ------
    WrongType
        It is not an iterable of strings.
    """
    given = None if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if given is None or not all(isinstance(one, str) for one in given):
        raise WrongType(f"{option(name, value)}: a list of names is needed")
    return given
