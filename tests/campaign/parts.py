"""The parts of the campaign: what each one is called, what it tries, and the function that runs it.

A part is a function `run(budget, seed, state_dir) -> Outcome`. It runs numbered trials. A trial is decided by the part's name, the seed
and its number alone, so `python -m tests.campaign --part NAME --seed SEED --trial NUMBER` repeats it. `tests/campaign/trials.py` has the loop that most
parts use: it counts, keeps what is done in `state_dir`, and goes on from there when a campaign was killed.

To add a part, write `tests/campaign/<module>.py` with such a function and add a row to `PARTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class Budget:
    """How much a part may do: it ends at whichever bound it meets first."""

    trials: int  # number of trials to run, those that an earlier, killed call has done included
    seconds: float  # wall time; a trial that has begun is finished
    first: int = 0  # number of the first trial: trials first, first + 1, …, first + trials - 1


@dataclass
class Outcome:
    """What came of a part."""

    trials: int = 0  # trials that were run
    survived: int = 0  # trials in which every promise held
    failures: list[str] = field(
        default_factory=list
    )  # a line each: what broke, and the part, seed and trial to repeat it
    notes: list[str] = field(default_factory=list)  # what was left out and why, counts that belong in the summary


Run = Callable[[Budget, int, Path], Outcome]


@dataclass(frozen=True)
class Part:
    """A row of the table."""

    name: str  # as in `--part NAME`: letters, digits and _
    what: str  # one line for the summary
    run: Run
    share: float = 1.0  # of the campaign's time, relative to the other parts
    trials: int = 1_000  # of a full campaign


def function_of(module: str, function: str = "run") -> Run:
    """The function of that name in `tests.campaign.<module>`, imported when it is called."""

    def run(budget: Budget, seed: int, state_dir: Path) -> Outcome:
        found: Run = getattr(import_module(f"tests.campaign.{module}"), function)
        return found(budget, seed, state_dir)

    return run


PARTS: list[Part] = [
    Part(
        "differential",
        "every engine against parasail and the reference engine",
        function_of("differential"),
        12.0,
        1_300,
    ),
    Part("align_modes", "`align` in every mode against four other programs", function_of("align_modes"), 5.0, 700),
    *(
        Part(f"kill_{name}", f"kill -9 of {words}", function_of("kills", f"kill_{name}"), share=1.0, trials=trials)
        for name, words, trials in (
            ("index", "`index`", 140),
            ("index_force", "`index --force` over a database", 140),
            ("db_add", "`db add`", 140),
            ("db_remove", "`db remove`", 100),
            ("db_compact", "`db compact`", 140),
            ("query", "`query` with a store and an output file", 240),
            ("batch", "`batch`, then --resume latest", 240),
            ("runs_merge", "`runs merge`", 200),
        )
    ),
    Part(
        "failing_calls",
        "a system call fails, is cut short or interrupted: all commands",
        function_of("disks", "run_failing_calls"),
        3.0,
        800,
    ),
    Part("full_disk", "a small file system fills: all commands", function_of("disks", "run_full_disk"), 1.0, 150),
    Part("file_limit", "a limit on the size of files: all commands", function_of("disks", "run_file_limit"), 1.0, 150),
    Part("signals", "SIGINT, SIGTERM, SIGHUP, SIGPIPE at any moment", function_of("signals", "run_signals"), 2.0, 300),
    Part("streams", "closed streams, readers that go", function_of("signals", "run_streams"), 2.0, 300),
]
