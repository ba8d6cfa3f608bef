"""Set the version of a release in every file that states it.

    python scripts/set_version.py 1.2.0 [--date 2027-01-31] [--root FOLDER]

``version`` in ``pyproject.toml`` is the version; the other files of :data:`PLACES` repeat it, because each of them is
read where the others are not. The script also dates the citation and the entry of ``CHANGELOG.md``. It changes no file
if one of them does not have the expected form.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)(0|[1-9]\d*))?")
"""A release: three numbers, and perhaps a pre-release in the form of Python packages."""

PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "Dockerfile": r'org\.opencontainers\.image\.version="(.+)"$',
    "packaging/galaxy/swsearch.xml": r'<token name="@TOOL_VERSION@">(.+)</token>$',
    "packaging/nf-core/swsearch/index/environment.yml": r'"bioconda::swsearch=(.+)"$',
    "packaging/nf-core/swsearch/index/main.nf": r"^    container 'swsearch:(.+)'$",
    "packaging/nf-core/swsearch/query/environment.yml": r'"bioconda::swsearch=(.+)"$',
    "packaging/nf-core/swsearch/query/main.nf": r"^    container 'swsearch:(.+)'$",
    "swsearch/__init__.py": r'^__version__ = "(.+)"$',
}
"""The line of each file that states the version, as a pattern whose group is the version."""
UNRELEASED = "## [Unreleased]\n"
RELEASED = re.compile(r"^date-released: .*\n", re.MULTILINE)


def stated_version(path: str, root: Path = ROOT) -> str:
    """The version that a file of :data:`PLACES` states.

    Raises
    ------
    ValueError
        Not exactly one line of the file states a version.
    """
    found: list[str] = re.findall(PLACES[path], (root / path).read_text(), re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"{root / path}: {len(found)} lines state a version, not 1")
    return found[0]


def set_version(version: str, date: datetime.date, root: Path = ROOT) -> None:
    """Write a version to all files of :data:`PLACES`, and the date of the release to the citation and the changelog.

    Raises
    ------
    ValueError
        The version is not one of a release, or a file does not have the expected form.
    """
    if not VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is not a version such as 1.2.0 or 1.2.0rc1")
    texts = {}
    for path, pattern in PLACES.items():
        old = stated_version(path, root)
        line = re.compile(pattern, re.MULTILINE)
        texts[path] = line.sub(lambda found, old=old: found[0].replace(old, version), (root / path).read_text())
    undated = RELEASED.sub("", texts["CITATION.cff"])
    texts["CITATION.cff"] = undated.replace(f"version: {version}\n", f"version: {version}\ndate-released: {date}\n")
    changes = (root / "CHANGELOG.md").read_text()
    if changes.count(UNRELEASED) != 1:
        raise ValueError(f"{root / 'CHANGELOG.md'}: there is no single heading [Unreleased]")
    texts["CHANGELOG.md"] = changes.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {date}\n")
    for path, text in texts.items():
        (root / path).write_text(text)


def main(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Set the version of a release in every file that states it.")
    parser.add_argument("version")
    parser.add_argument("--date", type=datetime.date.fromisoformat, default=datetime.date.today())
    parser.add_argument("--root", type=Path, default=ROOT)
    given = parser.parse_args(arguments)
    try:
        set_version(given.version, given.date, given.root)
    except (OSError, ValueError) as error:
        print(f"set_version: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
