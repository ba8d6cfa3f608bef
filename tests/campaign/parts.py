"""The parts of the campaign: the name of each, what it tests, and the function that runs it.

A part is a function that runs one of its numbered trials (`tests/campaign/trials.py`); `test_parts.py` runs the parts.
To add a part, write `tests/campaign/<module>.py` with such a function and add a row to `PARTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from tests.campaign.trials import Trial


@dataclass(frozen=True)
class Part:
    """A row of the table."""

    name: str
    what: str  # one line for the summary
    function: str  # that of a trial, with its module: `module.function` in `tests.campaign`
    share: float = 1.0  # of the campaign's time, relative to the other parts
    trials: int = 1_000  # of a full campaign
    small: int = 0  # trials that `make test-all` runs

    def trial(self) -> Callable[[Trial], None]:
        """Import the function of a trial."""
        module, _, name = self.function.rpartition(".")
        found: Callable[[Trial], None] = getattr(import_module(f"tests.campaign.{module}"), name)
        return found


PARTS: list[Part] = [
    Part(
        "differential", "every engine against parasail and the reference engine",
        "differential.trial", share=4.0, trials=2_600, small=10,
    ),
    Part(
        "align_modes", "`align` in every mode against four other programs and the whole matrix",
        "align_modes.trial", share=1.5, trials=1_400, small=10,
    ),
    Part(  # tests/search/test_complete_lists.py runs some trials with every `make test`
        "lists", "lists of all options against complete lists of the reference engine, 40 a trial",
        "lists.trial", share=6.0, trials=2_500,
    ),
    *(  # four trials kill at three system calls: the small campaign kills commands of databases at each of their calls
        Part(f"kill_{name}", f"kill -9 of {words}", "kills.kill", share, trials, small)
        for name, words, share, trials, small in (
            ("index", "`index`", 0.7, 300, 48),
            ("index_force", "`index --force` over a database", 0.7, 300, 2),
            ("db_add", "`db add`", 0.7, 300, 56),
            ("db_remove", "`db remove`", 0.6, 240, 28),
            ("db_compact", "`db compact`", 0.7, 300, 86),
            ("query", "`query` with a store and an output file", 2.0, 520, 2),
            ("batch", "`batch`, then --resume latest", 2.0, 520, 2),
            ("runs_merge", "`runs merge`", 1.6, 440, 2),
        )
    ),
    Part(
        "kill_service", "kill -9 of a service's processes, five times a trial, while somebody searches",
        "service.killed", share=3.0, trials=20, small=1,
    ),
    Part(
        "kill_service_postgresql", "the same with PostgreSQL, which is killed, too",
        "service.killed_with_postgresql", share=1.5, trials=10,
    ),
    *(
        Part(name, words, f"disks.{name}", share, trials, small)
        for name, words, share, trials, small in (
            ("failing_calls", "a system call fails, is cut short or interrupted: all commands", 4.0, 1_600, 8),
            ("full_disk", "a small file system fills: all commands", 1.0, 300, 3),
            ("file_limit", "a limit on the size of files: all commands", 1.0, 300, 3),
        )
    ),
    Part(
        "memory", "limits on the address space: all commands",
        "memory.one_limit", share=3.0, trials=220,
    ),
    *(
        Part(name, words, f"signals.{name}", 4.0, trials, small)
        for name, words, trials, small in (
            ("signals", "SIGINT, SIGTERM, SIGHUP, SIGPIPE at any moment: all commands", 800, 88),
            ("streams", "standard streams closed, readers that go: all commands", 660, 4),
        )
    ),
    Part(
        "readers", "searches, exports and checks while the database is changed",
        "readers.readers", share=2.0, trials=60, small=1,
    ),
    Part(
        "locked_store", "another process holds the store's lock",
        "stores.locked_store", share=0.7, trials=90, small=1,
    ),
    Part(
        "damaged_store", "bytes of the store or of its log changed or cut off",
        "stores.damaged_store", share=2.0, trials=600, small=4,
    ),
    Part(
        "killed_server", "PostgreSQL killed in the middle of a batch",
        "stores.killed_server", share=1.2, trials=50,
    ),
    *(
        Part(f"fuzz_{name}", words, f"fuzz.{module}.trial", share, trials, small)
        for name, module, words, share, trials, small in (
            ("databases", "databases", "databases damaged, under every command that opens one", 2.0, 3_000, 0),
            ("parsers", "parsers", "every text that is read: mutated, archived, damaged", 2.0, 8_000, 17),
            ("stores", "foreign_values", "values in the store that no program wrote", 1.0, 1_600, 10),
            ("arrays", "arrays", "arguments of the native module that do not fit", 1.0, 6_000, 6),
            ("guided", "guided", "every text that is read, led by the coverage of branches (Atheris)", 4.0, 200, 0),
            ("native", "native", "native kernels under sanitizers, led by coverage (libFuzzer)", 6.0, 200, 0),
        )
    ),
]  # fmt: skip
