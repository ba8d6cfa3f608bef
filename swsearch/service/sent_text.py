"""Texts that clients send: which characters they may have, how many bytes, and whether they are still wanted.

A server reads long texts in threads (:class:`~swsearch.service.bodies.Readers`). A thread cannot be stopped from
outside, so its work asks :func:`check_wanted` between two parts of a text.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from swsearch.errors import InputError, Refused
from swsearch.sequences.archives import MAGIC_BYTES, archive_format, decompressed
from swsearch.service.settings import ServerLimits

_NO_TEXT: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and halves of surrogate pairs. JSON can express them; neither a database nor UTF-8 takes all."""


def check_words(text: str, what: str) -> None:
    """Refuse a text of words, such as the value of an option, that could not be stored, logged or sent back.

    ``what`` is its name in the message.

    Raises
    ------
    InputError
        The text has a control character, or half of a surrogate pair.
    """
    found = _NO_TEXT.search(text)
    if found is not None:
        raise _unusable(what, text, found.start())


def bytes_of(text: str, what: str) -> bytes:
    """The bytes of the file that sequences came from: UTF-8, with the bytes that surrogate escapes stand for.

    ``what`` is the name of the text in the message.

    Raises
    ------
    InputError
        The text has half of a surrogate pair that is not an escape, which no file can contain; or it is an archive.
    """
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise _unusable(what, text, error.start) from error
    if archive_format(raw[:MAGIC_BYTES]) is not None:
        raise InputError(f"{what} are an archive; send their text")
    return raw


def _unusable(what: str, text: str, place: int) -> InputError:
    code = ord(text[place])
    kind = "not a character" if code > 0xFF else "a control character"
    return InputError(f"{what}: \\u{code:04x} at character {place + 1} is {kind}; remove it")


# --- while a text is read ---


Take = Callable[[int], None]
TAKE: ContextVar[Take] = ContextVar("TAKE")
"""Counts bytes of the request that is being answered, also those of what is decompressed; raises Refused if there are
too many."""
NOT_WANTED: ContextVar[threading.Event] = ContextVar("NOT_WANTED")
"""Set when the client has gone or the server stops; without a value, the work is wanted."""
_NEVER: Final = threading.Event()


def check_wanted() -> None:
    """Raise InputError if nobody waits for the result of this thread's work any more."""
    if NOT_WANTED.get(_NEVER).is_set():
        raise InputError("the request ended early")


def plain_text(uploaded: bytes, limits: ServerLimits) -> str:
    """The text of an uploaded file, which may be compressed (gzip, bzip2, xz or zstd).

    Raises
    ------
    InputError
        The archive is damaged.
    Refused
        The text is longer than a request may be, or too many bytes are in memory.
    """
    form = archive_format(uploaded[:MAGIC_BYTES])
    content_bytes = uploaded
    if form is not None:
        reader = decompressed(io.BytesIO(uploaded), form)
        parts = []
        n_bytes = 0
        try:
            while n_bytes <= limits.request_bytes and (part := reader.read(1 << 20)):
                parts.append(part)
                n_bytes += len(part)
                check_wanted()
                TAKE.get()(len(part))
        except InputError:
            raise
        except Exception as error:  # each decompressor has its own exceptions
            raise InputError(
                "the uploaded archive cannot be read to its end; it may be damaged or cut short"
            ) from error
        content_bytes = b"".join(parts)
    if len(content_bytes) > limits.request_bytes:
        raise Refused("too_large", f"the uploaded file has more than {limits.request_bytes:,} bytes of text")
    return content_bytes.decode("utf-8", "surrogateescape")
