r"""A client of the search service for Python scripts and for `swsearch query --server`; it needs no further package.

    client = swsearch.Client("http://127.0.0.1:8765")
    search = client.submit(">mine\nMKVLAAGIVGLLLAQWERTY\n", "proteins.db", {"top": 10})
    search = client.wait(search["id"])
    print(client.report(search["id"], "blast6").decode())

A server that is being restarted is waited for: a submission has an idempotency key, so it is never made twice, and a
search goes on whoever waits for it.
"""

from __future__ import annotations

import fcntl
import http.client
import io
import json
import math
import os
import secrets
import shutil
import socket
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import quote, urlencode, urlsplit

from swsearch import __version__
from swsearch.arguments import function, number, optional, text
from swsearch.errors import InputError, SwSearchError
from swsearch.folders import locked_file, user_cache
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.report.row_filter import RowFilter
    from swsearch.sequences.fasta_text import SubjectPart

TOKEN_VARIABLE: Final = "SWSEARCH_TOKEN"
"""Environment variable of the token, which no command line should have."""
_SERVERS: Final = "servers"
_HOLD_SECONDS: Final = 30.0
_MAX_ANSWER_SECONDS: Final = 60.0


class ServerError(SwSearchError):
    """A server refuses a request, or cannot be reached.

    Attributes
    ----------
    status : int
        HTTP status; 0 if the server cannot be reached.
    code : str
        The reason in one word; ``unreachable`` if the server cannot be reached.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status = status
        self.code = code
        super().__init__(message)

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in (0, 502, 503, 504) or self.code == "too_many_requests"


class Client:
    """A client of one server; it must not be shared between threads.

    Parameters
    ----------
    url : str
        The server's address, such as ``http://127.0.0.1:8765``.
    token : str, optional
        By default, the value of the environment variable ``SWSEARCH_TOKEN``, if there is one.
    patience : float
        Time for which a server that does not answer is waited for, in seconds.
    notify : callable, optional
        Called with a message when the waiting for a server begins.

    Raises
    ------
    InputError
        The address is not a URL of http or https.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        patience: float = 60.0,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        text("url", url)
        shown = option("url", url, flag="--server")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"{shown}: {error}") from error
        optional("token", token, str, "a string")
        if math.isnan(number("patience", patience)):
            raise InputError(f"{option('patience', patience)}: a number of seconds is needed")
        function("notify", notify)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise InputError(f"{shown} is not an address of a server; give one such as http://127.0.0.1:8765")
        self.url = url.rstrip("/")
        self._path = parts.path.rstrip("/") + "/api/v1"
        self._token = os.environ.get(TOKEN_VARIABLE) if token is None else token
        self._patience = patience
        self._notify = notify
        new = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = new(parts.hostname, port, timeout=_MAX_ANSWER_SECONDS)
        """It is opened by a request, and also again after it was closed."""
        weakref.finalize(self, self._connection.close)

    # --- searches ---

    def submit(
        self,
        queries: str,
        database: str = "",
        options: Mapping[str, Any] | None = None,
        *,
        subjects: str | None = None,
        alphabet: str | None = None,
        idempotency_key: str | None = None,
        wait: float = 0.0,
        hits: int = 0,
    ) -> dict[str, Any]:
        """Submit a search; returns it, with its ``id``.

        Parameters
        ----------
        queries : str
            FASTA or FASTQ text.
        database : str
            Name of a database of the server; empty with ``subjects``.
        options : mapping, optional
            Options of `swsearch query` that determine the hits, such as ``{"top": 10, "min_identity": 40}``.
        subjects : str, optional
            FASTA or FASTQ text of subjects that are searched in place of a database.
        alphabet : str, optional
            ``protein`` or ``dna``: what the queries are, if it must not be detected.
        idempotency_key : str, optional
            A second submission with the same key gives the same search; by default, a fresh one.
        wait : float
            Longest time to wait for the end of the search, in seconds, up to 50; a search that takes longer is returned
            as it is then. This takes one request where :meth:`wait` takes a second one.
        hits : int
            If the search is done in that time, its ``hits`` are a page of this many hits of its first query, up to
            1,000, as from :meth:`hits`; otherwise they are None. This saves a further request.

        Raises
        ------
        ServerError
            The server refuses the search, or cannot be reached.
        """
        body: dict[str, Any] = {"queries": queries, "options": dict(options or {}), "alphabet": alphabet}
        body |= {"database": database} if subjects is None else {"subjects": subjects, "database": database}
        headers = {"Idempotency-Key": idempotency_key or secrets.token_urlsafe(16), "Content-Type": "application/json"}
        encoded = json.dumps(body).encode()
        path = "/searches" + _asked(wait=wait, hits=hits)
        return _object(self._patiently(lambda: self._json("POST", path, encoded, headers)))

    def search(self, search_id: str) -> dict[str, Any]:
        """A search: ``state``, ``queries``, ``position``, ``seconds_left`` and more."""
        return self._get(_of_search(search_id))

    def searches(self, limit: int = 50) -> list[dict[str, Any]]:
        """Your newest searches."""
        return self._get_list(f"/searches?limit={limit}")

    def wait(
        self, search_id: str, on_change: Callable[[dict[str, Any]], None] | None = None, *, hits: int = 0
    ) -> dict[str, Any]:
        """Wait until a search is finished; returns it.

        Parameters
        ----------
        search_id : str
        on_change : callable, optional
            Called with the search, at most twice a second, while it is not finished.
        hits : int
            As in :meth:`submit`.

        Raises
        ------
        ServerError
            There is no such search, or the server does not answer for the time of ``patience``.
        """
        hold = _HOLD_SECONDS if on_change is None else 0.5
        path = _of_search(search_id) + _asked(wait=hold, hits=hits)
        while True:
            found = self._get(path)
            if found["state"] not in ("queued", "running"):
                return found
            if on_change is not None:
                on_change(found)

    def cancel(self, search_id: str) -> dict[str, Any]:
        """Cancel a search; one that is finished stays as it is."""
        return _object(self._patiently(lambda: self._json("POST", _of_search(search_id, "cancel"), b"")))

    # --- links ---

    def add_link(self, search_id: str) -> dict[str, Any]:
        """Make a link that shows a search to everybody who has it; returns ``id``, ``key`` and ``page``.

        ``key`` takes the place of the search's id in :meth:`search`, :meth:`hits`, :meth:`report` and the like. The
        server tells it this once.
        """
        return _object(self._json("POST", _of_search(search_id, "links"), b""))

    def links(self, search_id: str) -> list[dict[str, Any]]:
        """The links of a search, without their keys."""
        return self._get_list(_of_search(search_id, "links"))

    def delete_links(self, search_id: str, link_id: str | None = None) -> None:
        """Withdraw a link of a search by the link's ``id``, or all of them."""
        link = () if link_id is None else (link_id,)
        self._answer("DELETE", _of_search(search_id, "links", *link)).read()

    # --- results ---

    def report(
        self,
        search_id: str,
        format: str = "json",
        fields: Sequence[str] | None = None,
        part: SubjectPart | None = None,
        rows: RowFilter | None = None,
        lca_top: float | None = None,
    ) -> bytes:
        """The report of a finished search: the bytes that `swsearch query --format` prints; see :meth:`save_report`."""
        content = io.BytesIO()
        self.save_report(search_id, content, format, fields, part, rows, lca_top)
        return content.getvalue()

    def save_report(
        self,
        search_id: str,
        file: BinaryIO,
        format: str = "json",
        fields: Sequence[str] | None = None,
        part: SubjectPart | None = None,
        rows: RowFilter | None = None,
        lca_top: float | None = None,
    ) -> None:
        """Write the report of a finished search to a file; if the connection ends early, begin again.

        Parameters
        ----------
        search_id : str
        file : binary file
            It must be seekable, and is overwritten from its start.
        format : str
        fields : sequence of str, optional
            Columns, for the formats in which they can be selected.
        part : SubjectPart, optional
            The part of each subject that ``fasta`` has; by default, the whole sequence.
        rows : RowFilter, optional
            Conditions on the rows of a multiple alignment; by default, all rows.
        lca_top : float, optional
            For ``lca``, ``kraken``, ``taxa-html`` and the fields of the query's taxon: as ``--lca-top``.

        Raises
        ------
        ServerError
            The server refuses the report, or does not answer for the time of ``patience``.
        """
        asked = {"format": format} | ({} if fields is None else {"fields": " ".join(fields)})
        if part is not None:
            asked |= {"aligned": "true" if part.aligned else "false", "flank": str(part.flank)}
        if rows is not None:
            asked |= {f"msa_{name}": str(value) for name, value in asdict(rows).items()}
        if lca_top is not None:
            asked["lca_top"] = f"{lca_top!r}"
        path = f"{_of_search(search_id, 'report')}?{urlencode(asked)}"
        self._patiently(lambda: self._save(path, file))

    def _save(self, path: str, file: BinaryIO) -> None:
        file.seek(0)
        file.truncate()
        answer = self._answer("GET", path)
        try:
            shutil.copyfileobj(answer, file)
        except (http.client.HTTPException, ConnectionError) as error:
            raise ServerError(0, "cut_short", f"{self.url}: the report ended early; fetch it again") from error
        finally:
            self._end(answer)

    def hits(self, search_id: str, number: int = 0, **asked: Any) -> dict[str, Any]:
        """One page of the hits of a query; ``offset``, ``limit``, ``sort``, ``order``, ``text``, ``min_identity`` …"""
        return self._get(f"{_of_search(search_id, 'queries', str(number), 'hits')}?{urlencode(asked)}")

    def queries(self, search_id: str, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """The ``queries`` of a search that are done, and those that ``failed``."""
        return self._get(f"{_of_search(search_id, 'queries')}?offset={offset}&limit={limit}")

    # --- the server ---

    def databases(self) -> list[dict[str, Any]]:
        """The databases: name, alphabet, digests, generation, numbers of subjects and residues."""
        return self._get_list("/databases")

    def usage(self) -> list[dict[str, Any]]:
        """What you submitted on the last days."""
        return self._get_list("/usage")

    # --- requests ---

    def _patiently(self, request: Callable[[], Any]) -> Any:
        """Repeat a request that fails for a passing reason."""
        ends = time.monotonic() + self._patience
        pause = 0.1
        is_told = False
        while True:
            try:
                return request()
            except ServerError as error:
                if not error.is_passing or time.monotonic() + pause > ends:
                    raise
                if not is_told:
                    self._notify(f"{error}; waiting for up to {self._patience:.0f} s")
                    is_told = True
            time.sleep(pause)
            pause = min(2.0, pause * 2)

    def _get(self, path: str) -> dict[str, Any]:
        return _object(self._patiently(lambda: self._json("GET", path)))

    def _get_list(self, path: str) -> list[dict[str, Any]]:
        found = self._patiently(lambda: self._json("GET", path))
        return [_object(value) for value in found] if isinstance(found, list) else [_object(found)]

    def _json(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Any:
        answer = self._answer(method, path, body, headers)
        try:
            return json.loads(answer.read())
        except (http.client.HTTPException, OSError) as error:
            raise ServerError(0, "unreachable", f"{self.url} gave no complete answer: {error}") from error
        except ValueError:  # no JSON
            raise self._foreign(answer) from None
        finally:
            self._end(answer)

    def _answer(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """A successful answer whose body is not read yet."""
        token = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        is_used = self._connection.sock is not None
        try:
            self._connection.request(method, self._path + path, body, {**token, **(headers or {})})
            answer = self._connection.getresponse()
            if answer.status < 400:
                return answer
            raise self._refusal(answer)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            if is_used and isinstance(error, ConnectionError):  # the server has closed it while it was idle
                return self._answer(method, path, body, headers)
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ServerError(0, "unreachable", f"{self.url} does not answer: {reason}") from error
        except BaseException:
            self._connection.close()
            raise

    def _end(self, answer: http.client.HTTPResponse) -> None:
        """Close the connection if an answer was not read to its end; otherwise it is kept for the next request."""
        if not answer.isclosed():
            self._connection.close()

    def _refusal(self, answer: http.client.HTTPResponse) -> ServerError:
        try:
            error = json.loads(answer.read())["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            return self._foreign(answer)
        is_of_service = message != http.client.responses.get(answer.status)  # all that is said of an unknown path
        return ServerError(answer.status, code, message) if is_of_service else self._foreign(answer)

    def _foreign(self, answer: http.client.HTTPResponse) -> ServerError:
        """The error for an answer that is not one of the API."""
        problem = f"{self.url} answers {answer.status} {answer.reason}".rstrip()
        if answer.status in (200, 404, 405):
            problem += " and is not the address of a swsearch service; give the address that `swsearch serve` printed"
        else:  # of a proxy, perhaps
            problem += "; is it a server of swsearch?"
        return ServerError(answer.status, "error", problem)


@contextmanager
def announced(url: str) -> Iterator[None]:
    """Let :func:`running_servers` of the same user find a server, from a file that is locked while it runs."""
    folder = user_cache(_SERVERS)
    path = folder / f"{socket.gethostname()}-{os.getpid()}"
    with ExitStack() as stack:
        with suppress(OSError):  # without a folder for its cache, a user names servers
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.callback(os.close, locked_file(path, fcntl.LOCK_EX))
            stack.callback(path.unlink, missing_ok=True)
            path.write_text(f"{__version__} {url}", encoding="utf-8")
        yield


def running_servers() -> list[str]:
    """The addresses of this user's servers of this version on this machine; what killed ones have left is removed."""
    found = []
    for path in sorted(user_cache(_SERVERS).glob(f"{socket.gethostname()}-*")):
        with suppress(OSError):
            try:
                os.close(locked_file(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
            except BlockingIOError:
                version, _, url = path.read_text(encoding="utf-8").partition(" ")
                found += [url] if version == __version__ else []
            else:
                path.unlink()
    return found


def _of_search(search_id: str, *parts: str) -> str:
    """The path of a search, or of something that belongs to it."""
    return "/".join(["/searches", *(quote(part, safe="") for part in (search_id, *parts))])


def _asked(**values: float) -> str:
    """The query of an address with the values that are not 0."""
    given = {name: f"{value:g}" for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ServerError(0, "foreign", "the answer is not a JSON object; is it a server of swsearch?")
    return value
