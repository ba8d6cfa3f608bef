"""The parts of the campaign: the name of each, what it tests, and the function that runs it.

A part is a function `run(budget, seed, state_dir) -> Outcome`. It runs numbered trials. A trial is determined by the
part's name, the seed and its number alone, so `python -m tests.campaign --part NAME --seed SEED --trial NUMBER`
repeats it. `tests/campaign/trials.py` has the loop that most parts use: it counts trials, records finished trials in
`state_dir`, and resumes there after a campaign was killed.

To add a part, write `tests/campaign/<module>.py` with such a function and add a row to `PARTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class Budget:
    """The limits of a part: it ends at whichever limit it reaches first."""

    trials: int  # number of trials to run, including those that an earlier, killed call has finished
    seconds: float  # wall time; a trial that has begun is finished
    first: int = 0  # number of the first trial: trials first, first + 1, …, first + trials - 1


@dataclass
class Outcome:
    """The outcome of a part."""

    trials: int = 0  # trials that were run
    survived: int = 0  # trials in which every promise held
    failures: list[str] = field(
        default_factory=list
    )  # one line each: what broke, and the part, seed and trial to repeat it
    notes: list[str] = field(default_factory=list)  # what was omitted and why; counts that belong in the summary


Run = Callable[[Budget, int, Path], Outcome]


@dataclass(frozen=True)
class Part:
    """A row of the table."""

    name: str  # as in `--part NAME`: letters, digits and _
    what: str  # one line for the summary
    run: Run
    share: float = 1.0  # of the campaign's time, relative to the other parts
    trials: int = 1_000  # of a full campaign
    small: int = 0  # trials that `make test-all` runs; a second of processor time or two


def function_of(module: str, function: str = "run") -> Run:
    """Return the named function of `tests.campaign.<module>`, which is imported when it is called."""

    def run(budget: Budget, seed: int, state_dir: Path) -> Outcome:
        found: Run = getattr(import_module(f"tests.campaign.{module}"), function)
        return found(budget, seed, state_dir)

    return run


PARTS: list[Part] = [
    Part(
        "differential", "every engine against parasail and the reference engine",
        function_of("differential"), share=4.0, trials=2_600, small=10,
    ),
    Part(
        "align_modes", "`align` in every mode against four other programs and the whole matrix",
        function_of("align_modes"), share=1.5, trials=1_400, small=10,
    ),
    Part(  # tests/search/test_complete_lists.py runs some trials with every `make test`
        "lists", "lists of all options against complete lists of the reference engine, 40 a trial",
        function_of("lists"), share=6.0, trials=2_500,
    ),
    *(
        Part(f"kill_{name}", f"kill -9 of {words}", function_of("kills", f"kill_{name}"), share, trials, small=2)
        for name, words, share, trials in (
            ("index", "`index`", 0.7, 300),
            ("index_force", "`index --force` over a database", 0.7, 300),
            ("db_add", "`db add`", 0.7, 300),
            ("db_remove", "`db remove`", 0.6, 240),
            ("db_compact", "`db compact`", 0.7, 300),
            ("query", "`query` with a store and an output file", 2.0, 520),
            ("batch", "`batch`, then --resume latest", 2.0, 520),
            ("runs_merge", "`runs merge`", 1.6, 440),
        )
    ),
    Part(
        "kill_service", "kill -9 of a service's processes, five times a trial, while somebody searches",
        function_of("service", "run_killed"), share=3.0, trials=20, small=1,
    ),
    Part(
        "kill_service_postgresql", "the same with PostgreSQL, which is killed, too",
        function_of("service", "run_killed_postgresql"), share=1.5, trials=10,
    ),
    *(
        Part(name, words, function_of("disks", f"run_{name}"), share, trials, small)
        for name, words, share, trials, small in (
            ("failing_calls", "a system call fails, is cut short or interrupted: all commands", 4.0, 1_600, 8),
            ("full_disk", "a small file system fills: all commands", 1.0, 300, 3),
            ("file_limit", "a limit on the size of files: all commands", 1.0, 300, 3),
        )
    ),
    Part(
        "memory", "limits on the address space: all commands",
        function_of("memory"), share=3.0, trials=220,
    ),
    *(
        Part(name, words, function_of("signals", f"run_{name}"), 4.0, trials, small=4)
        for name, words, trials in (
            ("signals", "SIGINT, SIGTERM, SIGHUP, SIGPIPE at any moment: all commands", 800),
            ("streams", "standard streams closed, readers that go: all commands", 660),
        )
    ),
    Part(
        "readers", "searches, exports and checks while the database is changed",
        function_of("readers"), share=2.0, trials=60, small=1,
    ),
    Part(
        "locked_store", "another process holds the store's lock",
        function_of("stores", "run_locked"), share=0.7, trials=90, small=1,
    ),
    Part(
        "damaged_store", "bytes of the store or of its log changed or cut off",
        function_of("stores", "run_damaged"), share=2.0, trials=600, small=4,
    ),
    Part(
        "killed_server", "PostgreSQL killed in the middle of a batch",
        function_of("stores", "run_killed_server"), share=1.2, trials=50,
    ),
    # `make test-all` runs the first trials of these in tests/campaign/fuzz/test_fuzz.py, where each target is a test.
    *(
        Part(f"fuzz_{name}", words, function_of(f"fuzz.{module}"), share, trials)
        for name, module, words, share, trials in (
            ("databases", "databases", "databases damaged and crafted, under every command that opens one", 2.0, 3_000),
            ("parsers", "parsers", "every text that is read: mutated, archived, damaged", 2.0, 8_000),
            ("stores", "foreign_values", "values in the store that no program wrote", 1.0, 1_600),
            ("arrays", "arrays", "arguments of the native module that do not fit", 1.0, 6_000),
            ("guided", "guided", "every text that is read, led by the coverage of branches (Atheris)", 4.0, 200),
            ("native", "native", "native kernels under sanitizers, led by coverage (libFuzzer)", 6.0, 200),
        )
    ),
]  # fmt: skip
