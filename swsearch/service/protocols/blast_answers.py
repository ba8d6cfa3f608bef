"""The answers of the BLAST URL API: its pages, with a block that programs read, and its forms of reports.

Clients read the pages as text: Biotite takes every line between ``QBlastInfoBegin`` and ``QBlastInfoEnd`` for a
``NAME=VALUE``; `Bio.Blast.qblast` takes a page that begins with ``<!DOCTYPE html`` for "not yet"; and
`Bio.Blast.NCBIWWW.qblast` looks for ``Status=`` in whatever it gets, so no report may have this text anywhere else.
"""

from __future__ import annotations

import html
import io
import zipfile
from collections.abc import Callable, Iterable
from typing import Any, Final, TextIO, cast

from starlette.responses import HTMLResponse

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.blast_documents import json2_index, json2_of_query, xml2_index, xml2_of_query
from swsearch.report.formats import FORMATS, Format, Use, new_report

REPORTS: Final[dict[str, tuple[str, Callable[[str], Report]]]] = {
    "XML": ("text/xml", lambda _: _Sent(new_report("xml"), "Status&#61;")),
    "XML2": ("application/zip", lambda rid: _Zipped(xml2_of_query, rid, "xml", xml2_index)),
    "XML2_S": ("text/xml", lambda _: _Sent(new_report("xml2"), "Status&#61;")),
    "JSON2": ("application/zip", lambda rid: _Zipped(json2_of_query, rid, "json", json2_index)),
    "JSON2_S": ("application/json", lambda _: _Sent(new_report("json2"), "Status\\u003d")),
    "TEXT": ("text/plain; charset=utf-8", lambda _: _Sent(new_report("pairwise"))),
    "TABULAR": ("text/plain; charset=utf-8", lambda _: _Sent(new_report("blast7"))),
}
"""The values of FORMAT_TYPE: the media type of each, and a function that makes the report of a search by its RID."""
_QUERY_NOT_READ: Final = 24
"""NCBI's number for a query that cannot be read. Clients look for a number, and show the text that follows it."""


def page(block: str, text: str, status: int = 200, *, begin: str = "<!DOCTYPE html>") -> HTMLResponse:
    """A page with a block of ``NAME=VALUE`` lines, and a text for people, which is HTML."""
    info = f"<!--QBlastInfoBegin\n{block}QBlastInfoEnd\n-->"
    body = f'<html lang="en">\n<head><title>swsearch</title></head>\n<body>\n{info}\n{text}\n</body>\n</html>\n'
    return HTMLResponse(f"{begin}\n{body}", status)


def submitted_page(rid: str, seconds: float | None, address: str) -> HTMLResponse:
    """The answer to a submission; ``seconds`` is the predicted time until its end, None if it is unknown."""
    expected = 1 if seconds is None else max(1, round(seconds))
    block = f"    RID = {rid}\n    RTOE = {expected}\n"
    return page(block, f'<p>Search <a href="{html.escape(address)}">{rid}</a> is accepted.</p>')


def error_page(message: str, status: int = 200) -> HTMLResponse:
    """A refusal.

    The block has the names of a submission without values: Biopython then shows the message, and Biotite asks for the
    empty RID, learns that it is unknown, and says that the input seems to be invalid.
    """
    text = html.escape(message, quote=False)
    shown = f'<p class="error">Message ID#{_QUERY_NOT_READ} Error: {text}</p>'
    # To Bio.Blast, a page with the usual beginning is a search that is not done.
    return page("    RID =\n    RTOE =\n", shown, status, begin="<!doctype html>")


def state_page(state: str, text: str = "", *, has_hits: bool | None = None, status: int = 200) -> HTMLResponse:
    """The state of a search: WAITING, READY, FAILED or UNKNOWN."""
    hits = "" if has_hits is None else f"    ThereAreHits={'yes' if has_hits else 'no'}\n"
    begin = "<!DOCTYPE html>" if state == "WAITING" else "<!doctype html>"
    return page(f"    Status={state}\n{hits}", f"<p>{html.escape(text, quote=False)}</p>", status, begin=begin)


class _Sent(Report):
    """A report without organisms, as clients of this protocol read it.

    A document has ``Status=`` written as ``escaped``, an escape of its notation. A text has no escapes; it comes after
    a block that says that it is there.
    """

    def __init__(self, inner: Report, escaped: str | None = None) -> None:
        self._inner = inner
        self._escaped = escaped

    @property
    def format(self) -> Format:
        return self._inner.format

    @property
    def taxonomy_use(self) -> Use:
        return Use.NONE

    def begin(self, run: RunInfo) -> None:
        self._lines = None if self._escaped is None else _Lines(self.stream, self._escaped)
        if self._lines is None:
            self.stream.write("<p><!--\nQBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd\n--><p>\n<PRE>\n")
        super().begin(run)
        self._inner.write_to(self.stream if self._lines is None else cast(TextIO, self._lines), self.context)
        self._inner.begin(run)

    def write(self, query: QueryResult) -> None:
        self._inner.write(query)

    def end(self) -> None:
        self._inner.end()
        if self._lines is None:
            self.stream.write("</PRE>\n")
        else:
            self._lines.end()

    def close(self) -> None:
        self._inner.close()


class _Lines:
    """The part of a text stream that reports use: writes whole lines to another stream, ``Status=`` as ``escaped``."""

    def __init__(self, stream: TextIO, escaped: str) -> None:
        self._stream = stream
        self._escaped = escaped
        self._begun: list[str] = []

    def write(self, text: str) -> int:
        whole, newline, rest = text.rpartition("\n")
        if newline:
            self._pass_on("".join([*self._begun, whole, newline]))
            self._begun = []
        if rest:
            self._begun.append(rest)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def end(self) -> None:
        """Write the last line, if it has no end."""
        self._pass_on("".join(self._begun))

    def _pass_on(self, text: str) -> None:
        self._stream.write(text.replace("Status=", self._escaped))


_Document = Callable[[ReportContext, QueryResult], Iterable[str]]


class _Zipped(Report):
    """An archive with a document for each query, and one that names them."""

    def __init__(self, document: _Document, rid: str, suffix: str, index: Callable[[Iterable[str]], str]) -> None:
        self._document = document
        self._rid = rid
        self._suffix = suffix
        self._index = index

    @property
    def format(self) -> Format:
        return FORMATS[f"{self._suffix}2"]

    @property
    def taxonomy_use(self) -> Use:
        return Use.NONE

    def begin(self, run: RunInfo) -> None:
        self._names: list[str] = []
        # The stream cannot be read back, so that the sizes follow the members.
        self._archive = zipfile.ZipFile(cast(Any, self.stream).buffer, "w", zipfile.ZIP_DEFLATED)

    def write(self, query: QueryResult) -> None:
        name = f"{self._rid}_{len(self._names) + 1}.{self._suffix}"
        with (
            self._archive.open(self._info(name), "w", force_zip64=True) as member,
            io.TextIOWrapper(member, encoding="utf-8", newline="\n") as text,
        ):
            text.writelines(self._document(self.context, query))
        self._names.append(name)

    def end(self) -> None:
        self._archive.writestr(self._info(f"{self._rid}.{self._suffix}"), self._index(self._names))

    def close(self) -> None:
        self._archive.close()

    @staticmethod
    def _info(name: str) -> zipfile.ZipInfo:
        """A member without the time of the download, so that equal results are equal archives."""
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        return info
