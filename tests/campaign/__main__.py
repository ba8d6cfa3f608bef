"""`python -m tests.campaign`: run the campaign, one of its parts or a single trial; print the summary and the figures
of the last campaign.

Each part runs in its own process, with at most `--jobs` processes at a time; each process is started with `shim.so`
preloaded before libc.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.campaign.faults import build_shim, is_loaded
from tests.campaign.parts import PARTS, Part
from tests.campaign.processes import die_with_parent
from tests.campaign.trials import Budget, Outcome, run_trials

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design" / "reliability.md"
TABLE_BEGINS, TABLE_ENDS = "<!-- figures begin -->", "<!-- figures end -->"


def main() -> int:
    """Run the command; return 1 if a trial failed."""
    options = _options()
    if options.table:
        return _table(options)
    if options.list:
        for part in PARTS:
            print(f"{part.name:<20} {part.trials:>6}  {part.what}")
        return 0
    options.state.mkdir(parents=True, exist_ok=True)
    if not is_loaded() and shutil.which("cc"):
        library = build_shim(options.state)
        variables = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.campaign", *sys.argv[1:]], variables)
    chosen = _chosen(options)
    if options.one_part:
        return _run_one(chosen[0], options)
    if options.small:
        return _run_small(chosen, options)
    return _run_all(chosen, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--part", action="append", help="a part by name, or by how its name begins; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trial", type=int, help="run this trial alone, whether it was run before or not")
    parser.add_argument("--trials", type=int, help="trials of each part, in place of a full campaign's")
    parser.add_argument("--scale", type=float, default=1.0, help="share of a full campaign's trials")
    parser.add_argument("--small", action="store_true", help="the small campaign of `make test-all`, in one process")
    parser.add_argument("--minutes", type=float, default=60.0, help="wall time of the whole")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "campaign", help="where it goes on from")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier campaign has done")
    parser.add_argument("--list", action="store_true", help="list the parts")
    parser.add_argument("--table", action="store_true", help="write the last figures into docs/design/reliability.md")
    parser.add_argument("--one-part", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.state = options.state.resolve()
    return options


def _chosen(options: argparse.Namespace) -> list[Part]:
    if not options.part:
        return list(PARTS)
    names: set[str] = set()
    for wanted in options.part:
        found = {part.name for part in PARTS if part.name == wanted} or {
            part.name for part in PARTS if part.name.startswith(wanted)
        }
        if not found:
            sys.exit(f"no part is called {wanted}; there are {', '.join(part.name for part in PARTS)}")
        names |= found
    return [part for part in PARTS if part.name in names]


def _run_one(part: Part, options: argparse.Namespace) -> int:
    """Run one part in this process and write its outcome to the state folder."""
    state_dir = options.state / part.name
    state_dir.mkdir(parents=True, exist_ok=True)
    if options.trial is not None:
        state_dir = options.state / f"again-{part.name}"
        shutil.rmtree(state_dir, ignore_errors=True)
        state_dir.mkdir()
        budget = Budget(1, 3600.0, options.trial)
    else:
        budget = Budget(_trials(part, options), options.minutes * 60)
    began = time.monotonic()
    outcome = run_trials(part.name, part.trial(), budget, options.seed, state_dir)
    _write(options.state / f"{part.name}.json", {**asdict(outcome), "seconds": round(time.monotonic() - began, 1)})
    return 1 if outcome.failures else 0


def _trials(part: Part, options: argparse.Namespace) -> int:
    return options.trials or max(1, round(part.trials * options.scale))


def _run_small(chosen: list[Part], options: argparse.Namespace) -> int:
    """Run a few trials of each part, one after another in this process, so that modules are loaded only once."""
    began = time.monotonic()
    chosen = [part for part in chosen if part.small]
    for part in chosen:
        options.trials = part.small
        _run_one(part, options)
        print(_line(part, _read_outcome(part, options)), flush=True)
    return _summary(chosen, options, time.monotonic() - began)


def _run_all(chosen: list[Part], options: argparse.Namespace) -> int:
    """Run parts concurrently; time that one part does not use is given to the others."""
    ended = options.state / "ended"
    if options.fresh or ended.exists():
        for part in chosen:
            shutil.rmtree(options.state / part.name, ignore_errors=True)
            (options.state / f"{part.name}.json").unlink(missing_ok=True)
        ended.unlink(missing_ok=True)
    began = time.monotonic()
    ends = began + options.minutes * 60
    waiting = sorted(chosen, key=lambda part: -part.share)
    running: list[tuple[Part, subprocess.Popen[bytes], float]] = []
    seconds: dict[str, float] = {}
    try:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                part = waiting.pop(0)
                left = max(0.0, ends - time.monotonic())
                share = part.share / (part.share + sum(other.share for other in waiting))
                allowed = min(left, left * options.jobs * share)
                running.append((part, _start(part, allowed, options), time.monotonic()))
            for entry in list(running):
                part, process, start = entry
                if process.poll() is not None:
                    running.remove(entry)
                    seconds[part.name] = time.monotonic() - start
                    print(_line(part, _read_outcome(part, options)), flush=True)
            time.sleep(0.05)
    except KeyboardInterrupt:
        for _, process, _ in running:
            process.terminate()
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    ended.touch()
    return _summary(chosen, options, time.monotonic() - began)


def _start(part: Part, seconds: float, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.campaign", "--one-part", "--part", part.name]
    command += ["--seed", str(options.seed), "--state", str(options.state), "--minutes", f"{seconds / 60:.3f}"]
    command += ["--trials", str(_trials(part, options))]
    if options.trial is not None:
        command += ["--trial", str(options.trial)]
    # `preexec_fn` is safe here because this process has no other threads.
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)  # noqa: PLW1509


def _read_outcome(part: Part, options: argparse.Namespace) -> Outcome:
    path = options.state / f"{part.name}.json"
    if not path.exists():
        return Outcome(
            0, 0, [f"python -m tests.campaign --part {part.name} --seed {options.seed}: the part itself died"]
        )
    values = json.loads(path.read_text())
    return Outcome(values["trials"], values["survived"], values["failures"], values["notes"])


def _line(part: Part, outcome: Outcome) -> str:
    counts = f"{outcome.trials:>7,} trials  {outcome.survived:>7,} survived  {len(outcome.failures):>4} failed"
    return f"{part.name:<20} {counts}"


def _summary(chosen: list[Part], options: argparse.Namespace, seconds: float) -> int:
    outcomes = {part.name: _read_outcome(part, options) for part in chosen}
    total = Outcome(
        sum(outcome.trials for outcome in outcomes.values()), sum(outcome.survived for outcome in outcomes.values())
    )
    failures = [failure for outcome in outcomes.values() for failure in outcome.failures]
    rows = [("what", "trials", "survived", "failures", "")]
    rows += [
        (part.name, f"{found.trials:,}", f"{found.survived:,}", str(len(found.failures)), part.what)
        for part in chosen
        for found in [outcomes[part.name]]
    ]
    rows.append(("all", f"{total.trials:,}", f"{total.survived:,}", str(len(failures)), f"{seconds / 60:.1f} minutes"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(row[c].rjust(widths[c]) for c in (1, 2, 3)), row[4]]) for row in rows
    ]
    lines += ["", *(f"{name}: {'; '.join(found.notes)}" for name, found in outcomes.items() if found.notes)]
    lines += ["", "Failures:", *failures] if failures else ["", "No failure."]
    text = "\n".join(lines) + "\n"
    print("\n" + text, end="")
    figures = {
        "seed": options.seed,
        "minutes": round(seconds / 60, 1),
        "jobs": options.jobs,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d"),
        "parts": [{"name": p.name, "what": p.what, **asdict(outcomes[p.name])} for p in chosen],
    }
    _write(options.state / "summary.json", figures)
    (options.state / "summary.txt").write_text(text)
    return 1 if failures else 0


def _table(options: argparse.Namespace) -> int:
    """Write the figures of the last campaign into the documentation page."""
    path = options.state / "summary.json"
    if not path.exists():
        sys.exit(f"{path} is not there; run `make campaign` first")
    figures = json.loads(path.read_text())
    failed = [part for part in figures["parts"] if part["failures"]]
    n_trials, n_failures = (sum(part["trials"] for part in figures["parts"]), sum(len(p["failures"]) for p in failed))
    text = (
        f"{figures['date']}, seed {figures['seed']}, {figures['minutes']} minutes in {figures['jobs']} jobs, "
        f"{figures['machine']}. {len(figures['parts'])} parts of the campaign had {n_trials:,} trials and "
        f"{n_failures} failures, by part:"
    )
    lines = [*textwrap.wrap(text, 120), "", "| part | trials | failures |", "| --- | ---: | ---: |"]
    lines += [f"| {part['name']} | {part['trials']:,} | {len(part['failures'])} |" for part in failed]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(TABLE_BEGINS)
    after = rest.partition(TABLE_ENDS)[2]
    PAGE.write_text(before + TABLE_BEGINS + "\n" + "\n".join(lines) + "\n" + TABLE_ENDS + after, encoding="utf-8")
    print("\n".join(lines))
    return 0


def _write(path: Path, values: dict[str, Any]) -> None:
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(values, indent=1) + "\n")
    unfinished.replace(path)


if __name__ == "__main__":
    sys.exit(main())
