"""A service that speaks tickets, for the tests of this protocol: databases, one store, a worker, and two servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import requests

from swsearch.database.builder import build_database
from swsearch.service.databases import named_databases
from swsearch.service.settings import Settings
from tests.patience import LIMIT_SECONDS
from tests.service.pages.conftest import Served, serving, working
from tests.service.servers import local_report, tokens_of
from tests.support import DATA, protein_records

_RECORDS = [record.splitlines() for record in (DATA / "queries.fasta").read_text().split(">")[1:]]
ENGB, OBG, S6 = ("".join(_RECORDS[place][1:]) for place in (0, 1, 3))
"""Two GTPases and a ribosomal protein with relatives in the data, some of them in the same organisms."""


@dataclass(frozen=True)
class TicketService:
    """A running service.

    Attributes
    ----------
    settings : Settings
        Databases `lambda.db` (DNA), `first.db` (all 1,500 proteins) and `second.db` (83 of them), in this order.
    plain, guarded : Served
        A server without tokens, and one with tokens of ann and ben on the same store.
    """

    settings: Settings
    plain: Served
    guarded: Served


@contextmanager
def ticket_service(folder: Path) -> Iterator[TicketService]:
    """Run a service in this process."""
    chosen = [record for record in protein_records() if "GTP" in record.split("\n", 1)[0]]
    (folder / "first.fasta").write_text("".join(protein_records()))
    (folder / "second.fasta").write_text("".join(chosen))
    (folder / "lambda.fasta").write_bytes((DATA / "lambda_phage.fasta").read_bytes())
    names = ("lambda", "first", "second")
    for name in names:
        build_database(folder / f"{name}.fasta", folder / f"{name}.db")
    settings = Settings(
        databases=named_databases([str(folder / f"{name}.db") for name in names]),
        store=str(folder / "hits.sqlite"),
        protocols=("tickets",),
    )
    tokens = tokens_of(settings.store, ["ann", "ben"])
    with (
        serving(settings) as plain,
        serving(replace(settings, tokens_required=True)) as guarded,
        working(settings),
    ):
        yield TicketService(settings, plain, replace(guarded, tokens=tokens))


def report_of_query(settings: Settings, folder: Path, database: str, sequences: list[str], *options: str) -> bytes:
    """What `swsearch query` prints for these sequences, which are named 101, 102, …"""
    return local_report(settings.databases[database], folder, *options, queries=fasta(*sequences))


def fasta(*sequences: str) -> str:
    """The queries as ColabFold sends them."""
    return "".join(f">{number}\n{letters}\n" for number, letters in enumerate(sequences, 101))


def post(url: str, path: str, **fields: object) -> requests.Response:
    """Send a form; `database` stands for `database[]`."""
    data = {"database[]" if name == "database" else name: value for name, value in fields.items()}
    return requests.post(f"{url}/{path}", data=data, timeout=LIMIT_SECONDS)


def get(url: str, path: str, **headers: str) -> requests.Response:
    return requests.get(f"{url}/{path}", headers=headers, timeout=LIMIT_SECONDS)


def completed(url: str, ticket: dict[str, str]) -> str:
    """Wait until a ticket is complete; return its id."""
    status = ticket["status"]
    while status in ("PENDING", "RUNNING"):
        status = get(url, f"ticket/{ticket['id']}").json()["status"]
    assert status == "COMPLETE"
    return ticket["id"]
