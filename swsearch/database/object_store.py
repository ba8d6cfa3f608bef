"""A folder of objects in an object store or behind HTTP, which is read through obstore.

:class:`ObjectFolder` takes a URL such as ``s3://bucket/path/proteins.db`` and reads objects below it by their names.
Credentials and endpoints are those that obstore finds in the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT``,
``GOOGLE_SERVICE_ACCOUNT``, ``AZURE_STORAGE_ACCOUNT_KEY`` …); URLs must not contain them, since runs store URLs.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import DatabaseError
from swsearch.words import counted

if TYPE_CHECKING:
    from concurrent.futures import Future

SCHEMES: Final = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "file", "http", "https")
"""Schemes of URLs that name databases."""
BLOCK_BYTES: Final = 8 << 20
"""Number of bytes of one request."""
N_REQUESTS: Final = 8
"""Number of requests in flight; the memory in use is this number of blocks."""
_URL: Final = re.compile(rf"({'|'.join(SCHEMES)})://(.*)", re.DOTALL)
_COLLAPSED: Final = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)")
_RETRIES: Final[Any] = {"max_retries": 6, "retry_timeout": timedelta(seconds=120)}
_CREDENTIALS: Final = (
    "check the credentials in the environment, such as AWS_ACCESS_KEY_ID, or say AWS_SKIP_SIGNATURE=true for a public "
    "bucket"
)
_QUERY: Final = re.compile(r"\?[^\s\"']*")


def is_url(name: str) -> bool:
    """Whether the name of a database is a URL of an object store.

    >>> is_url("s3://bucket/proteins.db"), is_url("proteins.db")
    (True, False)
    """
    return _URL.fullmatch(name) is not None


def refuse_url(path: str) -> None:
    """Raise DatabaseError for a URL where only a folder of this machine is possible; :class:`Path` shortens ``//``."""
    if is_url(path) or _COLLAPSED.match(path):
        readers = "`query`, `batch`, `msa`, `db info`, `db verify` and `db export`"
        raise DatabaseError(
            f"{path}: this must be a folder of this machine; databases in object stores are for {readers}"
        )


class ObjectFolder:
    """Objects whose names begin with the path of a URL; threads may share it.

    Parameters
    ----------
    url : str
        A URL with one of :data:`SCHEMES`.

    Raises
    ------
    DatabaseError
        obstore is not installed, the URL contains credentials or cannot be read, or the store cannot be configured.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        scheme, _, rest = self.url.partition("://")
        if "?" in rest or "#" in rest or ("@" in rest.partition("/")[0] and scheme not in ("abfs", "abfss")):
            shown = f"{scheme}://…/{rest.partition('?')[0].rpartition('/')[2]}"
            problem = "the URL of a database has no user, password, query or fragment"
            raise DatabaseError(f"{shown}: {problem}; give credentials in the environment")
        try:
            import obstore
            from obstore.store import from_url
        except ModuleNotFoundError as error:
            advice = "`pip install 'swsearch[remote]'` adds it"
            raise DatabaseError(f"{url} needs obstore, which is not installed; {advice}") from error
        self._obstore: Any = obstore
        with self._translated(self.url):
            # obstore must be told that HTTP without encryption is meant; other stores take AWS_ALLOW_HTTP and its like.
            more: Any = {"client_options": {"allow_http": True}} if scheme == "http" else {}
            self._store: Any = from_url(self.url, retry_config=_RETRIES, **more)

    def read(self, name: str, max_bytes: int) -> bytes:
        """The content of a small object.

        Raises
        ------
        DatabaseError
            There is no such object, it cannot be read, or it has more than ``max_bytes`` bytes.
        """
        place = f"{self.url}/{name}"
        with self._translated(place):
            found = self._obstore.get(self._store, name)
            if found.meta["size"] > max_bytes:
                raise DatabaseError(
                    f"{place} has {counted(found.meta['size'], 'byte')}, at most {max_bytes:,} can be read"
                )
            return bytes(found.bytes())

    def blocks(self, name: str, size: int) -> Iterator[bytes]:
        """The content of an object of ``size`` bytes, in blocks that are requested concurrently.

        Raises
        ------
        DatabaseError
            There is no such object, it cannot be read, or it has another size.
        """
        from concurrent.futures import ThreadPoolExecutor

        place = f"{self.url}/{name}"

        def read_block(start: int) -> bytes:
            end = min(start + BLOCK_BYTES, size)
            with self._translated(place):
                return bytes(self._obstore.get_range(self._store, name, start=start, end=end))

        with self._translated(place):
            found = self._obstore.head(self._store, name)["size"]
        if found != size:
            raise DatabaseError(f"{place} has {counted(found, 'byte')}, its catalogue says {size:,}")
        starts = iter(range(0, size, BLOCK_BYTES))
        with ThreadPoolExecutor(N_REQUESTS) as pool:
            in_flight: deque[Future[bytes]] = deque()
            try:
                for start in starts:
                    in_flight.append(pool.submit(read_block, start))
                    if len(in_flight) == N_REQUESTS:
                        yield in_flight.popleft().result()
                while in_flight:
                    yield in_flight.popleft().result()
            finally:
                for future in in_flight:
                    future.cancel()

    @contextmanager
    def _translated(self, place: str) -> Iterator[None]:
        """Convert errors of obstore to one line without the queries of URLs, which may be signed."""
        from obstore import exceptions

        try:
            yield
        except FileNotFoundError as error:
            raise DatabaseError(f"{place} does not exist; check the URL") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise DatabaseError(f"{place} may not be read; {_CREDENTIALS}") from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            reason = _QUERY.sub("", (str(error).splitlines() or ["no message"])[0])
            # Without credentials, those of a cloud machine are asked for, and no other machine answers.
            advice = f"; {_CREDENTIALS}" if "/latest/api/token" in reason else ""
            raise DatabaseError(f"{place} cannot be read: {reason}{advice}") from error
