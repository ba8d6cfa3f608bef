"""The bytes of a text that was sent to the service: those of the file that it came from."""

from __future__ import annotations

from swsearch.errors import InputError


def bytes_of(text: str, what: str) -> bytes:
    """UTF-8, with the bytes that surrogate escapes stand for; ``what`` names the text in an error.

    Raises
    ------
    InputError
        The text has half of a surrogate pair, which JSON can express and no file can contain.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise InputError(f"{what}: \\u{code:04x} at character {error.start + 1} is no character; remove it") from error
