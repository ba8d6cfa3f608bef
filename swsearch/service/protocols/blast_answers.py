"""The answers of the BLAST URL API: its pages, with a block that programs read, and its forms of reports.

Clients read the pages as text: Biotite takes every line between ``QBlastInfoBegin`` and ``QBlastInfoEnd`` for a
``NAME=VALUE``; `Bio.Blast.qblast` takes a page that begins with ``<!DOCTYPE html`` for "not yet"; and
`Bio.Blast.NCBIWWW.qblast` looks for ``Status=`` in whatever it gets, so no report may have this text anywhere else.
"""

from __future__ import annotations

import html
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TextIO, cast

from starlette.responses import HTMLResponse

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.blast_documents import OneQueryJson2, OneQueryXml2, json2_index, xml2_index
from swsearch.report.protocol import ReportFormat
from swsearch.report.registry import get_format

MEDIA_TYPES: Final = {
    "XML": "text/xml",
    "XML2": "application/zip",
    "XML2_S": "text/xml",
    "JSON2": "application/zip",
    "JSON2_S": "application/json",
    "TEXT": "text/plain; charset=utf-8",
    "TABULAR": "text/plain; charset=utf-8",
}
"""The values of FORMAT_TYPE."""
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


def report_of(format_type: str, rid: str, n_subjects: int | None) -> ReportFormat:
    """The report that is an answer of this FORMAT_TYPE; with ``n_subjects``, of the first subjects of each query."""
    made: dict[str, Callable[[], ReportFormat]] = {
        "XML": lambda: _Escaped(get_format("xml"), "Status&#61;"),
        "XML2": lambda: _Zipped(OneQueryXml2(), rid, "xml", xml2_index),
        "XML2_S": lambda: _Escaped(get_format("xml2"), "Status&#61;"),
        "JSON2": lambda: _Zipped(OneQueryJson2(), rid, "json", json2_index),
        "JSON2_S": lambda: _Escaped(get_format("json2"), "Status\\u003d"),
        "TEXT": lambda: _Framed(get_format("pairwise")),
        "TABULAR": lambda: _Framed(get_format("blast7")),
    }
    report = made[format_type]()
    return report if n_subjects is None else _First(report, n_subjects)


class _Wrapped:
    """A report that is written by another one."""

    def __init__(self, inner: ReportFormat) -> None:
        self.inner = inner
        self.name = inner.name
        self.binary = inner.binary


class _First(_Wrapped):
    """The best subjects of each query."""

    def __init__(self, inner: ReportFormat, n_subjects: int) -> None:
        super().__init__(inner)
        self._n_subjects = n_subjects

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report."""
        shown = (
            replace(query, hits=tuple(hit for hit in query.hits if hit.rank <= self._n_subjects)) for query in queries
        )
        self.inner.write(run, shown, stream)


class _Framed(_Wrapped):
    """A text after the block that says that it is there."""

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report."""
        stream.write("<p><!--\nQBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd\n--><p>\n<PRE>\n")
        self.inner.write(run, queries, stream)
        stream.write("</PRE>\n")


class _Escaped(_Wrapped):
    """A report in which ``Status=`` is written with an escape of its notation."""

    def __init__(self, inner: ReportFormat, escaped: str) -> None:
        super().__init__(inner)
        self._escaped = escaped

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report."""
        lines = _Lines(stream, lambda line: line.replace("Status=", self._escaped))
        self.inner.write(run, queries, cast(TextIO, lines))
        lines.end()


class _Lines:
    """The part of a text stream that reports use: passes whole lines through a function to another stream."""

    def __init__(self, stream: TextIO, change: Callable[[str], str]) -> None:
        self._stream = stream
        self._change = change
        self._begun: list[str] = []

    def write(self, text: str) -> int:
        whole, newline, rest = text.rpartition("\n")
        if newline:
            self._stream.write(self._change("".join([*self._begun, whole, newline])))
            self._begun = []
        if rest:
            self._begun.append(rest)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def end(self) -> None:
        """Write the last line, if it has no end."""
        self._stream.write(self._change("".join(self._begun)))


class _Zipped:
    """An archive with a document for each query, and one that names them."""

    binary = True

    def __init__(self, one: ReportFormat, rid: str, suffix: str, index: Callable[[Iterable[str]], str]) -> None:
        self.name = one.name
        self._one = one
        self._rid = rid
        self._suffix = suffix
        self._index = index

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the archive."""
        # The stream cannot be read back, so that the sizes follow the members.
        with zipfile.ZipFile(cast(Any, stream).buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            names = list(self._members(archive, run, queries))
            archive.writestr(self._info(f"{self._rid}.{self._suffix}"), self._index(names))

    def _members(self, archive: zipfile.ZipFile, run: RunInfo, queries: Iterable[QueryResult]) -> Iterator[str]:
        for number, query in enumerate(queries, 1):
            name = f"{self._rid}_{number}.{self._suffix}"
            with (
                archive.open(self._info(name), "w", force_zip64=True) as member,
                io.TextIOWrapper(member, encoding="utf-8", newline="\n") as text,
            ):
                self._one.write(run, [query], text)
            yield name

    @staticmethod
    def _info(name: str) -> zipfile.ZipInfo:
        """A member without the time of the download, so that equal results are equal archives."""
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        return info
